package suite

import (
	"context"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/conform"
)

// Options choose what runs, as for the other suites.
type Options struct {
	conform.Options
	Hazard bool // run what crashes unpatched kernels
}

// Run aims the selected cases at the peer, one after the other, and returns when all have a verdict, or soon after ctx
// ends. addr is where it serves rping, or the control port of a test target, which greets.
func Run(ctx context.Context, addr string, o Options) conform.Report {
	o.Options = o.Options.WithDefaults(Catalogue)
	p, err := meet(addr, o.CaseTimeout)
	defer p.leave()
	name := p.name()
	if err != nil {
		return conform.NotRunReport(name, err, o.Options)
	}
	rows := map[string]row{}
	for _, r := range table() {
		rows[r.ID] = r
	}
	return conform.RunCases(ctx, name, o.Options, func(_ context.Context, c *conform.Case, res *conform.Result) {
		judge(rows[c.ID], p, &o, res)
	})
}

func judge(r row, p *peer, o *Options, res *conform.Result) {
	switch {
	case r.lacks != "" && !p.isTarget:
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
	if res.Settle(err, t.Notes()); res.Verdict == conform.Error {
		p.leave() // the next case connects to the target anew
	}
}

func (t *trial) guard(run func(*trial)) error {
	t.end = time.Now().Add(t.limit)
	defer func() {
		for _, l := range t.open {
			l.Close()
		}
		t.open, t.last = nil, nil
	}()
	return t.Guard(func() {
		t.Stop(t.gone)
		run(t)
		t.settle()
	})
}
