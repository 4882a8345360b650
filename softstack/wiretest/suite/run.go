package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/conform"
)

// Options choose what runs, as for the other suites.
type Options struct {
	conform.Options
	Hazard bool // run what crashes unpatched kernels
}

// Run aims the selected cases at the peer, one after the other, and returns when all
// have a verdict, or soon after ctx ends. addr is where it serves rping, or the control
// port of a victim, which is told apart.
func Run(ctx context.Context, addr string, o Options) conform.Report {
	if o.CaseTimeout <= 0 {
		o.CaseTimeout = 10 * time.Second
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Cases == nil {
		o.Cases = Catalogue()
	}
	p, err := meet(addr, o.CaseTimeout)
	defer p.leave()
	name := p.name()
	rep := conform.Report{Transport: name, Strict: o.Strict, Seed: o.Seed}
	if err != nil {
		return conform.NotRunReport(name, err, o.Options)
	}
	cases, err := conform.Select(o.Cases, o.Only, o.Skip, o.Profile)
	if err != nil {
		rep.Err = err
		return rep
	}
	rows := map[string]row{}
	for _, r := range table() {
		rows[r.ID] = r
	}
	for i := range cases {
		res := cases[i].Record(name, o.Seed)
		begun := time.Now()
		judge(ctx, rows[cases[i].ID], p, &o, &res)
		res.DurationNS = time.Since(begun).Nanoseconds()
		o.Ledger.Apply(&cases[i], &res, o.Kernel)
		rep.Results = append(rep.Results, res)
		if o.Progress != nil {
			o.Progress(res)
		}
	}
	return rep
}

// judge gives one case its verdict.
func judge(ctx context.Context, r row, p *peer, o *Options, res *conform.Result) {
	switch {
	case ctx.Err() != nil:
		res.Verdict, res.Evidence = conform.NotRun, "run ended: "+ctx.Err().Error()
		return
	case r.lacks != "" && !p.told:
		res.Verdict, res.Evidence = conform.Unsupported, r.lacks
		return
	case r.Hazard && !o.Hazard:
		res.Verdict, res.Evidence = conform.Unsupported, "it crashes unpatched kernels, and hazards were not asked for"
		return
	}
	t := p.trial(o.CaseTimeout)
	t.seed, t.full = o.Seed, o.Profile == conform.Full
	err := t.guard(r.run)
	if err == nil {
		// A bent peer costs its connection and nothing else.
		if again := t.guard(func(t *trial) { t.connect() }); again != nil {
			err = &conform.Mismatch{Want: []string{"a new connection is accepted afterwards"}, Got: again.Error()}
		}
	}
	res.Evidence = strings.Join(t.notes, "; ")
	var wrong *conform.Mismatch
	var lacks *unsupported
	switch {
	case err == nil:
		res.Verdict = conform.Pass
	case errors.As(err, &lacks):
		res.Verdict, res.Evidence = conform.Unsupported, lacks.why
	case errors.As(err, &wrong):
		res.Verdict, res.Want, res.Got = conform.Fail, wrong.Want, wrong.Got
	default:
		res.Verdict, res.Got = conform.Error, err.Error()
		p.leave() // the next case meets the victim anew
	}
}

// unsupported ends a case that the peer cannot be asked.
type unsupported struct{ why string }

func (u *unsupported) Error() string { return u.why }

// guard runs a case to its end, closes its connections, and returns what it found.
func (t *trial) guard(run func(*trial)) (err error) {
	t.end = time.Now().Add(t.limit)
	defer func() {
		for _, l := range t.open {
			l.Close()
		}
		t.open, t.last = nil, nil
		switch p := recover().(type) {
		case nil:
		case stop:
			err = p.err
		case broken:
			err = p.err
		default:
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if t.gone != nil {
		return t.gone
	}
	run(t)
	t.settle()
	return nil
}
