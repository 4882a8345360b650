package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

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
