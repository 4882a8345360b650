package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The starvation workload: two classes of writes on one QP. The high class is offered
// at a share of what the transport carries, from intended starts; the low class is a
// stream that takes what is left. What a scheduler leaves to the low class, when the
// high one asks for everything, is its rule against starvation.

// DefaultHighPriority is the high class's; the low class has 0.
const DefaultHighPriority = 1

const maxHighLoad = 1000 // percent

// validateStarvation checks what only this workload has.
func (p Point) validateStarvation() error {
	switch {
	case p.Op != transports.KindWrite.String():
		return errors.New("both classes are of write")
	case !(p.HighLoad >= 0 && p.HighLoad <= maxHighLoad):
		return fmt.Errorf("high load of %v %%: want 0 to %d", p.HighLoad, maxHighLoad)
	case p.QPs != 0:
		return errors.New("it has one QP")
	}
	return nil
}

// starvationShape fills in what the workload needs. Depth is that of each class, and
// each has half of the slots.
func (sh *Shape) starvationShape(p *Plan, caps transports.Caps) {
	sh.QPs, sh.Threads, sh.RecvDepth, sh.Moderation, sh.Inline = 1, 1, 1, 1, 0
	if sh.Depth = p.Depth; sh.Depth == 0 {
		sh.Depth = DefaultBulkDepth
	}
	sh.Slots = 2 * max(1, min(sh.Depth, slotBudget/2/sh.stride()))
	sh.Arrival, sh.ReadDepth, sh.HighPriority = ArrivalCompletion, 1, p.HighPriority
}

func (sh *Shape) checkStarvation() error {
	if sh.Polling != PollingBusy || sh.QPs != 1 || sh.Threads != 1 || sh.Slots%2 != 0 || sh.Arrival != ArrivalCompletion || sh.Depth > maxDepth/2 {
		return fmt.Errorf("%s polling, %d QPs, %d threads, %d slots, depth %d", sh.Polling, sh.QPs, sh.Threads, sh.Slots, sh.Depth)
	}
	return nil
}

func starvationLimits(p *Plan, _ Point, caps transports.Caps) error {
	if n := caps.Priorities; n > 0 && int(p.HighPriority) >= n {
		return fmt.Errorf("high priority %d is above the limit of %d", p.HighPriority, n-1)
	}
	if limit := maxUserDepth(caps); limit > 0 && 2*max(p.Depth, DefaultBulkDepth) > limit {
		return fmt.Errorf("a depth of %d for each of two classes is above the limit of %d", max(p.Depth, DefaultBulkDepth), limit)
	}
	return nil
}

// Classes of the workload, by which completions are told apart.
const (
	lowClass  = 0
	highClass = 1
	endSlot   = 2 // of the read that proves that everything arrived
)

// classes is what the client does in a phase.
type classes struct {
	low, high bool
	interval  float64 // ns between two starts of the high class; 0: a closed loop
}

// rivals is the client's loop. The clock is read once a turn.
type rivals struct {
	classes
	w      *worker
	l      *lane
	pace   *Pacer // nil: closed loop
	posted [2]int64
	out    [2]int
	ended  [2]int64 // in the window
	last   bool     // the closing read is back
}

func newRivals(w *worker, c classes) *rivals {
	d := &rivals{classes: c, w: w, l: w.lanes[0]}
	if c.interval > 0 {
		d.pace = NewPacer(c.interval, false, w.sh.Seed)
	}
	return d
}

// run is one phase. With a duration, what has completed when it is over counts, so that
// what a starved class has queued does not; with a number of operations all of them do.
func (d *rivals) run() error {
	w := d.w
	w.open()
	if d.pace != nil {
		d.pace.Start(w.begin)
	}
	err := d.flow()
	d.snapshot()
	if err == nil || err == errStop && w.mayFinish() {
		if e := d.drain(); e != nil {
			err = e
		} else if w.lim.dur == 0 {
			d.snapshot()
		}
	}
	d.l.posted, d.l.high = d.posted[lowClass], d.posted[highClass]
	return err
}

func (d *rivals) snapshot() {
	d.w.end = now()
	for c := range d.ended {
		d.ended[c] = d.posted[c] - int64(d.out[c])
	}
	d.w.ops = d.ended[lowClass] + d.ended[highClass]
}

func (d *rivals) flow() error {
	w := d.w
	for {
		t := now()
		if w.lim.dur > 0 && t-w.begin >= int64(w.lim.dur) || w.lim.ops > 0 && d.posted[lowClass]+d.posted[highClass] >= w.lim.ops {
			return nil
		}
		if w.stopped() {
			return errStop
		}
		if err := d.push(t); err != nil {
			return err
		}
		if err := d.collect(); err != nil {
			return err
		}
	}
}

// push posts what is due of the high class, and then one of the low class, so that a
// full queue of the low class does not delay the high one's starts.
func (d *rivals) push(t int64) error {
	for d.high && d.out[highClass] < d.w.sh.Depth && (d.pace == nil || d.pace.Due() <= t) {
		posted, err := d.post(highClass)
		if err != nil || !posted {
			return err
		}
		if d.pace == nil {
			break
		}
		d.pace.Next()
	}
	if d.low && d.out[lowClass] < d.w.sh.Depth {
		_, err := d.post(lowClass)
		return err
	}
	return nil
}

func (d *rivals) post(class int) (bool, error) {
	l, sh := d.l, d.w.sh
	half := sh.Slots / 2
	slot := class*half + int(d.posted[class]%int64(half))
	l.pair[0] = transports.Op{Kind: transports.KindWrite, Local: uint64(slot * sh.stride()), Remote: uint64(sh.rxSlot(slot)), Len: uint32(sh.Size), Slot: uint32(class)}
	if class == highClass {
		l.pair[0].Priority = sh.HighPriority
	}
	switch _, err := l.s.Post(l.pair[:1]); {
	case err == rdma.ErrQueueFull:
		return false, nil
	case err != nil:
		return false, d.w.lost(l, "post write", err)
	}
	d.posted[class]++
	d.out[class]++
	return true, nil
}

func (d *rivals) collect() error {
	w := d.w
	if d.out[lowClass]+d.out[highClass] == 0 && !d.last {
		w.spins = 0 // waiting for the next start is no stall
	}
	n, err := w.poll(d.l)
	if err != nil {
		return err
	}
	for i := range w.done[:n] {
		c := &w.done[i]
		switch {
		case c.Status != rdma.StatusSuccess:
			return statusError(d.l, *c)
		case c.Slot == endSlot:
			d.last = false
		default:
			d.out[c.Slot]--
		}
	}
	return nil
}

// drain brings home what was posted. A read behind it proves that everything arrived.
func (d *rivals) drain() error {
	for d.out[lowClass]+d.out[highClass] > 0 {
		if err := d.collect(); err != nil {
			return err
		}
	}
	l, sh := d.l, d.w.sh
	l.pair[0] = transports.Op{Kind: transports.KindRead, Local: uint64(sh.ctlRx(0)), Remote: uint64(sh.ctlTx(0)), Len: 1, Slot: endSlot}
	if err := d.w.post(l, l.pair[:1]); err != nil {
		return err
	}
	d.last = true
	for d.last {
		if err := d.collect(); err != nil {
			return err
		}
	}
	return nil
}

// verifyClasses holds the target's slots against what each class sent.
func (w *worker) verifyClasses(l *lane, gen int, n laneCount) error {
	sh, half := l.sh, l.sh.Slots/2
	for s := range sh.Slots {
		slot := l.mem[sh.rxSlot(s):][:sh.stride()]
		data, gap, count := slot[:sh.Size], slot[sh.Size:], n.Count
		if s >= half {
			count = n.High
		}
		what := fmt.Sprintf("window slot %d", s)
		if int64(s%half) < count {
			if i, want := matchPattern(data, patternState(l.seedIn, gen, l.index, s)); i >= 0 {
				return w.corrupt(l, what, i, want, data[i])
			}
		} else if i := firstNonZero(data); i >= 0 {
			return w.corrupt(l, what+" (never written)", i, 0, data[i])
		}
		if i := firstNonZero(gap); i >= 0 {
			return w.corrupt(l, what+" (behind its end)", i, 0, gap[i])
		}
	}
	return nil
}

// runCapacity measures what the transport carries of the size, before every point: on
// a busy machine it is not the same for long.
func (m *measurement) runCapacity(ctx context.Context) error {
	p, size := &m.c.plan, m.sh.Size
	m.crew.classes = classes{low: true}
	out, _, err := m.phase(ctx, "one class alone", genAlone, limits{p.Iterations, p.Duration})
	if err != nil {
		return err
	}
	m.capacity = reports.NewThroughput(out.ops*int64(size), out.ops, out.window).BytesPerSecond
	if !(m.capacity > 0) {
		return failed(m.sh.Point.String(), errors.New("one class alone completed nothing in the window: take a longer --duration"))
	}
	m.crew.classes = classes{low: true, high: m.sh.HighLoad > 0}
	if m.sh.HighLoad > 0 {
		m.crew.classes.interval = float64(size) / (m.capacity * m.sh.HighLoad / 100) * 1e9
	}
	return nil
}

// starvation completes the result.
func (m *measurement) starvation(res *reports.Result, out *outcome) {
	class := func(c int) reports.ClassShare {
		t := reports.NewThroughput(out.ended[c]*int64(m.sh.Size), out.ended[c], time.Duration(out.window))
		return reports.ClassShare{Operations: out.ended[c], BytesPerSecond: t.BytesPerSecond}
	}
	res.Starvation = &reports.Starvation{HighLoadPercent: m.sh.HighLoad, HighPriority: int(m.sh.HighPriority), CapacityBytesPerSecond: m.capacity,
		High: class(highClass), Low: class(lowClass)}
}
