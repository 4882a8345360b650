package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/reports"
)

// coordinator hands out pairs and collects figures. One goroutine owns it; a goroutine a member reads.
type coordinator struct {
	members []*member // by rank; nil: never came
	stacks  []Stack
	limit   time.Duration // of one task
	events  chan event
	quit    chan struct{}  // closed at the end, for the readers
	tasks   map[int]*job   // under way, by number
	next    int            // number of a task
	room    map[string]int // by machine: how many ends of pairs more it may have

	results  []reports.Result
	apart    map[string]bool // pairs that have no address family in common
	progress func(done, total int)
}

// Stack is what is measured of each pair.
type Stack struct {
	Spec string         // as it was asked for
	Like reports.Result // what results of it have in common
	Plan engine.Plan

	// By point of the plan.
	Measures []string
	Bad      []float64 // limits: the multiple of what good pairs have
}

type event struct {
	rank int
	m    *message
	err  error
}

type job struct {
	link  verdict.Link
	tasks []Task    // what is left of it; the first is under way
	until time.Time // of the first
}

const pingWait = 2 * time.Second

func newCoordinator(members []*member, token []byte, stacks []Stack, limit time.Duration) *coordinator {
	c := &coordinator{members: members, stacks: stacks, limit: limit, events: make(chan event),
		quit: make(chan struct{}), tasks: map[int]*job{}, room: rooms(members), apart: map[string]bool{},
		progress: func(int, int) {}}
	w := &welcome{Token: token}
	for _, s := range stacks {
		w.Plans = append(w.Plans, s.Plan)
	}
	for r, m := range members {
		if m == nil {
			continue
		}
		if err := m.send(&message{Welcome: w}); err != nil {
			c.lose(r, "it could not be reached after it had come: "+err.Error())
		}
		go func() {
			for {
				msg, err := m.receive()
				select {
				case c.events <- event{r, msg, err}:
				case <-c.quit:
					return
				}
				if err != nil {
					return
				}
			}
		}()
	}
	return c
}

// end ends the ranks. What failed before its rank was known to be gone is that rank's failure, too.
func (c *coordinator) end() {
	for i := range c.results {
		if d := c.results[i].Detail.(*results.Mesh); d.Failed != "" {
			d.Gone = d.Gone || c.isGone(d.From) || c.isGone(d.To)
		}
	}
	close(c.quit)
	for _, m := range c.members {
		if m != nil {
			m.send(&message{End: true}) // it may be gone
			m.Close()
		}
	}
}

func (c *coordinator) gone() map[int]string {
	all := map[int]string{}
	for r, m := range c.members {
		if m != nil && m.gone != "" {
			all[r] = m.gone
		}
	}
	return all
}

func (c *coordinator) whyGone(rank int) string {
	if c.members[rank] == nil {
		return "it never came"
	}
	return c.members[rank].gone
}

func (c *coordinator) isGone(rank int) bool { return c.whyGone(rank) != "" }

func (c *coordinator) lose(rank int, why string) {
	if c.isGone(rank) {
		return
	}
	c.members[rank].gone = why
	c.members[rank].Close()
	for id, j := range c.tasks {
		if t := j.tasks[0]; t.From == rank || t.To == rank {
			c.finish(id, &Done{ID: id, Error: fmt.Sprintf("rank %d: %s", rank, why)})
		}
	}
}

func (c *coordinator) rounds(ctx context.Context, rounds [][]verdict.Link, shifts []int) error {
	done, total := 0, len(c.stacks)*links(rounds)
	measure := func(plan int, round []verdict.Link, control bool) error {
		if control {
			total += len(round)
		}
		err := c.round(ctx, plan, round, control)
		done += len(round)
		c.progress(done, total)
		return err
	}
	for plan := range c.stacks {
		for _, round := range rounds {
			if err := measure(plan, round, false); err != nil {
				return err
			}
		}
	}
	for plan := range c.stacks {
		if err := c.together(ctx, plan, shifts); err != nil {
			return err
		}
	}
	since := 0 // measurements since the last control
	repeat := func(plan, times int, links []verdict.Link) error {
		good, some := verdict.Control(c.ofPairs(plan), links)
		control := func(behind int) error {
			if !some || since < behind {
				return nil
			}
			since = 0
			return measure(plan, []verdict.Link{good}, true)
		}
		total += times * len(links)
		for range times {
			for _, round := range verdict.Disjoint(links) {
				if err := control(perControl); err != nil {
					return err
				}
				if err := measure(plan, round, false); err != nil {
					return err
				}
				since += len(round)
			}
		}
		return control(1)
	}
	for plan := range c.stacks {
		since = perControl
		if err := repeat(plan, times, verdict.Again(len(c.members), c.ofPairs(plan))); err != nil {
			return err
		}
		for range verdict.Connections / verdict.Some {
			if err := repeat(plan, verdict.Some, verdict.Sweep(c.ofPairs(plan))); err != nil {
				return err
			}
		}
	}
	return nil
}

const perControl = 4

// times is how often what was bad is measured again: three leave little of what is bad by chance.
const times = 3

func links(rounds [][]verdict.Link) (n int) {
	for _, r := range rounds {
		n += len(r)
	}
	return n
}

func (c *coordinator) measures(plan int) []*verdict.Measure {
	s := results.Summarise(c.results)
	if s == nil {
		return nil
	}
	return slices.DeleteFunc(s.Measures, func(m *verdict.Measure) bool { return m.Stack != c.stacks[plan].Spec })
}

func (c *coordinator) ofPairs(plan int) []*verdict.Measure {
	return slices.DeleteFunc(c.measures(plan), func(m *verdict.Measure) bool { return !results.OfPairs(m.Name) })
}

func (c *coordinator) round(ctx context.Context, plan int, round []verdict.Link, control bool) error {
	var waiting []*job
	there, back := c.stacks[plan].pointsOf()
	if len(there) == 0 {
		return nil
	}
	for _, l := range round {
		if c.areApart(plan, l) {
			continue
		}
		j := &job{link: l, tasks: []Task{{Plan: plan, From: l.A, To: l.B, Points: there, control: control}}}
		if len(back) > 0 {
			j.tasks = append(j.tasks, Task{Plan: plan, From: l.B, To: l.A, Points: back, control: control})
		}
		waiting = append(waiting, j)
	}
	return c.wait(ctx, waiting)
}

func (c *coordinator) areApart(plan int, l verdict.Link) bool {
	a, b := c.members[l.A], c.members[l.B]
	if a == nil || b == nil {
		return false
	}
	why := apart(c.stacks[plan].Spec, a, b)
	if why != "" {
		c.apart[why] = true
	}
	return why != ""
}

func (c *coordinator) wait(ctx context.Context, waiting []*job) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		waiting = c.begin(waiting)
		if len(waiting) == 0 && len(c.tasks) == 0 {
			return nil
		}
		select {
		case e := <-c.events:
			c.event(e)
		case now := <-tick.C:
			c.deadlines(now)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rooms are by machine how many ends of pairs it may have at once: as many as processors, as each end spins, and two at
// least, or two ranks on one processor would never meet.
func rooms(members []*member) map[string]int {
	cpus := map[string]map[int]bool{}
	for _, m := range members {
		if m == nil {
			continue
		}
		if cpus[m.Machine] == nil {
			cpus[m.Machine] = map[int]bool{}
		}
		for _, n := range m.CPUs {
			cpus[m.Machine][n] = true
		}
	}
	room := map[string]int{}
	for name, set := range cpus {
		room[name] = max(len(set), 2)
	}
	return room
}

func (c *coordinator) occupy(j *job, by int) {
	c.room[c.members[j.link.A].Machine] += by
	c.room[c.members[j.link.B].Machine] += by
}

func (c *coordinator) begin(waiting []*job) []*job {
	return slices.DeleteFunc(waiting, func(j *job) bool {
		if c.isGone(j.link.A) || c.isGone(j.link.B) {
			c.giveUp(j)
			return true
		}
		a, b := c.members[j.link.A], c.members[j.link.B]
		c.occupy(j, -1)
		if c.room[a.Machine] < 0 || c.room[b.Machine] < 0 || !a.pinged.IsZero() || !b.pinged.IsZero() {
			c.occupy(j, 1)
			return false // without room, or it is not known whether it is there
		}
		c.start(j)
		return true
	})
}

func (c *coordinator) start(j *job) {
	c.next++
	t := &j.tasks[0]
	t.ID, t.Addr, j.until = c.next, c.members[t.To].Addr, time.Now().Add(c.limit)
	c.tasks[t.ID] = j
	if err := c.members[t.From].send(&message{Task: t}); err != nil {
		c.lose(t.From, "it could not be reached: "+err.Error())
	}
}

func (c *coordinator) event(e event) {
	m := c.members[e.rank]
	switch {
	case e.err != nil:
		why := "its connection ended: " + e.err.Error()
		if errors.Is(e.err, io.EOF) {
			why = "it ended"
		}
		c.lose(e.rank, why)
	case e.m.Ping != 0:
		m.pinged = time.Time{}
	case e.m.Done != nil:
		if j := c.tasks[e.m.Done.ID]; j != nil && j.tasks[0].From == e.rank {
			c.finish(e.m.Done.ID, e.m.Done)
		}
	}
}

func (c *coordinator) finish(id int, d *Done) {
	j := c.tasks[id]
	delete(c.tasks, id)
	t := j.tasks[0]
	c.take(t, d)
	j.tasks = j.tasks[1:]
	if d.Error != "" && !c.isGone(t.From) {
		c.ping(t.To)
	}
	if !c.isGone(t.From) && !c.isGone(t.To) && len(j.tasks) > 0 {
		c.start(j)
		return
	}
	c.giveUp(j)
	c.occupy(j, 1)
}

func (c *coordinator) giveUp(j *job) {
	for _, t := range j.tasks {
		for _, r := range []int{t.From, t.To} {
			if why := c.whyGone(r); why != "" {
				c.take(t, &Done{Error: fmt.Sprintf("rank %d: %s", r, why)})
				break
			}
		}
	}
}

func (c *coordinator) ping(rank int) {
	if m := c.members[rank]; !c.isGone(rank) && m.pinged.IsZero() {
		m.pinged = time.Now()
		if err := m.send(&message{Ping: 1}); err != nil {
			c.lose(rank, "it could not be reached: "+err.Error())
		}
	}
}

func (c *coordinator) deadlines(now time.Time) {
	for r, m := range c.members {
		if m != nil && m.gone == "" && !m.pinged.IsZero() && now.Sub(m.pinged) > pingWait {
			c.lose(r, fmt.Sprintf("it does not answer within %v", pingWait))
		}
	}
	for _, j := range c.tasks {
		if now.After(j.until) {
			c.lose(j.tasks[0].From, fmt.Sprintf("its measurement with rank %d did not end within %v", j.tasks[0].To, c.limit))
		}
	}
}

func (c *coordinator) take(t Task, d *Done) {
	stack := c.stacks[t.Plan]
	for i, point := range t.Points {
		detail := &results.Mesh{Measure: stack.Measures[point], From: t.From, To: t.To, Limit: stack.Bad[point],
			Control: t.control}
		if stack.Measures[point] == results.Allreduce {
			detail.Ranks = len(t.More) + 1
		}
		if from, to := c.members[t.From], c.members[t.To]; from != nil && to != nil {
			detail.FromHost, detail.FromSwitch = from.Host, from.Switch
			detail.ToHost, detail.ToSwitch = to.Host, to.Switch
			detail.SameHost = from.Machine == to.Machine
			if m := detail.Measure; m == results.Bandwidth || m == results.Shift {
				detail.Expected = min(from.Expected[stack.Spec], to.Expected[stack.Spec])
			}
		}
		r := stack.Like
		if i < len(d.Results) {
			r = d.Results[i]
		} else {
			r.Op, r.SizeBytes, r.Errors = stack.Plan.Points[point].Op, int64(stack.Plan.Points[point].Size), 1
			detail.Failed, detail.Gone = d.failed(), c.isGone(t.From) || c.isGone(t.To)
		}
		r.Workload, r.Transport, r.Detail = results.Name, stack.Spec, detail
		results.Results.Apply(&r)
		c.results = append(c.results, r)
	}
}

func (d *Done) failed() string {
	if d.Code == reports.ExitCorruption {
		return corruptMark + d.Error
	}
	return d.Error
}
