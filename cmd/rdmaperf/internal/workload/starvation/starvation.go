// Package starvation is the workload of two classes of writes on one queue pair. The high class is offered at a share
// of what the transport carries; the low class takes what is left. What a scheduler leaves to it is its rule against
// starvation.
//
// Each class is cut out of a source of its own (drive.Cuts), so messages have numbers. A write completes nothing at the
// target: behind passes over its slots that the seed chooses, a class waits until the client has read them back. The
// server compares the last pass.
package starvation

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// DefaultHighPriority is the high class's; the low class has 0.
const DefaultHighPriority = 1

const maxHighLoad = 1000 // percent

// Load is what the high class offers, in percent of what the transport carries, and its priority.
type Load struct {
	High     float64 `json:"high_load_percent"`
	Priority uint8   `json:"high_priority"`
}

func (l *Load) check(pt engine.Point) error {
	switch {
	case pt.Op != transports.KindWrite.String():
		return errors.New("both classes are of write")
	case !(l.High >= 0 && l.High <= maxHighLoad):
		return fmt.Errorf("high load of %v %%: want 0 to %d", l.High, maxHighLoad)
	case pt.QPs != 0:
		return errors.New("it has one QP")
	}
	return nil
}

// defaultDepth is of each class, as of the bulk in head-of-line blocking.
const defaultDepth = 16

func depthOf(p *engine.Plan) int { return cmp.Or(p.Depth, defaultDepth) }

func point(p *engine.Plan, op string, size int, l Load) engine.Point {
	return engine.Point{Workload: Name, Op: op, Size: size, Options: engine.PackOptions(l), Windows: 2,
		Words: fmt.Sprintf("%s %s %d B at %v %%", Name, op, size, l.High),
		Needs: engine.Needs{Kinds: transports.Kinds(transports.KindRead), Why: "which proves that data arrived",
			Priority: int(l.Priority),
			Sessions: 1, Depth: 2 * depthOf(p), DepthOf: fmt.Sprintf("a depth of %d for each of two classes",
				depthOf(p))}}
}

const noEvents = "the high class is paced by spinning, so it needs busy polling"

// shape is that of a point. Depth is that of each class, and each has half of the slots.
func shape(s *engine.Setup) (*engine.Shape, Load, error) {
	l, err := engine.ReadOptions(s.Point, func(l *Load, _ int) error {
		if s.Plan.Polling == engine.PollingEvent {
			return errors.New(noEvents)
		}
		return l.check(s.Point)
	})
	if err != nil {
		return nil, l, err
	}
	sh, err := s.NewShape()
	if err != nil {
		return nil, l, err
	}
	sh.QPs, sh.Threads, sh.Inline, sh.Polling, sh.Target = 1, 1, 0, engine.PollingBusy, engine.TargetPolling
	sh.Depth = min(depthOf(s.Plan), engine.MaxDepth/2)
	sh.Slots = 2 * max(1, min(sh.Depth, engine.SlotBudget/2/sh.Stride()))
	sh.Arrival, sh.ReadDepth = engine.ArrivalCompletion, 1
	sh.Layout = sh.Behind(2 * drive.SourceSize(sh.Size)) // a source for each class
	sh.Config = sh.SessionConfig()
	sh.Config.SendDepth = 2*sh.Depth + engine.CtlSlots
	return sh, l, nil
}

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, l, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	var d *sources
	m, err := r.Connect(ctx, sh, func(c *engine.Group) (engine.Side, error) {
		d = newSources(c, l)
		return d, nil
	})
	if err != nil {
		return err
	}
	d.high = true
	if err = m.Warmed(ctx); err == nil {
		err = d.measureCapacity(ctx, m)
	}
	if err == nil {
		err = m.Measure(ctx, reports.SamplesLatency)
	}
	if err == nil {
		d.high, d.interval = true, 0
		err = m.Prove(ctx)
	}
	err = m.Close(ctx, err)
	res := m.Result()
	sh.Barrier(res.Parameters)
	res.Parameters["high_load_percent"], res.Parameters["high_priority"] = l.High, l.Priority
	if m.Out != nil {
		d.complete(m, &res, m.Out)
	}
	r.Add(res)
	return err
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	sh, _, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, func(c *engine.Group) (engine.Side, error) {
		return drive.NewExposed(c, false, verifyClasses), nil
	})
}

// Classes of the workload, by which completions differ.
const (
	lowClass    = 0
	highClass   = 1
	endSlot     = 2 // of the read that proves that everything arrived
	compareSlot = 3 // of one that brings back what lies in a slot
)

// sources is the client's side. The clock is read once a turn.
type sources struct {
	high     bool    // beside the low class, in the next phase
	interval float64 // ns between two starts of the high class; 0: a closed loop

	c        *engine.Group
	w        *engine.Worker
	l        *engine.Lane
	load     Load
	capacity float64 // bytes a second of one class alone

	pace   *engine.Pacer // nil: closed loop
	posted [2]int64
	out    [2]int
	ended  [2]int64 // in the window
	last   bool     // the closing read is under way

	cuts      [2]drive.Cuts
	compared  [2]int64 // messages up to the last pass that was compared
	comparing bool     // a pass of one class is being read back
	class     int      // which
	next      int64    // of it, the message that is read next
	reading   bool     // a read is under way
}

func newSources(c *engine.Group, load Load) *sources {
	w, l := c.Workers[0], c.Lanes[0]
	return &sources{c: c, w: w, l: l, load: load, cuts: cutsOf(drive.NewProof(w, l))}
}

func cutsOf(p drive.Proof) [2]drive.Cuts {
	half := p.L.Sh.Slots / 2
	return [2]drive.Cuts{drive.NewCuts(p, lowClass, half), drive.NewCuts(p, highClass, half)}
}

type counts struct{ ended, posted [2]int64 }

func (d *sources) Prepare(gen int) error {
	d.l.ClearSlots()
	for class := range d.cuts {
		d.cuts[class].Begin(gen)
	}
	return nil
}

func (d *sources) Loop(*engine.Worker) func() error {
	d.pace = nil
	if d.interval > 0 {
		d.pace = engine.NewPacer(d.interval, false, d.c.Sh.Seed)
	}
	d.posted, d.out, d.ended, d.last = [2]int64{}, [2]int{}, [2]int64{}, false
	d.compared, d.comparing, d.reading = [2]int64{}, false, false
	return d.run
}

func (d *sources) Detail() any                          { return counts{d.ended, d.posted} }
func (d *sources) Verify(int, []engine.LaneCount) error { return nil }
func (d *sources) Close() error                         { return nil }

func (d *sources) Counts() []engine.LaneCount {
	return []engine.LaneCount{{First: uint64(d.compared[lowClass]), Count: d.posted[lowClass],
		SecondFirst: uint64(d.compared[highClass]), Second: d.posted[highClass]}}
}

// run is one phase. By time only what completed counts, so that what a starved class has queued does not.
func (d *sources) run() error {
	w := d.w
	deadline := w.Open()
	if d.pace != nil {
		d.pace.Start(w.Begin)
	}
	err := d.flow(deadline)
	d.snapshot()
	return w.Finish(err, d.drain)
}

func (d *sources) snapshot() {
	d.w.End = engine.Now()
	for c := range d.ended {
		d.ended[c] = d.posted[c] - int64(d.out[c])
	}
	d.w.Ops = d.ended[lowClass] + d.ended[highClass]
}

func (d *sources) flow(deadline int64) error {
	w := d.w
	for {
		t := engine.Now()
		if t >= deadline || w.Lim.Ops > 0 && d.posted[lowClass]+d.posted[highClass] >= w.Lim.Ops {
			return nil
		}
		if w.Stopped() {
			return engine.ErrStop
		}
		if err := d.push(t); err != nil {
			return err
		}
		if err := d.collect(); err != nil {
			return err
		}
	}
}

// push posts high first, so that a full queue of the low class does not delay the high one's starts.
func (d *sources) push(t int64) error {
	for d.high && d.out[highClass] < d.w.Sh.Depth && (d.pace == nil || d.pace.Due() <= t) {
		posted, err := d.post(highClass)
		if err != nil {
			return err
		}
		if !posted || d.pace == nil {
			break
		}
		d.pace.Next()
	}
	if d.out[lowClass] < d.w.Sh.Depth {
		if _, err := d.post(lowClass); err != nil {
			return err
		}
	}
	return d.readBack()
}

// held reports whether a class waits for the comparison of a pass, which begins when all of that is complete.
func (d *sources) held(class int) bool {
	sh, n := d.w.Sh, d.posted[class]
	if !sh.Verify {
		return false
	}
	room, due := d.cuts[class].Room(n, 1)
	if due && !d.comparing && d.out[class] == 0 {
		d.cuts[class].Ask(n)
		d.comparing, d.class, d.next = true, class, n-int64(sh.Slots/2)
	}
	return room == 0
}

func (d *sources) readBack() error {
	if !d.comparing || d.reading {
		return nil
	}
	sh := d.w.Sh
	at := uint64(d.cuts[d.class].Slot(d.next))
	op := transports.Op{Kind: transports.KindRead, Local: at, Remote: at, Len: uint32(sh.Size), Slot: compareSlot}
	if d.class == highClass {
		op.Priority = d.load.Priority
	}
	var err error
	d.reading, err = d.w.TryPost(d.l, op)
	return err
}

func (d *sources) compare() error {
	class, cuts := d.class, &d.cuts[d.class]
	d.reading = false
	if err := cuts.Written(d.next, d.next+1); err != nil {
		return err
	}
	if d.next++; d.next == d.posted[class] {
		d.comparing, cuts.Waiting, d.compared[class] = false, false, d.next
	}
	return nil
}

func (d *sources) post(class int) (bool, error) {
	if d.held(class) {
		return false, nil
	}
	n, cuts := d.posted[class], &d.cuts[class]
	op := transports.Op{Kind: transports.KindWrite, Local: cuts.From(n), Remote: uint64(cuts.Slot(n)),
		Len: uint32(d.w.Sh.Size), Slot: uint32(class)}
	if class == highClass {
		op.Priority = d.load.Priority
	}
	if posted, err := d.w.TryPost(d.l, op); !posted {
		return false, err
	}
	d.posted[class]++
	d.out[class]++
	return true, nil
}

func (d *sources) collect() error {
	w := d.w
	if d.out[lowClass]+d.out[highClass] == 0 && !d.last && !d.reading {
		w.Spins = 0 // waiting for the next start is no stall
	}
	n, err := w.Poll(d.l)
	if err != nil {
		return err
	}
	for i := range w.Done[:n] {
		c := &w.Done[i]
		switch {
		case c.Status != rdma.StatusSuccess:
			return engine.StatusError(d.l, *c)
		case c.Slot == endSlot:
			d.last = false
		case c.Slot == compareSlot:
			if err := d.compare(); err != nil {
				return err
			}
		default:
			d.out[c.Slot]--
		}
	}
	return nil
}

// drain completes what was posted. A read behind it proves that everything arrived.
func (d *sources) drain() error {
	for d.out[lowClass]+d.out[highClass] > 0 || d.comparing {
		if err := d.readBack(); err != nil {
			return err
		}
		if err := d.collect(); err != nil {
			return err
		}
	}
	if err := drive.ReadBehind(d.w, d.l, endSlot); err != nil {
		return err
	}
	d.last = true
	for d.last {
		if err := d.collect(); err != nil {
			return err
		}
	}
	if d.w.Lim.Dur == 0 {
		d.snapshot()
	}
	return nil
}

// verifyClasses compares what the client did not of the last pass.
func verifyClasses(p *drive.Proof, n engine.LaneCount) error {
	cuts := cutsOf(*p)
	if err := cuts[lowClass].Rest(int64(n.First), n.Count); err != nil {
		return err
	}
	return cuts[highClass].Rest(int64(n.SecondFirst), n.Second)
}

// measureCapacity runs before every point: on a busy machine the capacity is not the same for long.
func (d *sources) measureCapacity(ctx context.Context, m *engine.Measurement) error {
	size := m.Sh.Size
	d.high, d.interval = false, 0
	out, _, err := m.Phase(ctx, "one class alone", engine.GenAlone, m.Window())
	if err != nil {
		return err
	}
	d.capacity = reports.NewThroughput(out.Ops*int64(size), out.Ops, out.Window).BytesPerSecond
	if !(d.capacity > 0) {
		return engine.Failed(m.Sh.String(),
			errors.New("one class alone completed nothing in the window: take a longer --duration"))
	}
	if d.high = d.load.High > 0; d.high {
		d.interval = float64(size) / (d.capacity * d.load.High / 100) * 1e9
	}
	return nil
}

func (d *sources) complete(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	did, _ := out.Detail.(counts)
	if v := res.Verification; v != nil {
		v.Messages = did.posted[lowClass] + did.posted[highClass] // what was queued at the end was compared, too
	}
	share := func(c int) ClassShare {
		n := did.ended[c]
		t := reports.NewThroughput(n*int64(m.Sh.Size), n, out.Window)
		return ClassShare{Operations: n, BytesPerSecond: t.BytesPerSecond}
	}
	res.Detail = &Starvation{HighLoadPercent: d.load.High, HighPriority: int(d.load.Priority),
		CapacityBytesPerSecond: d.capacity, High: share(highClass), Low: share(lowClass)}
}
