package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// notice is what a message says that is no data. Its length alone tells, because a transport may have no
// other mark, and on one QP nobody knows which receive it will take.
type notice int

const (
	noticeCredit notice = iota // CreditEvery more receives are there again
	noticeGo                   // from the client, of a stream both ways: it begins
	noticeFin                  // all of this side's operations of the phase are posted
	noticeHurry                // the same, and the peer shall end, too
	noticeAnswer               // to a fin or a look: everything ahead of it arrived
	noticeLook                 // a pass of writes is over that the seed chose: the peer compares it
	numNotices
)

// noticeReach is the most bytes of a notice between data: one more than numNotices-1, because notices
// make room for the size of data.
const noticeReach = int(numNotices)

// lengthBetween is the length of a notice of a stream both ways. Data has no such length.
func lengthBetween(sh *engine.Shape, w notice) int {
	if n := int(w); n < sh.Size || n == 0 {
		return n
	}
	return int(w) + 1
}

// noticeBetween is the inverse of lengthBetween; false for another length.
func noticeBetween(sh *engine.Shape, length int) (notice, bool) {
	w := notice(length)
	if length > sh.Size {
		w--
	}
	return w, w >= 0 && w < numNotices && lengthBetween(sh, w) == length
}

// noticeLen is the length of a notice that this side says. One way, data and notices never go the same way
// but for fins, so that other lengths do.
func (l *flowLane) noticeLen(w notice) int {
	switch {
	case l.sends && l.takes:
		return lengthBetween(l.Sh, w)
	case w == noticeFin:
		return 0
	case w == noticeCredit:
		return 1
	}
	return numberSize
}

// noticeOf is the notice of a length that the peer says.
func (l *flowLane) noticeOf(length int) (notice, bool) {
	switch {
	case l.sends && l.takes:
		return noticeBetween(l.Sh, length)
	case l.takes && length == 0:
		return noticeFin, true
	case l.takes && length == numberSize:
		return noticeLook, true
	case l.sends && length == 1:
		return noticeCredit, true
	case l.sends && length == numberSize:
		return noticeAnswer, true
	}
	return 0, false
}

// say posts one notice. It is signalled, so that nothing ahead of it stays without a completion. Where it
// lands in a slot, it has the bytes that the peer's last message there has at its start, which may not have
// been compared yet.
func (w *flowWorker) say(l *flowLane, what notice) (bool, error) {
	op := transports.Op{Kind: transports.KindSend, Local: uint64(l.Sh.CtlTx(0)), Len: uint32(l.noticeLen(what)), Slot: uint32(l.unsignaled + 1)}
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
