package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
)

// goOn decides what an error of one turn means for the others. A stack that lacks what a point needs is left out there;
// one whose peer is gone has no more turns. Any other error, and the last stack's, is returned.
func (m *runner) goOn(ctx context.Context, t *turn, err error) error {
	code := reports.Code(err)
	if ctx.Err() != nil || len(m.arms) == 1 || code != reports.ExitNotRun && code != reports.ExitPeer {
		return err
	}
	what := t.pt.String() + " over " + t.a.tr.Name()
	if code == reports.ExitNotRun {
		t.unfit = true
		t.end()
		if t.c != nil {
			t.c.Close() // its server waits for this point
			t.a.clients[t.nth] = nil
		}
	} else {
		t.a.lost = true
	}
	if !slices.ContainsFunc(m.arms, func(a *arm) bool { return !a.lost }) {
		return err
	}
	m.lost = append(m.lost, fmt.Errorf("%s: %w", what, err))
	if !m.o.quiet {
		fmt.Fprintln(m.stderr, cli.Fill(fmt.Sprintf("Left out: %s, %v.", what, inner(err)), cli.Width(m.stderr)))
	}
	return nil
}

// ended is the error of a run that went on without some stacks: 1 where one was lost, 77 where nothing was measured.
func (m *runner) ended() error {
	for _, err := range m.lost {
		if reports.Code(err) == reports.ExitPeer {
			return failed("measure", errors.Join(m.lost...),
				"the other stacks were measured; the same command with --transport for those that were not")
		}
	}
	if len(m.lost) > 0 && len(m.doc.Results) == 0 {
		return m.lost[0]
	}
	return nil
}
