package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

func (w *flowWorker) send(l *flowLane) (bool, error) {
	switch {
	case !l.sends:
	case !l.begun && w.Role == engine.SideClient:
		sent, err := w.sendControl(l, ctlStart)
		if sent {
			w.begin(l)
		}
		return sent, err
	case l.flowing && l.remaining > 0:
		return w.push(l)
	case l.begun && l.acked && !l.Fenced && !(l.TakesReceive && l.credits() <= 0):
		l.flowing = false
		fin := ctlFin
		if l.takes && (l.stopPeer || w.Lim.Dur > 0 || w.Lim.Ops == 0) {
			fin = ctlStop
		}
		sent, err := w.sendControl(l, fin)
		if sent {
			l.Fenced = true
			l.sent++
		}
		return sent, err
	}
	return false, nil
}

func (w *flowWorker) begin(l *flowLane) {
	l.begun = true
	l.flowing = !w.Finishing
	if l.remaining = w.Lim.Ops; w.Lim.Ops == 0 {
		l.remaining = 1<<62 - 1
	}
}

// credits is how many messages the peer has receives for.
func (l *flowLane) credits() int { return l.Sh.RecvDepth - int(l.sent-l.credit) }

func (w *flowWorker) push(l *flowLane) (bool, error) {
	sh := l.Sh
	k := min(sh.Depth-l.Out, Batch(sh))
	if l.TakesReceive {
		k = min(k, l.credits())
	}
	k = int(min(int64(k), l.remaining))
	if w.Numbered && k > 0 {
		var err error
		if k, err = w.own(l, k); err != nil {
			return false, err
		}
	}
	if k <= 0 {
		return false, nil
	}
	ops := l.Ops[l.Head : l.Head+k]
	if l.fill != nil {
		l.fill(l, ops)
	}
	if sh.Moderation > 1 {
		l.signal(ops, l.Flags)
	}
	head := l.Head
	n, err := l.Push(w.Worker, k)
	if sh.Moderation > 1 {
		l.signal(ops, l.Flags|transports.Unsignaled)
	}
	if w.Numbered && l.shared {
		for i := range n {
			l.used[(head+i)%sh.Slots] = l.sent + uint64(i) + 1
		}
	}
	l.unsignaled = (l.unsignaled + n) % sh.Moderation
	l.remaining -= int64(n)
	l.sent += uint64(n)
	return n > 0, err
}

// signal gives flags to one operation in sh.Moderation, and to the last one where no fin follows. The Slot of a
// signalled operation says how many its completion ends.
func (l *flowLane) signal(ops []transports.Op, flags transports.OpFlags) {
	every := l.Sh.Moderation
	for i := every - 1 - l.unsignaled; i < len(ops); i += every {
		ops[i].Flags = flags
	}
	if last := len(ops) - 1; !l.acked && l.remaining == int64(len(ops)) {
		ops[last].Flags, ops[last].Slot = flags, uint32((l.unsignaled+last)%every+1)
		if flags&transports.Unsignaled != 0 {
			ops[last].Slot = uint32(every)
		}
	}
}

// own bounds a batch of k operations to slots that are free on both sides, and asks the peer to compare a pass where
// due.
func (w *flowWorker) own(l *flowLane, k int) (int, error) {
	sh := l.Sh
	k = min(k, sh.Slots-l.Out)
	switch {
	case l.shared:
		for i := range k {
			if l.used[(l.Head+i)%sh.Slots] > l.credit {
				return i, nil
			}
		}
	case l.Kind == transports.KindWrite:
		room, due := l.pass.room(&l.out, sh.Slots, l.Posted, k)
		if due && l.Out < sh.Depth {
			sent, err := w.sendControl(l, ctlCompare)
			if sent {
				l.pass.Ask(l.Posted)
			}
			return 0, err
		}
		return room, nil
	}
	return k, nil
}

// filler returns what sets the numbers of a batch, nil where that is nothing.
func filler(sh *engine.Shape) func(*flowLane, []transports.Op) {
	switch k := sh.Kind(); {
	case k == transports.KindCmpSwap:
		return expectCounter
	case engine.IsAtomic(k):
	case sh.Numbered() && k == transports.KindRead:
		return turnSource
	case sh.Numbered():
		return writeNumbers
	case carriesImm(k):
		return immediates
	}
	return nil
}

func expectCounter(l *flowLane, ops []transports.Op) {
	for i := range ops {
		n := l.sent + uint64(i)
		ops[i].Add, ops[i].Swap = n, n+1
	}
}

// turnSource has reads ask for another slot of the source in each pass.
func turnSource(l *flowLane, ops []transports.Op) {
	for i := range ops {
		ops[i].Remote = uint64(readFrom(l.Sh, l.sent+uint64(i)) * l.Sh.Stride())
	}
}

func immediates(l *flowLane, ops []transports.Op) {
	for i := range ops {
		ops[i].Imm = uint32(l.sent) + uint32(i)
	}
}

func writeNumbers(l *flowLane, ops []transports.Op) {
	sh := l.Sh
	for i := range ops {
		op, n := &ops[i], l.sent+uint64(i)
		whole := l.out.Whole(n) || l.Kind == transports.KindWrite && l.out.comparesPass(n/uint64(sh.Slots))
		l.out.write(l.Mem[op.Local:][:sh.Size], n, whole)
		op.Imm = uint32(n)
	}
}

// control is the kind of a message of a flow that is no data. Its length says which, as some transports have no other
// mark.
type control int

const (
	ctlCredit  control = iota // CreditEvery more receives are posted again
	ctlStart                  // from the client, of a stream both ways: it begins
	ctlFin                    // all of the sender's operations of the phase are posted
	ctlStop                   // the same, and the peer shall end, too
	ctlAck                    // to a fin or a request to compare: everything ahead of it arrived
	ctlCompare                // a pass of writes is over that the seed chose: the peer compares it
	numControls
)

// controlReach is the most bytes of a control message between data, whose size their lengths leave out.
const controlReach = int(numControls)

// controlLen is the length of a control message of a stream both ways. Data has no such length.
func controlLen(sh *engine.Shape, c control) int {
	if n := int(c); n < sh.Size || n == 0 {
		return n
	}
	return int(c) + 1
}

func controlOf(sh *engine.Shape, length int) (control, bool) {
	c := control(length)
	if length > sh.Size {
		c--
	}
	return c, c >= 0 && c < numControls && controlLen(sh, c) == length
}

// lengthOf is the length of a control message that this side sends.
func (l *flowLane) lengthOf(c control) int {
	switch {
	case l.sends && l.takes:
		return controlLen(l.Sh, c)
	case c == ctlFin:
		return 0
	case c == ctlCredit:
		return 1
	}
	return numberSize
}

func (l *flowLane) controlOf(length int) (control, bool) {
	switch {
	case l.sends && l.takes:
		return controlOf(l.Sh, length)
	case l.takes && length == 0:
		return ctlFin, true
	case l.takes && length == numberSize:
		return ctlCompare, true
	case l.sends && length == 1:
		return ctlCredit, true
	case l.sends && length == numberSize:
		return ctlAck, true
	}
	return 0, false
}

// sendControl posts a control message, signalled; false where the queue is full. In a slot it begins as the last
// message there, which may not have been compared yet.
func (w *flowWorker) sendControl(l *flowLane, c control) (bool, error) {
	op := transports.Op{Kind: transports.KindSend, Local: uint64(l.Sh.CtlTx(0)), Len: uint32(l.lengthOf(c)),
		Slot: uint32(l.unsignaled + 1)}
	if l.inSlots {
		op.Local = l.Ops[l.Head].Local
	}
	if posted, err := w.TryPost(&l.Lane, op); !posted {
		return false, err
	}
	l.unsignaled = 0
	if l.inSlots {
		l.advance(1)
	} else {
		l.Out++
	}
	return true, nil
}
