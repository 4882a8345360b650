package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
)

// The pace of a shared machine changes within seconds. With 32 slices of 60 ms, 93 of 100 differences of 1.2x are found
// under noise of 5 %.
const (
	defaultRounds = 32
	leastSlice    = 60 * time.Millisecond
	// Below so many samples a slice says little of a median. A slice grows to at most growth times its length.
	leastSamples = 30
	growth       = 4
)

// group is points that are compared with each other: one on all stacks, or its variants.
type group []engine.Point

// groups are the points of the plan; those that differ in nothing but the variant are one group.
func (p *runPlan) groups() (all []group) {
	same := func(pt engine.Point) engine.Point {
		if pt.Variant != "" {
			pt.Variant, pt.Words, pt.Options, pt.Needs = "any", "", "", engine.Needs{}
		}
		return pt
	}
	for _, pt := range p.points {
		if i := slices.IndexFunc(all, func(g group) bool { return same(g[0]) == same(pt) }); i >= 0 {
			all[i] = append(all[i], pt)
		} else {
			all = append(all, group{pt})
		}
	}
	return all
}

// turns are the points of the group on the stacks that have them, in the order of a round.
func (m *runner) turns(g group) (all []*turn) {
	for n, pt := range g {
		for _, a := range m.arms {
			if i := slices.Index(a.plan.Points, pt); i >= 0 {
				all = append(all, &turn{m: m, a: a, pt: pt, index: i, nth: n})
			}
		}
	}
	return all
}

// turn is one stack at one point. Its run is a coroutine that goes on from slice to slice with its sessions open.
type turn struct {
	m     *runner
	a     *arm
	pt    engine.Point
	index int // in the plan of the stack
	nth   int // of the points of the group: each has a client of its own
	c     *engine.Client
	next  func() ([]reports.Result, error, bool)
	stop  func()
	taken int  // slices
	ended bool // the run returned
	unfit bool // the stack turned out to lack what the point needs
}

// start begins the run of the point. A workload that has no slices is run again for each round.
func (t *turn) start(ctx context.Context) {
	t.ended = false
	t.next, t.stop = iter.Pull2(func(yield func([]reports.Result, error) bool) {
		t.c.Turn = func(results []reports.Result) bool { return yield(results, nil) }
		results, err := t.c.Run(ctx, t.index)
		t.ended = true
		yield(results, err)
	})
}

func (t *turn) end() {
	if t.stop != nil {
		t.stop()
	}
}

func (t *turn) slice(ctx context.Context) ([]reports.Result, error) {
	if t.next == nil || t.ended {
		t.end()
		t.start(ctx)
	}
	results, err, _ := t.next()
	if stackspec.PollsIdle(t.a.spec) { // the others would be measured beside what polls
		t.end()
		t.ended = true
	}
	t.taken++
	t.grow(results)
	return results, err
}

// grow lengthens the further slices where the first has few samples.
func (t *turn) grow(results []reports.Result) {
	least := int64(leastSamples)
	for i := range results {
		if l := results[i].Latency; l != nil {
			least = min(least, l.Count)
		}
		for _, l := range results[i].Latencies {
			least = min(least, l.Latency.Count)
		}
	}
	if d := t.a.plan.Duration; t.taken == 1 && t.m.rounds > 1 && least < leastSamples {
		t.c.Slice = d * min(growth, leastSamples/time.Duration(max(least, 1)))
	}
}

// measureGroup takes the points of a group in rounds, A B, B A, A B, so that what changes steadily touches all alike.
// Where rounds can be left out, none begins that would end after until.
func (m *runner) measureGroup(ctx context.Context, g group, until time.Time) error {
	turns := m.turns(g)
	defer func() {
		for _, t := range turns {
			t.end()
		}
	}()
	began := time.Now()
	for round := range m.rounds {
		if m.enough(round, began, time.Now(), until) {
			var costs []time.Duration
			for _, t := range turns {
				costs = append(costs, t.a.plan.PlannedTime(t.pt))
			}
			m.bar.Skip(slices.Repeat(costs, m.rounds-round))
			return nil
		}
		order := slices.Clone(turns)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, t := range order {
			if t.unfit || t.a.lost {
				continue
			}
			if err := m.measureSlice(ctx, t, round+1); err != nil {
				if err := m.goOn(ctx, t, err); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (m *runner) measureSlice(ctx context.Context, t *turn, round int) error {
	a, pt := t.a, t.pt
	m.log.Debug("measure", "point", pt.String(), "transport", a.tr.Name(), "round", round)
	what := pt.String()
	if m.rounds > 1 {
		what = fmt.Sprintf("%s, round %d of %d", what, round, m.rounds)
	}
	m.bar.Before(a.tr.Name(), what, a.plan.PlannedTime(pt))
	if t.c == nil {
		c, err := m.client(ctx, a, t.nth)
		if err != nil {
			return err
		}
		t.c = c
	}
	m.announceLong()
	c := t.c
	watcher := watch(c, m.lookEvery(), m.looker(a, pt))
	c.Counters = stackspec.Counters(a.tr)
	m.raw.keep(c, len(m.doc.Results))
	c.Progress = m.bar.Within
	m.beside.spin(pt.Neighbours)
	results, err := t.slice(ctx)
	m.beside.rest()
	watcher.end()
	m.bar.After()
	for i := range results {
		results[i].Neighbours = pt.Neighbours
		m.take(&results[i], round, err)
	}
	return cmp.Or(err, errors.Join(m.metrics.publish(m.doc), m.to.save(m.doc, time.Now())))
}

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

// schedule divides the announced time among the groups of points. On a busy machine later rounds of each group are left
// out, so that every group has about as many.
type schedule struct {
	end    time.Time
	shares []time.Duration // planned for each group
}

// until is when group i has to be done, which begins now: its part of the time that is left.
func (s schedule) until(i int, now time.Time) time.Time {
	rest := time.Duration(0)
	for _, d := range s.shares[i:] {
		rest += d
	}
	if rest == 0 {
		return s.end
	}
	part := float64(s.shares[i]) / float64(rest)
	return now.Add(time.Duration(part * float64(s.end.Sub(now))))
}

// enough tells, with some rounds done since began, whether the next one would end too late.
func (m *runner) enough(done int, began, now, until time.Time) bool {
	if m.least == 0 || done < m.least {
		return false
	}
	each := now.Sub(began) / time.Duration(done)
	return now.Add(each).After(until)
}
