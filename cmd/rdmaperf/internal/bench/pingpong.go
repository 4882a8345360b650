package bench

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The latency loops of the client. All have the same shape: prepare (untimed),
// read the clock, post, wait for the answer, read the clock; then, still untimed,
// verify, record and repost. QPs are served in turn, one operation at a time.

// exchange is what one operation does and how it is answered.
type exchange struct {
	divide int64      // ways in a round trip
	until  rdma.Until // what ends it
	begin  func(l *lane, t *trip, op *transports.Op)
	settle func(w *worker, l *lane, t *trip) error // looks at what came, untimed
}

// trip is one operation and its answer.
type trip struct {
	iter    uint64
	off, at int // window offsets: its source, and the slot that the answer fills

	// Of an answer that took a receive.
	slot, length, imm uint32
	hasImm            bool

	end, took int64 // ns, of steps taken together
}

var (
	messages = exchange{2, rdma.UntilRecv, beginMessage, settleMessage}
	writes   = exchange{2, rdma.UntilByte, beginWrite, settleWrite}
	reads    = exchange{1, rdma.UntilSend, beginRead, (*worker).verifyEcho}
	atomics  = exchange{1, rdma.UntilSend, beginAtomic, settleAtomic}
)

// each runs one sample after another until a limit, an error or the stop flag.
// one returns the two clock readings of its sample.
func (w *worker) each(divide int64, one func(w *worker, l *lane) (t0, t1 int64, err error)) error {
	w.open()
	deadline := w.begin + int64(w.lim.dur)
	for n := int64(0); w.lim.ops == 0 || n < w.lim.ops; n++ {
		for _, l := range w.lanes {
			t0, t1, err := one(w, l)
			if err != nil {
				w.end = now()
				return err
			}
			w.record(t1, (t1-t0)/divide, 0)
			w.ops++
			w.end = t1
			if w.lim.dur > 0 && t1 >= deadline {
				return nil
			}
			if w.stopped() {
				return errStop
			}
		}
	}
	return nil
}

// record takes one latency that ended at t, and of an open loop its service time.
func (w *worker) record(t, ns, service int64) {
	w.rec.Record(ns)
	if w.watched {
		w.watch(t, ns, service)
	}
}

// watch keeps what was asked for beside the histogram.
func (w *worker) watch(t, ns, service int64) {
	if w.series != nil {
		w.series.sample(t, ns)
	}
	if w.raw != nil {
		w.raw.take(t, ns, service)
	}
}

// sample is one operation of x alone.
func (x *exchange) sample(w *worker, l *lane) (t0, t1 int64, err error) {
	t := &l.trips[0]
	*t = trip{}
	x.begin(l, t, &l.pair[0])
	l.came, l.out = 0, 1
	if w.volleys {
		l.steps[0].Ask = l.pair[0]
		if _, err := w.volley(x, l, 1); err != nil {
			return 0, 0, err
		}
		t0, t1 = t.end-t.took, t.end
	} else if t0, t1, err = w.plainTrip(l, x.until, t.at+l.sh.Size-1); err != nil {
		return 0, 0, err
	}
	if err := x.settle(w, l, t); err != nil {
		return 0, 0, err
	}
	return t0, t1, w.repostAll(l)
}

// plainTrip posts the operation in l.pair and waits for what answers it; last is
// the window offset of the byte to watch.
func (w *worker) plainTrip(l *lane, until rdma.Until, last int) (t0, t1 int64, err error) {
	before, came, out := rdma.LoadByte(l.mem, last), l.came, l.out
	t0 = now()
	if err := w.post(l, l.pair[:1]); err != nil {
		return 0, 0, err
	}
	for err == nil {
		switch until {
		case rdma.UntilRecv:
			if l.came > came {
				return t0, now(), nil
			}
		case rdma.UntilSend:
			if l.out < out {
				return t0, now(), nil
			}
		default:
			if rdma.LoadByte(l.mem, last) != before {
				return t0, now(), nil
			}
		}
		err = w.reap(l)
	}
	return 0, 0, err
}

// repostAll posts the receives again whose messages were looked at.
func (w *worker) repostAll(l *lane) error {
	if len(l.again) == 0 {
		return nil
	}
	err := w.post(l, l.again)
	l.again = l.again[:0]
	return err
}

// reap takes what one poll of a client lane gives: the end of its own
// operations and the arrival of the answer.
func (w *worker) reap(l *lane) error {
	n, err := w.poll(l)
	if err != nil {
		return err
	}
	return w.take(l, n)
}

// take looks at the n operations of a client lane that have ended.
func (w *worker) take(l *lane, n int) error {
	for i := range w.done[:n] {
		d := &w.done[i]
		if d.Status != rdma.StatusSuccess {
			return statusError(l, *d)
		}
		if d.Kind == transports.KindRecv {
			if l.came == len(l.trips) {
				return failed(l.sh.Point.String(), fmt.Errorf("qp %d: more echoes than messages", l.index))
			}
			t := &l.trips[l.came]
			t.slot, t.length, t.imm, t.hasImm = d.Slot, d.Len, d.Imm, d.HasImm
			l.came++
		} else {
			l.out--
		}
	}
	return nil
}

// untilArrived waits for the answer.
func (w *worker) untilArrived(l *lane) error {
	for l.came == 0 {
		if err := w.reap(l); err != nil {
			return err
		}
	}
	return nil
}

// untilComplete waits for the lane's own operations.
func (w *worker) untilComplete(l *lane) error {
	for l.out > 0 {
		if err := w.reap(l); err != nil {
			return err
		}
	}
	return nil
}

// beginMessage is one send or write with immediate, which an echo answers.
func beginMessage(l *lane, t *trip, op *transports.Op) {
	t.off = l.stamp()
	t.iter, t.at = l.iter, l.at(l.iter)
	*op = transports.Op{Kind: l.kind, Flags: l.flags, Local: uint64(t.off), Remote: uint64(t.at), Len: uint32(l.sh.Size), Imm: uint32(l.iter)}
}

// settleMessage ends a message outside its timed part: own completions, the
// comparison, and the receive for a later echo.
func settleMessage(w *worker, l *lane, t *trip) error {
	if err := w.untilComplete(l); err != nil {
		return err
	}
	sh := l.sh
	if l.kind == transports.KindWriteImm {
		if sh.Verify && (!t.hasImm || t.imm != uint32(t.iter)) {
			return w.corrupt(l, fmt.Sprintf("immediate of echo %d", t.iter), 0, byte(t.iter), byte(t.imm))
		}
	} else {
		if int(t.length) != sh.Size {
			return failed(sh.Point.String(), fmt.Errorf("qp %d: echo %d has %d bytes, want %d", l.index, t.iter, t.length, sh.Size))
		}
		t.at = l.rx[t.slot&(latencySlots-1)]
	}
	l.again = append(l.again, l.recvs[t.slot])
	return w.verifyEcho(l, t)
}

// verifyEcho compares what the answer brought with the message that was sent.
func (w *worker) verifyEcho(l *lane, t *trip) error {
	if !l.sh.Verify {
		return nil
	}
	n := l.sh.Size
	got, want := l.mem[t.at:t.at+n], l.ref.Bytes()[t.off:t.off+n]
	if string(got) == string(want) { // compiled to a memory compare; no copy is made
		return nil
	}
	i := firstDifference(got, want)
	return w.corrupt(l, fmt.Sprintf("%s %d", answerName(l.kind), t.iter), i, want[i], got[i])
}

func answerName(k transports.Kind) string {
	if oneSided(k) {
		return "answer"
	}
	return "echo"
}

// beginWrite is one write, which a write answers: both are noticed by watching the
// last byte of the window slot.
func beginWrite(l *lane, t *trip, op *transports.Op) {
	t.off = l.stamp()
	t.iter, t.at = l.iter, l.at(l.iter)
	*op = transports.Op{Kind: transports.KindWrite, Flags: l.flags, Local: uint64(t.off), Remote: uint64(t.at), Len: uint32(l.sh.Size)}
}

func settleWrite(w *worker, l *lane, t *trip) error {
	if err := w.untilComplete(l); err != nil {
		return err
	}
	return w.verifyEcho(l, t)
}

// notifySample is a write and its answer where memory cannot be watched: an empty
// send follows each.
func notifySample(w *worker, l *lane) (t0, t1 int64, err error) {
	t := &l.trips[0]
	*t = trip{}
	beginWrite(l, t, &l.pair[0])
	l.pair[1] = transports.Op{Kind: transports.KindSend}
	l.came, l.out = 0, 2
	t0 = now()
	if err := w.post(l, l.pair[:2]); err != nil {
		return 0, 0, err
	}
	if err := w.untilArrived(l); err != nil {
		return 0, 0, err
	}
	t1 = now()
	if err := settleWrite(w, l, t); err != nil {
		return 0, 0, err
	}
	l.again = append(l.again, l.recvs[t.slot])
	return t0, t1, w.repostAll(l)
}

// beginRead is one read. The source offset moves every time, so that the bytes
// of the last read are never the right ones.
func beginRead(l *lane, t *trip, op *transports.Op) {
	l.iter++
	t.iter, t.off, t.at = l.iter, l.source(l.iter), l.at(l.iter)
	*op = transports.Op{Kind: transports.KindRead, Local: uint64(t.at), Remote: uint64(t.off), Len: uint32(l.sh.Size)}
}

// beginAtomic is one atomic on the target's counter. It must return the number
// of those before it.
func beginAtomic(l *lane, t *trip, op *transports.Op) {
	want := l.iter
	l.iter++
	t.iter, t.at = l.iter, l.at(l.iter)
	*op = transports.Op{Kind: l.kind, Local: uint64(t.at), Remote: uint64(l.rx[0]), Len: atomicSize}
	if l.kind == transports.KindFetchAdd {
		op.Add = 1
	} else {
		op.Add, op.Swap = want, want+1
	}
}

func settleAtomic(w *worker, l *lane, t *trip) error {
	if !l.sh.Verify {
		return nil
	}
	return w.verifyCounter(l, t.at, t.iter-1)
}

// verifyCounter compares the 8 bytes at window offset at with want.
func (w *worker) verifyCounter(l *lane, at int, want uint64) error {
	got := binary.NativeEndian.Uint64(l.mem[at:])
	if got == want {
		return nil
	}
	var g, e [8]byte
	binary.NativeEndian.PutUint64(g[:], got)
	binary.NativeEndian.PutUint64(e[:], want)
	i := firstDifference(g[:], e[:])
	return w.corrupt(l, fmt.Sprintf("old value of atomic %d", want), i, e[i], g[i])
}
