package suite

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

type row struct {
	conform.Case
	lacks string // why only a test target can be asked this; "" for rows that rping can be asked
	run   func(t *trial)
}

func table() []row {
	return slices.Concat(startup, framing, ddpRows, rdmapRows, extensionRows, mutations)
}

// Catalogue lists the cases. The caller owns the slice.
func Catalogue() []conform.Case {
	var all []conform.Case
	for _, r := range table() {
		all = append(all, r.Case)
	}
	return all
}

// must makes a row; should, may and hazard change one.
func must(id, clause, requirement string, run func(*trial)) row {
	return row{Case: conform.Case{ID: id, Clause: clause, Requirement: requirement}, run: run}
}

// ofTarget is a row that needs more of the peer than rping does: a test target. lacks says what.
func ofTarget(id, clause, requirement, lacks string, run func(*trial)) row {
	r := must(id, clause, requirement, run)
	r.lacks = lacks
	return r
}

func should(r row) row {
	r.Level = conform.Should
	return r
}

func may(r row) row {
	r.Level = conform.May
	return r
}

func hazard(r row) row {
	r.Hazard = true
	return r
}

const (
	wantsInitiator = "the peer has to connect to the suite; rping only listens, 'serve --target' does both"
	wantsMarkers   = "the peer has to ask for markers; 'serve --target' can"
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

type peer struct {
	addr     string
	limit    time.Duration
	isTarget bool           // and not a server of rping
	hello    target.Hello   // of a test target
	client   *target.Client // nil until it is needed
}

// silence is how long a test target may take to greet. Whoever listens for iWARP says
// nothing, so every other peer costs this once.
const silence = 500 * time.Millisecond

func meet(addr string, limit time.Duration) (*peer, error) {
	p := &peer{addr: addr, limit: limit}
	for _, wait := range []time.Duration{silence, limit} {
		v, err := target.Find(addr, wait, limit)
		if err != nil && !errors.Is(err, target.ErrSilent) {
			return p, err
		}
		if v != nil {
			p.isTarget, p.client, p.hello = true, v, v.Hello
		}
		// A slow target took the probe for rubbish, so it is greeted once more.
		if err = p.trial(limit).guard(func(t *trial) { t.connect() }); err == nil || p.isTarget {
			return p, err
		}
		if wait == limit {
			return p, err
		}
	}
	return p, nil
}

func (p *peer) name() string {
	if p.isTarget {
		return "wire:" + p.hello.Transport + "@" + p.addr
	}
	return "wire:" + p.addr
}

func (p *peer) trial(limit time.Duration) *trial {
	t := &trial{addr: p.addr, limit: limit}
	if !p.isTarget {
		return t
	}
	if p.client == nil {
		v, err := target.Find(p.addr, limit, limit)
		if err != nil {
			t.gone = err
			return t
		}
		p.client = v
	}
	t.target, t.variants = p.client, p.hello.Variants
	return t
}

func (p *peer) leave() {
	if p.client != nil {
		p.client.Close()
		p.client = nil
	}
}
