package bench

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// holTurn answers probes out of the receive where they arrived, takes bulk
// messages, and answers barriers. A receive is posted again when its bytes are no
// longer needed: after the echo left, or at once.
func holTurn(w *worker, l *lane) error {
	n, err := w.poll(l)
	if err != nil {
		return err
	}
	for i := range w.done[:n] {
		d := &w.done[i]
		if d.Status != rdma.StatusSuccess {
			return statusError(l, *d)
		}
		if err := w.holDone(l, d); err != nil {
			return err
		}
	}
	if err := w.echoProbes(l); err != nil {
		return err
	}
	for l.hol.owed > 0 {
		l.pair[0] = transports.Op{Kind: transports.KindSend, Slot: uint32(l.sh.RecvDepth)} // of no receive
		switch _, err := l.s.Post(l.pair[:1]); err {
		case nil:
			l.hol.owed--
		case rdma.ErrQueueFull:
			return nil
		default:
			return w.lost(l, "post credit", err)
		}
	}
	return nil
}

func (w *worker) holDone(l *lane, d *transports.Done) error {
	sh, h := l.sh, l.hol
	switch n := int(d.Len); {
	case d.Kind != transports.KindRecv:
		if int(d.Slot) == sh.RecvDepth {
			return nil
		}
		h.leaving--
	case n == sh.ProbeSize:
		if h.waiting == len(h.queue) {
			return w.lost(l, "take probe", errors.New("more probes than receives"))
		}
		h.held[d.Slot] = 0
		h.queue[(h.first+h.waiting)%len(h.queue)] = d.Slot
		h.waiting++
		return nil
	case n == 0:
		h.owed++
	case n == sh.Size && l.kind == transports.KindSend:
		h.bulk++
		h.held[d.Slot] = h.bulk
		if h.taken++; h.taken == sh.holCredit() {
			h.taken = 0
			h.owed++
		}
	default:
		return w.corrupt(l, "length of a message", 0, byte(sh.ProbeSize), byte(n))
	}
	l.pair[0] = l.recvs[d.Slot]
	return w.post(l, l.pair[:1])
}

// echoProbes answers what arrived, oldest first.
func (w *worker) echoProbes(l *lane) error {
	sh, h := l.sh, l.hol
	for ; h.waiting > 0 && h.leaving < sh.ProbeSlots; h.waiting-- {
		slot := h.queue[h.first]
		l.pair[0] = transports.Op{Kind: transports.KindSend, Flags: sh.probeFlags(), Priority: sh.ProbePriority,
			Local: l.recvs[slot].Local, Len: uint32(sh.ProbeSize), Slot: slot}
		if err := w.post(l, l.pair[:1]); err != nil {
			return err
		}
		h.first = (h.first + 1) % len(h.queue)
		h.leaving++
		w.ops++
	}
	return nil
}

// verifyHOL holds the target's window against what the client says it sent.
func (w *worker) verifyHOL(l *lane, gen int, n laneCount) error {
	if l.kind == transports.KindWrite {
		return w.verifySlots(l, gen, n.First, n.Count)
	}
	if got := int64(l.hol.bulk); got != n.Count {
		return w.corrupt(l, fmt.Sprintf("number of bulk messages (%d, want %d)", got, n.Count), 0, byte(n.Count), byte(got))
	}
	for i, number := range l.hol.held {
		if number == 0 {
			continue
		}
		data := l.mem[l.sh.holRecv(i):][:l.sh.Size]
		slot := int((number - 1) % uint64(l.sh.Slots))
		if at, want := matchPattern(data, patternState(l.sh.Seed, gen, l.index, slot)); at >= 0 {
			return w.corrupt(l, fmt.Sprintf("bulk message %d", number-1), at, want, data[at])
		}
	}
	return nil
}
