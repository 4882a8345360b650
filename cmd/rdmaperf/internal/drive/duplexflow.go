package drive

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// stopFlow ends a lane's sending; hurry asks the peer to end, too.
func (l *duplexLane) stopFlow(hurry bool) {
	l.flowing = false
	l.hurry = l.hurry || hurry
}

// run is the loop. The client begins, and ends when both directions are done;
// the server begins when it hears of it, and waits to be stopped.
func (w *duplexWorker) run() error {
	w.Open()
	deadline := int64(1<<63 - 1)
	if w.Lim.Dur > 0 {
		deadline = w.Begin + int64(w.Lim.Dur)
	}
	begun := w.Role == engine.SideClient
	err := w.runUntil(deadline, &begun)
	if w.End == 0 {
		w.End = engine.Now()
	}
	for _, l := range w.Lanes {
		n := l.Posted
		if !l.answered {
			n -= min(int64(l.Out), l.Posted) // what nobody knows did not happen
		}
		w.Ops += n
		w.Took(w.End, n-l.counted)
	}
	return err
}

func (w *duplexWorker) runUntil(deadline int64, begun *bool) error {
	for ended := false; ; {
		over, moved := true, false
		for _, l := range w.Lanes {
			n, err := w.turn(l)
			switch {
			case err == engine.ErrStop && w.MayFinish():
			case err != nil:
				return err
			}
			moved = moved || n
			over = over && l.over()
		}
		if !*begun && w.Lanes[0].begun {
			// Before that nobody asked this side for anything.
			*begun = true
			w.Begin = engine.Now()
		}
		if over && (w.Role == engine.SideClient || w.Stopped()) {
			return nil
		}
		if w.Stopped() && !ended {
			if !w.MayFinish() {
				return engine.ErrStop
			}
			ended = true
			w.stopFlows()
		}
		if !moved {
			continue
		}
		if t := engine.Now(); t >= deadline && !ended {
			ended = true
			w.stopFlows()
		} else {
			w.count(t)
		}
	}
}

// stopFlows ends the sending of all lanes. A lane that never began still has to
// take part in the end.
func (w *duplexWorker) stopFlows() {
	for _, l := range w.Lanes {
		l.stopFlow(true)
	}
}

// count looks at how far the own direction is.
func (w *duplexWorker) count(t int64) {
	for _, l := range w.Lanes {
		if done := l.Posted - int64(l.Out); done > l.counted {
			w.Took(t, done-l.counted)
			l.counted = done
		}
	}
}

// turn does what can be done on one lane now and tells whether that was
// anything.
func (w *duplexWorker) turn(l *duplexLane) (moved bool, err error) {
	posted, err := w.sendTurn(l)
	if err != nil {
		return false, err
	}
	n, err := l.S.Poll(w.Done)
	if err != nil {
		return false, w.Lost(&l.Lane, "poll", err)
	}
	for i := range w.Done[:n] {
		if err := w.takeDone(l, &w.Done[i]); err != nil {
			return true, err
		}
	}
	if l.answered && !l.done && (l.Out == 0 || l.Kind != transports.KindRead) {
		l.done = true
		w.End = engine.Now()
	}
	replied, err := w.reply(l)
	switch {
	case err != nil:
		return true, err
	case n > 0 || replied:
		w.Spins = 0
	case !posted:
		return false, w.Idle(&l.Lane)
	}
	return true, nil
}

// sendTurn begins the stream, goes on with it, or tells its end.
func (w *duplexWorker) sendTurn(l *duplexLane) (bool, error) {
	switch {
	case !l.begun && w.Role == engine.SideClient:
		return w.Say(l, NoticeGo, func() { w.beginLane(l) })
	case l.flowing && l.remaining > 0:
		return w.pushDuplex(l)
	case l.begun && !l.Fenced:
		l.flowing = false
		fin := noticeFin
		if l.hurry || w.Lim.Dur > 0 || w.Lim.Ops == 0 {
			fin = noticeHurry
		}
		return w.Say(l, fin, func() { l.Fenced = true })
	}
	return false, nil
}

func (w *duplexWorker) beginLane(l *duplexLane) {
	l.begun = true
	l.flowing = !w.Finishing
	if l.remaining = w.Lim.Ops; w.Lim.Ops == 0 {
		l.remaining = 1<<62 - 1
	}
}

// pushDuplex posts one batch of data.
func (w *duplexWorker) pushDuplex(l *duplexLane) (bool, error) {
	sh := l.Sh
	k := min(sh.Depth-l.Out, Batch(sh))
	if l.TakesReceive {
		k = min(k, sh.RecvDepth-int(l.delivered-l.credit))
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
	// Words lie between the data, so the moderation has no fixed place in the ring.
	unsignaled := l.unsignaled
	for i := range ops {
		op := &ops[i]
		n := l.delivered + uint64(i)
		op.Imm = uint32(n)
		op.Flags = l.Flags
		if w.Numbered {
			l.number(op, n)
		}
		if unsignaled++; unsignaled < sh.Moderation {
			op.Flags |= transports.Unsignaled
		} else {
			op.Slot, unsignaled = uint32(unsignaled), 0
		}
	}
	n, err := l.S.Post(ops)
	if w.Numbered && l.shared {
		for i := range n {
			l.used[(l.Head+i)%sh.Slots] = l.delivered + uint64(i) + 1
		}
	}
	for i := range ops[:n] {
		if l.unsignaled++; ops[i].Flags&transports.Unsignaled == 0 {
			l.unsignaled = 0
		}
	}
	l.Posted += int64(n)
	l.remaining -= int64(n)
	l.delivered += uint64(n)
	l.advance(n)
	if n < k && err != rdma.ErrQueueFull {
		return true, w.Lost(&l.Lane, "post "+sh.Op, err)
	}
	return n > 0, nil
}

// own bounds a batch of k operations to slots that are nobody's any more, on both sides, and
// asks for a look at a pass of writes where that is due. It returns how many may be posted now.
func (w *duplexWorker) own(l *duplexLane, k int) (int, error) {
	sh := l.Sh
	k = min(k, sh.Slots-l.Out)
	switch {
	case l.Kind == transports.KindSend && l.shared:
		for i := range k {
			if l.used[(l.Head+i)%sh.Slots] > l.credit {
				return i, nil
			}
		}
	case l.Kind == transports.KindWrite:
		slots := int64(sh.Slots)
		switch pass := uint64(l.Posted / slots); {
		case l.looking:
			return 0, nil
		case l.Posted > l.asked && l.Posted%slots == 0 && sh.LooksAt(pass-1):
			_, err := w.Say(l, noticeLook, func() { l.asked, l.looking = l.Posted, true })
			return 0, err
		case sh.LooksAt(pass):
			return min(k, int(slots-l.Posted%slots)), nil
		}
	}
	return k, nil
}

// number puts the number of data operation n of the phase, or of the session, into it.
func (l *duplexLane) number(op *transports.Op, n uint64) {
	sh := l.Sh
	if l.Kind == transports.KindRead {
		op.Remote = uint64(sh.ReadFrom(n) * sh.Stride())
		return
	}
	whole := sh.Whole(l.genOut, n) || l.Kind == transports.KindWrite && sh.LooksAt(n/uint64(sh.Slots))
	l.Write(l.Mem[op.Local:][:sh.Size], l.genOut, n, whole)
}

// advance counts what was posted.
func (l *duplexLane) advance(n int) {
	l.Out += n
	l.Messages += uint64(n)
	l.Head = (l.Head + n) % Ring(l.Sh)
}

// Say posts one notice and calls then when it is on its way. It is signalled, so
// that nothing ahead of it stays without a completion.
func (w *duplexWorker) Say(l *duplexLane, what notice, then func()) (bool, error) {
	op := &l.Pair[0]
	*op = transports.Op{Kind: transports.KindSend, Local: uint64(l.Sh.CtlTx(0)), Len: uint32(NoticeLen(l.Sh, what)), Slot: uint32(l.unsignaled + 1)}
	if l.Kind == transports.KindSend {
		op.Local = l.Ops[l.Head].Local
	}
	switch _, err := l.S.Post(l.Pair[:1]); {
	case err == rdma.ErrQueueFull:
		return false, nil
	case err != nil:
		return false, w.Lost(&l.Lane, "post a notice", err)
	}
	l.unsignaled = 0
	if l.Kind == transports.KindSend {
		l.advance(1)
	} else {
		l.Out++
	}
	then()
	return true, nil
}

// takeDone takes one completion.
func (w *duplexWorker) takeDone(l *duplexLane, c *transports.Done) error {
	sh := l.Sh
	switch {
	case c.Status != rdma.StatusSuccess:
		return engine.StatusError(&l.Lane, *c)
	case c.Kind != transports.KindRecv:
		l.Out -= int(c.Slot)
		if w.Numbered && l.Kind == transports.KindRead {
			return w.lookAtReads(l, c)
		}
		return nil
	}
	l.unposted++
	if c.HasImm || l.Kind == transports.KindSend && int(c.Len) == sh.Size {
		return w.takeData(l, c)
	}
	said, ok := NoticeOf(sh, int(c.Len))
	if !ok {
		return w.Corrupt(&l.Lane, "length of a message", 0, byte(sh.Size), byte(c.Len))
	}
	switch {
	case said == noticeCredit && l.TakesReceive && l.credit+uint64(CreditEvery(sh)) <= l.delivered:
		l.credit += uint64(CreditEvery(sh))
	case said == NoticeGo && !l.begun:
		w.beginLane(l)
	case said == noticeFin && !l.peerFin:
		l.peerFin, l.owes = true, true
	case said == noticeHurry && !l.peerFin:
		l.peerFin, l.owes = true, true
		l.stopFlow(false)
	case said == noticeAnswer && l.Fenced && !l.answered:
		l.answered = true
	case said == noticeLook && w.Numbered && l.Kind == transports.KindWrite && !l.owesLook:
		return w.lookAtPass(l)
	case said == noticeLooked && l.looking:
		l.looking = false
	default:
		return w.Lost(&l.Lane, "read notice", fmt.Errorf("%d out of turn", said))
	}
	return nil
}

// takeData takes one message of data.
func (w *duplexWorker) takeData(l *duplexLane, c *transports.Done) error {
	sh := l.Sh
	at := sh.RxSlot(int(c.Slot))
	switch {
	case c.HasImm != (l.Kind == transports.KindWriteImm):
		return w.Corrupt(&l.Lane, "immediate that nobody sent with a message", 0, byte(l.taken), byte(c.Imm))
	case c.HasImm && sh.Verify && c.Imm != uint32(l.taken):
		return w.Corrupt(&l.Lane, "immediate", 0, byte(l.taken), byte(c.Imm))
	case c.HasImm:
		at = sh.RxSlot(int(l.taken % uint64(sh.Slots)))
	default:
		l.written[c.Slot] = true
	}
	if w.Numbered {
		if err := w.Inspect(&l.Lane, l.Mem[at:][:sh.Size], l.genIn, l.taken, sh.Whole(l.genIn, l.taken)); err != nil {
			return err
		}
	}
	l.taken++
	l.count++
	return nil
}

// lookAtReads compares what the reads brought that a completion stands for.
func (w *duplexWorker) lookAtReads(l *duplexLane, c *transports.Done) error {
	n := int64(c.Slot)
	if c.Kind != transports.KindRead {
		n-- // a notice
	}
	for range n {
		i := uint64(l.brought)
		if err := w.LookAtRead(&l.Lane, l.genIn, i, l.Sh.Whole(l.genIn, i)); err != nil {
			return err
		}
		l.brought++
	}
	return nil
}

// lookAtPass compares the next pass of writes that is looked at.
func (w *duplexWorker) lookAtPass(l *duplexLane) error {
	pass := l.passes
	for !l.Sh.LooksAt(pass) {
		pass++
	}
	if err := w.LookAtWrites(&l.Lane, l.genIn, pass*uint64(l.Sh.Slots), int64(l.Sh.Slots)); err != nil {
		return err
	}
	l.passes, l.owesLook = pass+1, true
	return nil
}

// reply posts receives again, and then tells the peer of the room, that its writes were
// looked at, and that its fin arrived.
func (w *duplexWorker) reply(l *duplexLane) (moved bool, err error) {
	if l.unposted < l.repostAt && !l.owes && !l.owesLook {
		return false, nil
	}
	if err := l.repost(w.Worker, &l.Lane); err != nil || l.unposted > 0 {
		return true, err
	}
	every := uint64(CreditEvery(l.Sh))
	for l.TakesReceive && l.taken-l.granted >= every {
		said, err := w.Say(l, noticeCredit, func() { l.granted += every })
		if err != nil || !said {
			return true, err
		}
	}
	if l.owesLook {
		if said, err := w.Say(l, noticeLooked, func() { l.owesLook = false }); err != nil || !said {
			return true, err
		}
	}
	if l.owes {
		_, err = w.Say(l, noticeAnswer, func() { l.owes = false })
	}
	return true, err
}
