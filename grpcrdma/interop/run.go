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
	defaultLimit = 10 * time.Second
	// endGrace is what a case gets after its deadline to say what it hangs on.
	endGrace = time.Second
	// startGrace is for a process to begin and to end, beside its work. A machine on
	// which cases are given more time is given more for this, too.
	startGrace = 10 * time.Second
	// exitNotRun is how a child says that the stack is not there.
	exitNotRun = conform.ExitNotRun
)

// Options shape a run. Cases, if set, are some of Catalogue.
type Options struct {
	conform.Options
	// Shared says that client and server must share a process.
	Shared bool
}

// Run executes the selected cases over a transport, each in its own process, and
// returns when all have a verdict, or soon after ctx ends.
func Run(ctx context.Context, transport string, form carrier.Form, kids Children, o Options) conform.Report {
	r := &runner{kids: kids, form: form, o: o}
	if r.o.CaseTimeout <= 0 {
		r.o.CaseTimeout = defaultLimit
	}
	rep := conform.Report{Transport: transport, Strict: o.Strict, Seed: o.Seed}
	all := o.Cases
	if all == nil {
		all = Catalogue()
	}
	cases, err := conform.Select(all, o.Only, o.Skip, o.Profile)
	if err != nil {
		rep.Err = err
		return rep
	}
	defer func() { // whoever ended badly has been told of by the case that saw it
		if r.server != nil {
			r.server.stop(startGrace)
		}
	}()
	for i := range cases {
		res := cases[i].Record(transport, o.Seed)
		begun := time.Now()
		r.judge(ctx, &res)
		res.DurationNS = time.Since(begun).Nanoseconds()
		o.Ledger.Apply(&cases[i], &res, o.Kernel)
		rep.Results = append(rep.Results, res)
		if o.Progress != nil {
			o.Progress(res)
		}
		if res.Verdict == conform.NotRun && ctx.Err() == nil {
			// What cannot be opened once cannot be opened forty times.
			rest := conform.NotRunReport(transport, errors.New(res.Evidence), conform.Options{Strict: o.Strict, Seed: o.Seed, Cases: cases, Profile: conform.Full})
			rep.Results = append(rep.Results, rest.Results[i+1:]...)
			rep.Err = fmt.Errorf("%s: %s: %w", transport, res.Evidence, conform.ErrNotRun)
			break
		}
	}
	return rep
}

// runner is the state of a Run.
type runner struct {
	kids   Children
	form   carrier.Form
	o      Options
	server *proc
	peer   Peer
}

func (r *runner) caseLimit() time.Duration { return r.o.CaseTimeout + max(startGrace, r.o.CaseTimeout) }

// judge gives the case of res its verdict.
func (r *runner) judge(ctx context.Context, res *conform.Result) {
	s := find(res.ID)
	if why := s.lack(r.form, r.o.Shared); why != "" {
		res.Verdict, res.Evidence = conform.Unsupported, why
		return
	}
	if err := ctx.Err(); err != nil {
		res.Verdict, res.Evidence = conform.NotRun, "run ended: "+err.Error()
		return
	}
	if err := r.serve(); err != nil {
		res.Verdict, res.Evidence = conform.NotRun, fmt.Sprintf("start the server: %v", err)
		return
	}
	p, err := launch(r.kids("case", res.ID))
	if err != nil {
		res.Verdict, res.Evidence = conform.NotRun, fmt.Sprintf("start the case: %v", err)
		return
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
	res.Evidence = strings.Join(o.Notes, "; ")
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		res.Verdict, res.Evidence = conform.NotRun, "run ended: "+ctx.Err().Error()
	case err == nil && len(o.Wrong) == 0:
		res.Verdict = conform.Pass
	case err == nil:
		res.Verdict, res.Want, res.Got = conform.Fail, []string{"the requirement"}, strings.Join(o.Wrong, "; ")
		res.Evidence = strings.TrimPrefix(res.Evidence+"\n"+o.Evidence, "\n")
	case errors.As(p.err, &exit) && exit.ExitCode() == exitNotRun:
		res.Verdict, res.Evidence = conform.NotRun, p.said.last()
	default:
		res.Verdict, res.Want, res.Got, res.Evidence = conform.Fail, []string{"the requirement"}, err.Error(), p.said.String()
	}
}

// serve makes sure that the server's process lives. One that a case took with it
// is replaced for the next.
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
