package claims

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports"
)

// turns runs a command and the tools beside it in turns, in an order that turns around from round to round.
func (n *runner) turns(ctx context.Context, r *Run, base string, first, last int, all *outcome) {
	if first == 0 {
		for _, t := range r.Beside {
			if err := t.prepare(ctx, n.dir); err != nil {
				all.absent[t.stack] = err
			}
		}
	}
	for round := first + 1; round <= last && ctx.Err() == nil; round++ {
		for i := range len(r.Beside) + 1 {
			if round%2 == 0 {
				i = len(r.Beside) - i
			}
			if i == 0 {
				o := n.start(ctx, fields(r.line(n.Options, 1)), fmt.Sprintf("%s-%d", base, round))
				if o.doc != nil {
					for i := range o.doc.Results {
						o.doc.Results[i].Repeat = 1
					}
				}
				all.add(o, round-1)
				continue
			}
			t := r.Beside[i-1]
			if _, no := all.absent[t.stack].(notHere); no {
				continue
			}
			f, err := t.measure(ctx, n.dir, n.Quick)
			if err != nil {
				all.absent[t.stack] = err // said where it has too few rounds
				continue
			}
			res := reports.Result{Transport: t.stack, Repeat: round, Label: reports.LabelSoft}
			res.Figures = []reports.Figure{f}
			all.doc.Results = append(all.doc.Results, res)
		}
	}
	if all.late = errors.Is(ctx.Err(), context.DeadlineExceeded); all.late {
		all.err = errLate
	}
}
