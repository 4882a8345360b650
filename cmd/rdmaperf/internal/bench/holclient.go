package bench

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// parts says what the client does in a phase of the head-of-line workload.
type parts struct{ bulk, probes bool }

// duet is the client's loop: it keeps the bulk stream full, starts probes when
// they are due, and polls the one or two QPs. The clock is read once a turn, and
// once for each echo. An open-loop probe is timed from its intended start, so the
// time that this thread spends on posting bulk counts, as it would for an
// application with one thread.
type duet struct {
	parts
	w           *worker
	bulk, probe *lane // one lane in the arm same-qp

	pace    *Pacer // nil: closed loop, one probe under way
	starts  []int64
	posted  uint64 // probes of this phase
	echoed  uint64
	leaving int // probes whose send is not complete
}

func newDuet(w *worker, p parts, pace *Pacer) *duet {
	return &duet{parts: p, w: w, bulk: w.lanes[0], probe: w.lanes[len(w.lanes)-1], pace: pace, starts: make([]int64, w.sh.ProbeSlots)}
}

// run is one phase. The window ends when every echo is here and a round trip
// behind the last bulk operation proves that all of it arrived.
func (d *duet) run() error {
	w := d.w
	w.open()
	if d.pace != nil {
		d.pace.Start(w.begin)
	}
	err := d.flow()
	if err == nil || err == errStop && w.mayFinish() {
		if e := d.drain(); e != nil {
			err = e
		}
	}
	w.end = now()
	w.ops = d.bulk.posted
	if l := d.bulk; d.parts.bulk && !l.hol.answered {
		w.ops = max(0, w.ops-int64(l.out)) // what nobody knows did not happen
	}
	return err
}

// flow lasts until the limits are reached.
func (d *duet) flow() error {
	w := d.w
	deadline := int64(1<<63 - 1)
	if w.lim.dur > 0 {
		deadline = w.begin + int64(w.lim.dur)
	}
	for {
		t := now()
		if t >= deadline || d.enough() {
			return nil
		}
		if w.stopped() {
			return errStop
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

// enough tells that the iterations are done: probes where there are any.
func (d *duet) enough() bool {
	switch ops := d.w.lim.ops; {
	case ops == 0:
		return false
	case d.probes:
		return d.echoed >= uint64(ops)
	default:
		return d.bulk.posted >= ops
	}
}

// idle tells that nothing is under way.
func (d *duet) idle() bool { return d.posted == d.echoed && d.leaving == 0 && d.bulk.out == 0 }

func (d *duet) pushBulk() error {
	l, sh := d.bulk, d.w.sh
	if sh.AppWindow > 0 {
		return d.pushSlices(true)
	}
	k := min(sh.Depth-l.out, sh.batch())
	if l.takesReceive {
		k = min(k, sh.creditRoom()-int(l.messages-l.acked))
	}
	if !d.probes && d.w.lim.ops > 0 {
		k = int(min(int64(k), d.w.lim.ops-l.posted))
	}
	if k <= 0 {
		return nil
	}
	n, err := l.s.Post(l.ops[l.head : l.head+k])
	l.posted += int64(n)
	l.out += n
	l.head = (l.head + n) % sh.ring()
	if l.takesReceive {
		l.messages += uint64(n)
	}
	if n < k && err != rdma.ErrQueueFull {
		return d.w.lost(l, "post "+sh.Op, err)
	}
	return nil
}

// pushSlices posts slices of the bulk messages as far as the application's window
// goes. A message that is begun is always ended; more tells whether another may
// begin. out counts slices here, and posted whole messages.
func (d *duet) pushSlices(more bool) error {
	l, sh := d.bulk, d.w.sh
	for l.out < sh.AppWindow {
		if l.hol.cut == 0 && (!more || !d.probes && d.w.lim.ops > 0 && l.posted >= d.w.lim.ops) {
			return nil
		}
		op := &l.pair[0]
		*op = l.ops[l.head]
		op.Local += uint64(l.hol.cut)
		op.Remote += uint64(l.hol.cut)
		op.Len = uint32(min(sh.AppSlice, sh.Size-l.hol.cut))
		switch _, err := l.s.Post(l.pair[:1]); {
		case err == rdma.ErrQueueFull:
			return nil
		case err != nil:
			return d.w.lost(l, "post "+sh.Op, err)
		}
		l.out++
		if l.hol.cut += int(op.Len); l.hol.cut == sh.Size {
			l.hol.cut = 0
			l.posted++
			l.head = (l.head + 1) % sh.ring()
		}
	}
	return nil
}

// pushProbes posts the probes that are due at t, as far as there is room. A probe
// that finds none keeps its intended start.
func (d *duet) pushProbes(t int64) error {
	l, sh := d.probe, d.w.sh
	for int(d.posted-d.echoed) < sh.ProbeSlots && d.leaving < sh.ProbeSlots {
		var start int64
		switch {
		case d.w.lim.ops > 0 && d.posted >= uint64(d.w.lim.ops):
			return nil
		case d.pace != nil:
			if start = d.pace.Due(); start > t {
				return nil
			}
		case d.posted > d.echoed:
			return nil
		}
		at := d.stamp(d.posted)
		l.pair[0] = transports.Op{Kind: transports.KindSend, Flags: sh.probeFlags(), Priority: sh.ProbePriority,
			Local: uint64(at), Len: uint32(sh.ProbeSize), Slot: slotProbe}
		if d.pace == nil {
			start = now()
		}
		switch _, err := l.s.Post(l.pair[:1]); {
		case err == rdma.ErrQueueFull:
			return nil
		case err != nil:
			return d.w.lost(l, "post probe", err)
		}
		d.starts[d.posted%uint64(sh.ProbeSlots)] = start
		d.posted++
		d.leaving++
		if d.pace != nil {
			d.pace.Next()
		}
	}
	return nil
}

// stamp marks probe number i in the source and in the reference, and returns
// where it lies.
func (d *duet) stamp(i uint64) int {
	l, n := d.probe, d.w.sh.ProbeSize
	off := int(i%uint64(d.w.sh.ProbeSlots)) * d.w.sh.probeStride()
	at := d.w.sh.probeTx(0) + off
	for _, b := range [...][]byte{l.mem[at : at+n], l.ref.Bytes()[off : off+n]} {
		if n > 8 {
			binary.LittleEndian.PutUint64(b, i)
		}
		b[n-1] = stampOf(i)
	}
	return at
}

// collect polls the lanes once.
func (d *duet) collect() error {
	if d.idle() {
		d.w.spins = 0 // waiting for the next start is no stall
	}
	if err := d.reap(d.bulk); err != nil || d.probe == d.bulk {
		return err
	}
	return d.reap(d.probe)
}

func (d *duet) reap(l *lane) error {
	n, err := d.w.poll(l)
	if err != nil {
		return err
	}
	for i := range d.w.done[:n] {
		c := &d.w.done[i]
		switch {
		case c.Status != rdma.StatusSuccess:
			return statusError(l, *c)
		case c.Kind != transports.KindRecv:
			switch c.Slot {
			case slotProbe:
				d.leaving--
			default:
				l.out--
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
		l.pair[0] = l.recvs[c.Slot]
		if err := d.w.post(l, l.pair[:1]); err != nil {
			return err
		}
	}
	return nil
}

// echo takes the answer of the oldest probe: one QP keeps its messages in order.
func (d *duet) echo(l *lane, c *transports.Done) error {
	w, sh := d.w, d.w.sh
	t := now()
	if d.echoed == d.posted || l != d.probe {
		return w.lost(l, "read echo", fmt.Errorf("%d bytes that no probe asked for", c.Len))
	}
	slot := int(d.echoed % uint64(sh.ProbeSlots))
	w.record(t, t-d.starts[slot], 0)
	if int(c.Len) != sh.ProbeSize {
		return failed(sh.Point.String(), fmt.Errorf("qp %d: echo %d has %d bytes, want %d", l.index, d.echoed, c.Len, sh.ProbeSize))
	}
	if sh.Verify {
		got := l.mem[sh.holRecv(int(c.Slot)):][:sh.ProbeSize]
		want := l.ref.Bytes()[slot*sh.probeStride():][:sh.ProbeSize]
		if i := firstDifference(got, want); i >= 0 {
			return w.corrupt(l, fmt.Sprintf("echo of probe %d", d.echoed), i, want[i], got[i])
		}
	}
	d.echoed++
	return nil
}

// empty takes a credit or, behind all credits, the answer to a barrier.
func (d *duet) empty(l *lane) error {
	h := l.hol
	h.empties++
	credits := l.messages / uint64(l.sh.holCredit())
	switch given := h.empties - h.barriers; {
	case l.fenced && !h.answered && given == credits+1:
		h.answered = true
		h.barriers++
	case given > credits:
		return d.w.lost(l, "read credit", fmt.Errorf("%d of %d", given, credits))
	default:
		l.acked = given * uint64(l.sh.holCredit())
	}
	return nil
}

// drain brings home what was posted.
func (d *duet) drain() error {
	l := d.bulk
	for {
		if l.hol.cut > 0 {
			if err := d.pushSlices(false); err != nil {
				return err
			}
		}
		if d.parts.bulk && !l.fenced && l.hol.cut == 0 {
			l.pair[0] = transports.Op{Kind: transports.KindSend, Slot: slotBarrier}
			switch _, err := l.s.Post(l.pair[:1]); {
			case err == nil:
				l.fenced = true
				l.out++
			case err != rdma.ErrQueueFull:
				return d.w.lost(l, "post barrier", err)
			}
		}
		if d.idle() && (!d.parts.bulk || l.hol.answered) {
			return nil
		}
		if err := d.collect(); err != nil {
			return err
		}
	}
}
