package bench

import (
	"encoding/binary"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The loops of the server. They run until the stop flag is set.

// turns calls one for every lane in turn until it fails or the flag is set.
func (w *worker) turns(one func(w *worker, l *lane) error) error {
	w.begin = now()
	taken, lull := int64(0), int64(0)
	for !w.stopped() { // here as well as in look: a flood of messages never looks
		for _, l := range w.lanes {
			if err := one(w, l); err != nil {
				w.end = now()
				if err == errStop {
					return nil
				}
				return err
			}
		}
		switch {
		case !w.lulls:
		case w.ops > taken:
			taken = w.ops
			// Half of the receives are taken before the client hears of it.
			lull = lullOf(w.sh.RecvDepth/2, taken, now()-w.begin)
		case lull >= leastLull:
			sleepFor(lull)
		}
	}
	w.end = now()
	return nil
}

// rest is the target of reads and atomics that the device serves unaided: a thread
// that polls would only take from whoever measures.
func (w *worker) rest() error {
	w.begin = now()
	<-w.ctx.Done()
	w.end = now()
	return nil
}

// doze is the target of a stream of writes that the device places unaided. Nothing
// reaches its queues but one barrier a lane, behind the last write, so it sleeps on
// one lane after the other. An incast's target polls: each client's window ends with
// the answer to its own barrier, which must not wait for another's.
func (w *worker) doze() error {
	w.begin = now()
	for _, l := range w.lanes {
		for seen := l.seen; l.seen == seen || l.owed; {
			if err := sinkTurn(w, l); err != nil {
				w.end = now()
				if err == errStop {
					return nil
				}
				return err
			}
		}
	}
	<-w.ctx.Done()
	w.end = now()
	return nil
}

// echoTurn answers every message with the bytes that arrived, out of the buffer
// where they arrived. The receive is posted again when the echo has left it.
func echoTurn(w *worker, l *lane) error {
	n, err := w.poll(l)
	if err != nil {
		return err
	}
	return w.echo(l, n, 0)
}

// echo answers the messages among n finished operations, and posts the receives
// again whose echoes have left. A volley has answered the first so many messages, in
// slots from l.next on, already.
func (w *worker) echo(l *lane, n, answered int) error {
	for i := range w.done[:n] {
		d := &w.done[i]
		if d.Status != rdma.StatusSuccess {
			return statusError(l, *d)
		}
		op := &l.pair[0]
		switch {
		case d.Kind != transports.KindRecv: // Slot is that of the receive it answered
			l.again = append(l.again, l.recvs[d.Slot])
			continue
		case answered > 0 && d.Slot == l.next:
			answered--
			w.arrived(l)
			w.ops++
			continue
		default:
			l.next = d.Slot
			w.arrived(l)
			*op = l.echo(d.Slot, d.Len, d.Imm)
		}
		if err := w.post(l, l.pair[:1]); err != nil {
			return err
		}
		w.ops++
	}
	return w.repostAll(l)
}

// arrived notes that the receive in slot l.next was taken.
func (w *worker) arrived(l *lane) {
	l.iter++
	if l.next++; l.next == uint32(l.sh.Slots) {
		l.next = 0
	}
}

// echo is the operation that sends back what arrived in a slot.
func (l *lane) echo(slot, length, imm uint32) transports.Op {
	if l.kind == transports.KindWriteImm {
		at := uint64(l.at(uint64(imm)))
		return transports.Op{Kind: transports.KindWriteImm, Flags: l.flags, Local: at, Remote: at, Len: uint32(l.sh.Size), Imm: imm, Slot: slot}
	}
	return transports.Op{Kind: transports.KindSend, Flags: l.flags, Local: l.recvs[slot].Local, Len: length, Slot: slot}
}

// memoryTurn watches one slot after the other and writes back what came.
func memoryTurn(w *worker, l *lane) error {
	sh := l.sh
	at := l.at(l.iter + 1)
	last := at + sh.Size - 1
	if rdma.LoadByte(l.mem, last) != l.before(l.iter+1) {
		l.pair[0] = l.writeBack(at)
		switch _, err := l.s.Post(l.pair[:1]); err {
		case nil:
			l.iter++
			w.ops++
			return nil
		case rdma.ErrQueueFull:
			// The next message came before the acknowledgements of earlier answers.
			// Its mark stays, so a later turn answers.
		default:
			return w.lost(l, "post write", err)
		}
	}
	n, err := w.poll(l)
	if err != nil {
		return err
	}
	return w.completed(l, n)
}

// completed checks that n own operations succeeded.
func (w *worker) completed(l *lane, n int) error {
	for i := range w.done[:n] {
		if d := &w.done[i]; d.Status != rdma.StatusSuccess {
			return statusError(l, *d)
		}
	}
	return nil
}

// writeBack is the write that answers one that arrived at a window offset.
func (l *lane) writeBack(at int) transports.Op {
	return transports.Op{Kind: transports.KindWrite, Flags: l.flags, Local: uint64(at), Remote: uint64(at), Len: uint32(l.sh.Size)}
}

// before is the last byte of the slot of message iter until it arrives: the mark
// of the message before in that slot, or zero.
func (l *lane) before(iter uint64) byte {
	slots := uint64(l.sh.Slots)
	if iter <= slots {
		return 0
	}
	return stampOf(iter - slots)
}

// notifyTurn answers a write that an empty send announced.
func notifyTurn(w *worker, l *lane) error {
	n, err := w.poll(l)
	if err != nil {
		return err
	}
	sh := l.sh
	for i := range w.done[:n] {
		d := &w.done[i]
		if d.Status != rdma.StatusSuccess {
			return statusError(l, *d)
		}
		if d.Kind != transports.KindRecv {
			continue
		}
		l.iter++
		at := uint64(l.at(l.iter))
		l.pair[0] = transports.Op{Kind: transports.KindWrite, Flags: l.flags, Local: at, Remote: at, Len: uint32(sh.Size)}
		l.pair[1] = transports.Op{Kind: transports.KindSend}
		if err := w.post(l, l.pair[:2]); err != nil {
			return err
		}
		l.pair[0] = l.recvs[d.Slot]
		if err := w.post(l, l.pair[:1]); err != nil {
			return err
		}
		w.ops++
	}
	return nil
}

// sinkTurn is the target of every stream, and of one-sided ping-pongs, where
// nothing arrives: it posts receives again and returns credits.
func sinkTurn(w *worker, l *lane) error {
	n, err := w.poll(l)
	if err != nil {
		return err
	}
	for i := range w.done[:n] {
		d := &w.done[i]
		if d.Status != rdma.StatusSuccess {
			return statusError(l, *d)
		}
		if d.Kind != transports.KindRecv {
			l.ctlFree++
			continue
		}
		switch {
		case d.HasImm: // counts the messages of the session
			if d.Imm != uint32(l.seen) && l.sh.Verify {
				return w.corrupt(l, "immediate", 0, byte(l.seen), byte(d.Imm))
			}
		case d.Len == 0: // a barrier: only it is empty
			l.owed = true
		case int(d.Len) != l.sh.Size:
			return w.corrupt(l, "length of a message", 0, byte(l.sh.Size), byte(d.Len))
		}
		l.seen++
		l.unposted++
		w.ops++
	}
	if l.unposted >= l.repostAt || l.owed {
		return w.refill(l)
	}
	return nil
}

// repost posts taken receives again, as many as there is room for.
func (w *worker) repost(l *lane) error {
	for l.unposted > 0 {
		k := min(l.unposted, len(l.recvs)-l.recvHead)
		n, err := l.s.Post(l.recvs[l.recvHead : l.recvHead+k])
		l.unposted -= n
		l.recvHead = (l.recvHead + n) % l.recvRing()
		if n < k {
			if err == rdma.ErrQueueFull {
				return nil
			}
			return w.lost(l, "post recv", err)
		}
	}
	return nil
}

// refill posts taken receives again and tells the client when enough of them, or
// a barrier, make it worth a message. A full queue is left for the next turn.
func (w *worker) refill(l *lane) error {
	if err := w.repost(l); err != nil || l.unposted > 0 {
		return err
	}
	if l.owed = l.owed || l.seen-l.announced >= uint64(l.sh.creditEvery()); !l.owed || l.ctlFree == 0 {
		return nil
	}
	at := l.sh.ctlTx(l.ctlNext)
	binary.LittleEndian.PutUint64(l.mem[at:], l.seen)
	l.pair[0] = transports.Op{Kind: transports.KindSend, Local: uint64(at), Len: 8}
	switch _, err := l.s.Post(l.pair[:1]); err {
	case nil:
		l.announced, l.owed = l.seen, false
		l.ctlFree--
		l.ctlNext = (l.ctlNext + 1) % ctlSlots
		return nil
	case rdma.ErrQueueFull:
		return nil
	default:
		return w.lost(l, "post credit", err)
	}
}
