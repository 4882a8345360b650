package claims

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/rdmaperf/rdmaperf/reports"
)

// turns runs a command and the tools beside it one after the other, in as many rounds, in an order that turns around
// from one to the next. Its document has what each measured in each of them.
func (n *runner) turns(ctx context.Context, r *Run, base string) *outcome {
	all := &outcome{doc: &reports.Document{}, absent: map[string]error{}}
	rounds := turnsFull
	if n.Quick {
		rounds = turnsQuick
	}
	for _, t := range r.Beside {
		if err := t.prepare(ctx, n.dir); err != nil {
			all.absent[t.stack] = err
		}
	}
	for round := 1; round <= rounds && ctx.Err() == nil; round++ {
		for i := range len(r.Beside) + 1 {
			if round%2 == 0 {
				i = len(r.Beside) - i
			}
			if i == 0 {
				o := n.start(ctx, fields(r.line(n.Options)), fmt.Sprintf("%s-%d", base, round))
				all.add(o, round)
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
	return all
}

// add takes what one round measured.
func (o *outcome) add(one *outcome, round int) {
	if one.err != nil {
		o.err, o.code = one.err, one.code
	}
	maps.Copy(o.absent, one.absent)
	if one.doc == nil {
		return
	}
	for _, res := range one.doc.Results {
		res.Repeat = round
		o.doc.Results = append(o.doc.Results, res)
	}
}
