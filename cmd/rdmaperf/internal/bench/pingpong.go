package bench

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The latency loops of the client. All have the same shape: prepare (untimed),
// read the clock, post, wait for the answer, read the clock, record; then, still
// untimed, verify and repost. QPs are served in turn, one operation at a time.

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

// messageSample is one send or write with immediate and its echo.
func messageSample(w *worker, l *lane) (t0, t1 int64, err error) {
	sh := l.sh
	off := l.stamp()
	l.pair[0] = transports.Op{Kind: l.kind, Flags: l.flags, Local: uint64(off), Remote: uint64(l.at(l.iter)),
		Len: uint32(sh.Size), Imm: uint32(l.iter)}
	if t0, t1, err = w.roundTrip(l, rdma.UntilRecv, 0); err != nil {
		return 0, 0, err
	}
	return t0, t1, w.settle(l, off)
}

// roundTrip posts the operation in l.pair and waits for what answers it; last is
// the window offset of the byte to watch.
func (w *worker) roundTrip(l *lane, until rdma.Until, last int) (t0, t1 int64, err error) {
	l.arrived, l.out = false, 1
	if w.volleys {
		return w.volley(l, until, last)
	}
	return w.plainTrip(l, until, last)
}

// plainTrip is roundTrip with posts and polls.
func (w *worker) plainTrip(l *lane, until rdma.Until, last int) (t0, t1 int64, err error) {
	before := rdma.LoadByte(l.mem, last)
	t0 = now()
	if err := w.post(l, l.pair[:1]); err != nil {
		return 0, 0, err
	}
	switch until {
	case rdma.UntilRecv:
		err = w.untilArrived(l)
	case rdma.UntilSend:
		err = w.untilComplete(l)
	default:
		for rdma.LoadByte(l.mem, last) == before && err == nil {
			err = w.reap(l)
		}
	}
	return t0, now(), err
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
			l.arrived, l.slot, l.length, l.imm, l.hasImm = true, d.Slot, d.Len, d.Imm, d.HasImm
		} else {
			l.out--
		}
	}
	return nil
}

// untilArrived waits for the answer.
func (w *worker) untilArrived(l *lane) error {
	for !l.arrived {
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

// settle ends a message sample outside its timed part: own completions, the
// comparison, and the receive for a later echo.
func (w *worker) settle(l *lane, off int) error {
	if err := w.untilComplete(l); err != nil {
		return err
	}
	sh := l.sh
	at := l.rx[l.slot&(latencySlots-1)]
	if l.kind == transports.KindWriteImm {
		at = l.at(l.iter)
		if sh.Verify && (!l.hasImm || l.imm != uint32(l.iter)) {
			return w.corrupt(l, fmt.Sprintf("immediate of echo %d", l.iter), 0, byte(l.iter), byte(l.imm))
		}
	} else if int(l.length) != sh.Size {
		return failed(sh.Point.String(), fmt.Errorf("qp %d: echo %d has %d bytes, want %d", l.index, l.iter, l.length, sh.Size))
	}
	if err := w.verifyEcho(l, at, off); err != nil {
		return err
	}
	l.pair[0] = l.recvs[l.slot]
	return w.post(l, l.pair[:1])
}

// verifyEcho compares the bytes at window offset at with the message sent from
// source offset off.
func (w *worker) verifyEcho(l *lane, at, off int) error {
	if !l.sh.Verify {
		return nil
	}
	n := l.sh.Size
	got, want := l.mem[at:at+n], l.ref.Bytes()[off:off+n]
	if string(got) == string(want) { // compiled to a memory compare; no copy is made
		return nil
	}
	i := firstDifference(got, want)
	return w.corrupt(l, fmt.Sprintf("%s %d", answerName(l.kind), l.iter), i, want[i], got[i])
}

func answerName(k transports.Kind) string {
	if oneSided(k) {
		return "answer"
	}
	return "echo"
}

// memorySample is one write and the write that answers it, both noticed by
// watching the last byte of the window slot.
func memorySample(w *worker, l *lane) (t0, t1 int64, err error) {
	sh := l.sh
	off := l.stamp()
	at := l.at(l.iter)
	last := at + sh.Size - 1
	l.pair[0] = transports.Op{Kind: transports.KindWrite, Flags: l.flags, Local: uint64(off), Remote: uint64(at), Len: uint32(sh.Size)}
	if t0, t1, err = w.roundTrip(l, rdma.UntilByte, last); err != nil {
		return 0, 0, err
	}
	if err := w.untilComplete(l); err != nil {
		return 0, 0, err
	}
	return t0, t1, w.verifyEcho(l, at, off)
}

// notifySample is memorySample where memory cannot be watched: an empty send
// follows the write.
func notifySample(w *worker, l *lane) (t0, t1 int64, err error) {
	sh := l.sh
	off := l.stamp()
	at := l.at(l.iter)
	l.pair[0] = transports.Op{Kind: transports.KindWrite, Flags: l.flags, Local: uint64(off), Remote: uint64(at), Len: uint32(sh.Size)}
	l.pair[1] = transports.Op{Kind: transports.KindSend}
	l.arrived, l.out = false, 2
	t0 = now()
	if err := w.post(l, l.pair[:2]); err != nil {
		return 0, 0, err
	}
	if err := w.untilArrived(l); err != nil {
		return 0, 0, err
	}
	t1 = now()
	if err := w.untilComplete(l); err != nil {
		return 0, 0, err
	}
	if err := w.verifyEcho(l, at, off); err != nil {
		return 0, 0, err
	}
	l.pair[0] = l.recvs[l.slot]
	return t0, t1, w.post(l, l.pair[:1])
}

// readSample is one read. The source offset moves every time, so that the bytes
// of the last read are never the right ones.
func readSample(w *worker, l *lane) (t0, t1 int64, err error) {
	sh := l.sh
	l.iter++
	off := l.source(l.iter)
	at := l.at(l.iter)
	l.pair[0] = transports.Op{Kind: transports.KindRead, Local: uint64(at), Remote: uint64(off), Len: uint32(sh.Size)}
	if t0, t1, err = w.roundTrip(l, rdma.UntilSend, 0); err != nil {
		return 0, 0, err
	}
	return t0, t1, w.verifyEcho(l, at, off)
}

// atomicSample is one atomic on the target's counter. It must return the number
// of those before it.
func atomicSample(w *worker, l *lane) (t0, t1 int64, err error) {
	sh := l.sh
	want := l.iter
	l.iter++
	at := l.at(l.iter)
	l.pair[0] = transports.Op{Kind: l.kind, Local: uint64(at), Remote: uint64(l.rx[0]), Len: atomicSize}
	if l.kind == transports.KindFetchAdd {
		l.pair[0].Add = 1
	} else {
		l.pair[0].Add, l.pair[0].Swap = want, want+1
	}
	if t0, t1, err = w.roundTrip(l, rdma.UntilSend, 0); err != nil {
		return 0, 0, err
	}
	if sh.Verify {
		if err := w.verifyCounter(l, at, want); err != nil {
			return 0, 0, err
		}
	}
	return t0, t1, nil
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
