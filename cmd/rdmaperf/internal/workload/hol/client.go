package hol

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type parts struct{ bulk, probes bool }

type clientLane struct {
	drive.Sender
	recvs []transports.Op
	acked uint64     // bulk messages that the peer said it took
	cut   int        // bytes of the message at the head that are posted as slices
	cuts  drive.Cuts // of bulk

	barriers uint64 // and requests to compare: answered, of the session
	empties  uint64 // empty messages received, of the session
	answered bool   // the phase's barrier was
}

// client keeps the bulk stream full, starts probes when due, and polls. The clock is read once a turn, and for each
// echo. An open-loop probe is timed from its intended start, so time that this thread spends on posting bulk counts.
type client struct {
	parts       // of the next phase
	set         *setup
	c           *engine.Group
	w           *engine.Worker
	lanes       []*clientLane
	bulk, probe *clientLane // one in the variant same-qp
	ref         rdma.Buffer // what the probes' sources should hold; no transport knows it
	begun       bool

	pace    *engine.Pacer // nil: closed loop, one probe under way
	gap     int64         // of the closed loop: ns between two starts at least
	last    int64         // start of the last probe
	starts  []int64
	posted  uint64 // probes of this phase
	echoed  uint64
	leaving int // probes whose send is not complete

	answeredAt int64 // when the last one was, ns

	found *HOL
}

func newClient(c *engine.Group) (*client, error) {
	sh := c.Sh
	s := setUp(sh)
	d := &client{set: s, c: c, w: c.Workers[0], starts: make([]int64, s.probeSlots)}
	for _, base := range c.Lanes {
		d.lanes = append(d.lanes, &clientLane{Sender: drive.NewSender(base), recvs: receivesOf(sh),
			cuts: drive.NewCuts(drive.NewProof(d.w, base), 0, sh.Slots)})
	}
	d.bulk, d.probe = d.lanes[0], d.lanes[len(d.lanes)-1]
	if s.ProbeOne {
		d.gap = int64(s.ProbeInterval)
	} else if s.ProbeInterval > 0 {
		d.pace = engine.NewPacer(float64(s.ProbeInterval), false, sh.Seed)
	}
	var err error
	if d.ref, err = rdma.Alloc(s.probeSlots * probeStride(sh)); err != nil {
		return nil, engine.Failed("set up session", err)
	}
	return d, nil
}

func (d *client) Close() error { return d.ref.Free() }

func (d *client) Prepare(gen int) error {
	defer func() { d.begun = true }()
	sh := d.c.Sh
	for _, l := range d.lanes {
		l.ClearSlots()
		l.cuts.Begin(gen)
		l.First, l.Head, l.Out, l.Posted, l.Fenced = 0, 0, 0, 0, false
		l.answered, l.cut = false, 0
		if d.begun {
			continue
		}
		if err := l.PostAll(l.recvs); err != nil {
			return err
		}
	}
	state := d.probe.cuts.State(probePattern)
	engine.FillPattern(d.probe.Mem[probeTx(sh, 0):compareTx(sh)], state)
	engine.FillPattern(d.ref.Bytes(), state)
	return nil
}

func (d *client) Counts() []engine.LaneCount {
	counts := make([]engine.LaneCount, len(d.lanes))
	for i, l := range d.lanes {
		counts[i] = l.Sent()
	}
	return counts
}

func (d *client) Verify(int, []engine.LaneCount) error { return nil } // every echo was compared

func (d *client) Loop(*engine.Worker) func() error {
	clear(d.starts)
	d.posted, d.echoed, d.leaving, d.last = 0, 0, 0, -d.gap
	return d.run
}

// run is one phase, which ends when every echo is here and a round trip proves that the bulk arrived.
func (d *client) run() error {
	w := d.w
	deadline := w.Open()
	if d.pace != nil {
		d.pace.Start(w.Begin)
	}
	err := w.Finish(d.flow(deadline), d.drain)
	w.End = engine.Now()
	w.Ops = d.bulk.Posted
	if l := d.bulk; d.parts.bulk && !l.answered {
		w.Ops = max(0, w.Ops-int64(l.Out)) // what nobody knows did not happen
	}
	return err
}

func (d *client) flow(deadline int64) error {
	w := d.w
	for {
		t := engine.Now()
		if t >= deadline || d.enough() {
			d.overdue(min(t, deadline))
			return nil
		}
		if w.Stopped() {
			d.overdue(t)
			return engine.ErrStop
		}
		if d.parts.bulk {
			if err := d.pushBulk(); err != nil {
				return err
			}
		}
		if d.probes {
			if err := d.pushProbes(t); err != nil {
				return err
			}
		}
		if err := d.collect(); err != nil {
			return err
		}
	}
}

// overdue counts the probes that were due and found no room until the window ended.
func (d *client) overdue(end int64) {
	if d.pace == nil || !d.probes {
		return
	}
	if d.w.Lim.Ops > 0 && d.posted >= uint64(d.w.Lim.Ops) {
		return // the next one was never meant to be
	}
	d.w.Unsent = d.pace.Overdue(end, d.w.Rec.AtLeast)
}

func (d *client) enough() bool {
	done := d.bulk.Posted
	if d.probes {
		done = int64(d.echoed)
	}
	return d.w.Lim.Ops > 0 && done >= d.w.Lim.Ops
}

func (d *client) idle() bool { return d.posted == d.echoed && d.leaving == 0 && d.bulk.Out == 0 }

func (d *client) pushBulk() error {
	l, sh := d.bulk, d.w.Sh
	if d.set.AppWindow > 0 {
		return d.pushSlices(true)
	}
	k := min(sh.Depth-l.Out, drive.Batch(sh))
	if l.TakesReceive {
		k = min(k, creditRoom(sh)-int(l.Messages-l.acked))
	}
	if !d.probes && d.w.Lim.Ops > 0 {
		k = int(min(int64(k), d.w.Lim.Ops-l.Posted))
	}
	k, err := d.own(l, k)
	if k <= 0 || err != nil {
		return err
	}
	ops := l.Ops[l.Head : l.Head+k]
	for i := range ops {
		ops[i].Local = l.cuts.From(l.Posted + int64(i))
	}
	_, err = l.Push(d.w, k)
	return err
}

// own bounds a batch to a pass that the target compares, and asks for that at its end; until then nothing is posted.
func (d *client) own(l *clientLane, k int) (int, error) {
	sh := l.Sh
	if !sh.Verify || l.Kind != transports.KindWrite {
		return k, nil
	}
	room, due := l.cuts.Room(l.Posted, k)
	if !due {
		return room, nil
	}
	at := compareTx(sh)
	binary.LittleEndian.PutUint64(l.Mem[at:], uint64(l.Posted)-uint64(sh.Slots))
	posted, err := d.w.TryPost(&l.Lane, transports.Op{Kind: transports.KindSend, Local: uint64(at),
		Len: uint32(compareSize(sh)), Slot: slotCompare})
	if posted {
		l.Out++
		l.cuts.Ask(l.Posted)
	}
	return 0, err
}

// pushSlices posts slices, which out counts, as far as the window goes, and ends messages. more: another may begin.
func (d *client) pushSlices(more bool) error {
	l, sh := d.bulk, d.w.Sh
	for l.Out < d.set.AppWindow {
		if l.cut == 0 && (!more || !d.probes && d.w.Lim.Ops > 0 && l.Posted >= d.w.Lim.Ops) {
			return nil
		}
		if l.cut == 0 {
			if k, err := d.own(l, 1); k == 0 || err != nil {
				return err
			}
		}
		op := l.Ops[l.Head]
		op.Local = l.cuts.From(l.Posted) + uint64(l.cut)
		op.Remote += uint64(l.cut)
		op.Len = uint32(min(d.set.AppSlice, sh.Size-l.cut))
		if posted, err := d.w.TryPost(&l.Lane, op); !posted {
			return err
		}
		l.Out++
		if l.cut += int(op.Len); l.cut == sh.Size {
			l.cut = 0
			l.Posted++
			l.Head = (l.Head + 1) % sh.Slots
		}
	}
	return nil
}

// pushProbes posts the probes that are due at t. One that finds no room keeps its intended start.
func (d *client) pushProbes(t int64) error {
	l, sh := d.probe, d.w.Sh
	for int(d.posted-d.echoed) < d.set.probeSlots && d.leaving < d.set.probeSlots {
		var start int64
		switch {
		case d.w.Lim.Ops > 0 && d.posted >= uint64(d.w.Lim.Ops):
			return nil
		case d.pace != nil:
			if start = d.pace.Due(); start > t {
				return nil
			}
		case d.posted > d.echoed, t-d.last < d.gap:
			return nil
		}
		at := d.stamp(d.posted)
		op := transports.Op{Kind: transports.KindSend, Flags: probeFlags(sh), Priority: d.set.ProbePriority,
			Local: uint64(at), Len: uint32(d.set.ProbeSize), Slot: slotProbe}
		if d.pace == nil {
			start = engine.Now()
		}
		if posted, err := d.w.TryPost(&l.Lane, op); !posted {
			return err
		}
		d.starts[d.posted%uint64(d.set.probeSlots)] = start
		d.last = start
		d.posted++
		d.leaving++
		if d.pace != nil {
			d.pace.Next()
		}
	}
	return nil
}

func (d *client) stamp(i uint64) int {
	l, n := d.probe, d.set.ProbeSize
	off := int(i%uint64(d.set.probeSlots)) * probeStride(d.w.Sh)
	at := probeTx(d.w.Sh, 0) + off
	drive.Stamp(l.Mem[at:at+n], i)
	drive.Stamp(d.ref.Bytes()[off:off+n], i)
	return at
}

func (d *client) collect() error {
	if d.idle() {
		d.w.Spins = 0 // waiting for the next start is no stall
	}
	if err := d.reap(d.bulk); err != nil || d.probe == d.bulk {
		return err
	}
	return d.reap(d.probe)
}

func (d *client) reap(l *clientLane) error {
	n, err := d.w.Poll(&l.Lane)
	if err != nil {
		return err
	}
	for i := range d.w.Done[:n] {
		c := &d.w.Done[i]
		switch {
		case c.Status != rdma.StatusSuccess:
			return engine.StatusError(&l.Lane, *c)
		case c.Kind != transports.KindRecv:
			if c.Slot == slotProbe {
				d.leaving--
			} else {
				l.Out--
			}
			continue
		case c.Len == 0:
			err = d.empty(l)
		default:
			err = d.echo(l, c)
		}
		if err != nil {
			return err
		}
		l.Pair[0] = l.recvs[c.Slot]
		if err := d.w.Post(&l.Lane, l.Pair[:1]); err != nil {
			return err
		}
	}
	return nil
}

// echo takes the answer of the oldest probe: one QP keeps its messages in order.
func (d *client) echo(l *clientLane, c *transports.Done) error {
	w, sh := d.w, d.w.Sh
	t := engine.Now()
	if d.echoed == d.posted || l != d.probe {
		return w.Lost(&l.Lane, "read echo", fmt.Errorf("%d bytes that no probe asked for", c.Len))
	}
	slot := int(d.echoed % uint64(d.set.probeSlots))
	w.Record(t, t-d.starts[slot], 0)
	d.answeredAt = t
	if int(c.Len) != d.set.ProbeSize {
		return engine.Failed(sh.String(), fmt.Errorf("qp %d: echo %d has %d bytes, want %d", l.Index, d.echoed, c.Len,
			d.set.ProbeSize))
	}
	if sh.Verify {
		got := l.Mem[recvAt(sh, int(c.Slot)):][:d.set.ProbeSize]
		want := d.ref.Bytes()[slot*probeStride(sh):][:d.set.ProbeSize]
		if err := l.cuts.Echo("echo of probe", d.echoed, got, want); err != nil {
			return err
		}
	}
	d.echoed++
	return nil
}

// empty takes a credit or, behind all credits, the answer to a barrier.
func (d *client) empty(l *clientLane) error {
	l.empties++
	credits := uint64(0)
	if l.TakesReceive {
		credits = l.Messages / uint64(creditEvery(l.Sh))
	}
	switch given := l.empties - l.barriers; {
	case l.cuts.Waiting && given == credits+1:
		l.cuts.Waiting = false
		l.barriers++
	case l.Fenced && !l.answered && given == credits+1:
		l.answered = true
		l.barriers++
	case given > credits:
		return d.w.Lost(&l.Lane, "read credit", fmt.Errorf("%d of %d", given, credits))
	default:
		l.acked = given * uint64(creditEvery(l.Sh))
	}
	return nil
}

func (d *client) drain() error {
	l := d.bulk
	for {
		if l.cut > 0 {
			if err := d.pushSlices(false); err != nil {
				return err
			}
		}
		if d.parts.bulk && !l.Fenced && l.cut == 0 && !l.cuts.Waiting {
			posted, err := d.w.TryPost(&l.Lane, transports.Op{Kind: transports.KindSend, Slot: slotBarrier})
			if err != nil {
				return err
			}
			if posted {
				l.Fenced = true
				l.Out++
			}
		}
		if d.idle() && (!d.parts.bulk || l.answered) {
			return nil
		}
		if err := d.collect(); err != nil {
			return err
		}
	}
}
