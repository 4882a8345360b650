package loop

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
	if k <= 0 {
		return false, nil
	}
	ops := l.Ops[l.Head : l.Head+k]
	// Words lie between the data, so the moderation has no fixed place in the ring.
	unsignaled := l.unsignaled
	for i := range ops {
		op := &ops[i]
		op.Imm = uint32(l.delivered) + uint32(i)
		op.Flags = l.Flags
		if unsignaled++; unsignaled < sh.Moderation {
			op.Flags |= transports.Unsignaled
		} else {
			op.Slot, unsignaled = uint32(unsignaled), 0
		}
	}
	n, err := l.S.Post(ops)
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
		return nil
	}
	l.unposted++
	if c.HasImm || l.Kind == transports.KindSend && int(c.Len) == sh.Size {
		if c.HasImm && sh.Verify && c.Imm != uint32(l.taken) {
			return w.Corrupt(&l.Lane, "immediate", 0, byte(l.taken), byte(c.Imm))
		}
		if l.Kind == transports.KindSend {
			l.written[c.Slot] = true
		}
		l.taken++
		l.count++
		return nil
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
	default:
		return w.Lost(&l.Lane, "read notice", fmt.Errorf("%d out of turn", said))
	}
	return nil
}

// reply posts receives again, and then tells the peer of the room, and that
// its fin arrived.
func (w *duplexWorker) reply(l *duplexLane) (moved bool, err error) {
	if l.unposted < l.repostAt && !l.owes {
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
	if l.owes {
		_, err = w.Say(l, noticeAnswer, func() { l.owes = false })
	}
	return true, err
}
