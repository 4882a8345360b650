package interop

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

const (
	// endGrace is what a case gets after its deadline to report where it hangs.
	endGrace = time.Second
	// startGrace is for the start and the end of a process.
	startGrace = 10 * time.Second
	exitNotRun = conform.ExitNotRun
)

// Options shape a run. Cases, if set, are some of Catalogue.
type Options struct {
	conform.Options
	// Shared: client and server must share a process.
	Shared bool
}

// Run executes the selected cases over a transport, each in its own process. It returns soon after ctx ends.
func Run(ctx context.Context, transport string, form carrier.Form, kids Children, o Options) conform.Report {
	o.Options = o.WithDefaults(Catalogue)
	r := &runner{kids: kids, form: form, o: o}
	defer func() { // how it ends is in the verdict of the case that it ended in
		if r.server != nil {
			r.server.stop(startGrace)
		}
	}()
	rep := conform.RunCases(ctx, transport, o.Options, r.judge)
	if r.away != "" {
		rep.Err = fmt.Errorf("%s: %s: %w", transport, r.away, conform.ErrNotRun)
	}
	return rep
}

type runner struct {
	kids   Children
	form   carrier.Form
	o      Options
	server *proc
	peer   Peer
	away   string // why nothing can be started, which the first case found out
}

func (r *runner) caseLimit() time.Duration { return r.o.CaseTimeout + max(startGrace, r.o.CaseTimeout) }

func (r *runner) judge(ctx context.Context, c *conform.Case, res *conform.Result) {
	s := find(c.ID)
	if r.away != "" {
		res.Verdict, res.Evidence = conform.NotRun, r.away
		return
	}
	if why := s.lack(r.form, r.o.Shared); why != "" {
		res.Verdict, res.Evidence = conform.Unsupported, why
		return
	}
	if err := r.attempt(ctx, s, res); err != nil {
		res.Verdict, res.Evidence = conform.NotRun, err.Error()
		if ctx.Err() == nil {
			r.away = res.Evidence
		}
	}
}

// attempt runs the case in a process and sets its verdict. An error is why it did not run.
func (r *runner) attempt(ctx context.Context, s *suite, res *conform.Result) error {
	if err := r.serve(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	p, err := launch(r.kids("case", res.ID))
	if err != nil {
		return fmt.Errorf("start the case: %w", err)
	}
	defer p.kill()
	defer context.AfterFunc(ctx, func() { p.cmd.Process.Kill() })()
	if !r.o.Shared {
		_ = p.write(r.peer) // a case that is gone says so below
	}
	var o outcome
	if err = p.read(r.caseLimit()-r.o.CaseTimeout+s.limit(r.o.CaseTimeout), &o); err != nil {
		p.kill()
	} else if p.stop(startGrace) != nil && len(o.Wrong) == 0 {
		err = fmt.Errorf("the process ended badly behind its last answer: %v: %s", p.err, p.said.last())
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("run ended: %w", ctx.Err())
	case errors.As(p.err, &exit) && exit.ExitCode() == exitNotRun && err != nil:
		return errors.New(p.said.last())
	case err != nil:
		res.Settle(&conform.Mismatch{Want: []string{"the requirement"}, Got: err.Error()}, p.said.String())
	case len(o.Wrong) > 0:
		evidence := strings.TrimPrefix(strings.Join(o.Notes, "; ")+"\n"+o.Evidence, "\n")
		res.Settle(&conform.Mismatch{Want: []string{"the requirement"}, Got: strings.Join(o.Wrong, "; ")}, evidence)
	default:
		res.Settle(nil, strings.Join(o.Notes, "; "))
	}
	return nil
}

// serve starts the server's process if none lives: a case may have killed it.
func (r *runner) serve() error {
	if r.o.Shared {
		return nil
	}
	if r.server != nil {
		select {
		case <-r.server.ended:
			r.server.kill()
		default:
			return nil
		}
	}
	p, err := launch(r.kids("serve", "--only", "", "--at", ""))
	if err != nil {
		return err
	}
	if err := p.read(r.caseLimit(), &r.peer); err != nil {
		p.kill()
		r.server = nil
		return err
	}
	r.server = p
	return nil
}
