package drive

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func (w *flowWorker) takeDone(l *flowLane, c *transports.Done) error {
	sh := l.Sh
	switch {
	case c.Status != rdma.StatusSuccess:
		return engine.StatusError(&l.Lane, *c)
	case c.Kind != transports.KindRecv:
		l.Out -= int(c.Slot)
		return w.compareBrought(l, c)
	}
	l.unposted++
	if !l.sends {
		w.Ops++
	}
	if c.HasImm || int(c.Len) == l.dataLen {
		if c.HasImm != l.hasImm || l.Kind == transports.KindSendImm && int(c.Len) != sh.Payload() {
			return w.misplaced(l, c)
		}
		if sh.Verify {
			if err := w.compareData(l, c); err != nil {
				return err
			}
		}
		l.taken++
		l.count++
		return nil
	}
	kind, ok := l.controlOf(int(c.Len))
	if !ok {
		return w.Corrupt(&l.Lane, "length of a message", 0, byte(sh.Size), byte(c.Len))
	}
	return w.takeControl(l, kind)
}

func (w *flowWorker) takeControl(l *flowLane, kind control) error {
	switch {
	case kind == ctlCredit && l.TakesReceive && l.credit+l.every <= l.sent:
		l.credit += l.every
	case kind == ctlStart && l.sends && !l.begun:
		w.begin(l)
	case (kind == ctlFin || kind == ctlStop) && !l.peerFin:
		l.peerFin = true
		l.acksDue++
		l.taken++
		if kind == ctlStop {
			l.stop(false)
		}
	case kind == ctlAck && l.pass.Waiting:
		l.pass.Waiting = false
	case kind == ctlAck && l.Fenced && !l.finAcked:
		l.finAcked = true
	case kind == ctlCompare && w.Numbered && l.Kind == transports.KindWrite && l.acksDue == 0:
		return l.comparePass()
	default:
		return w.Lost(&l.Lane, "read control message", fmt.Errorf("%d out of turn", kind))
	}
	return nil
}

// carriesImm reports operations each of which brings an immediate.
func carriesImm(k transports.Kind) bool {
	return k == transports.KindSendImm || k == transports.KindWriteImm
}

// misplaced is the error of an immediate that is lost, or came with what has none, or of a wrong length.
func (w *flowWorker) misplaced(l *flowLane, c *transports.Done) error {
	switch {
	case c.HasImm == l.hasImm:
		return w.Corrupt(&l.Lane, "length of a message", 0, byte(l.Sh.Payload()), byte(c.Len))
	case c.HasImm:
		return w.Corrupt(&l.Lane, "immediate that nobody sent with a message", 0, byte(l.taken), byte(c.Imm))
	}
	return w.Corrupt(&l.Lane, "immediate that a message came without", 0, byte(l.taken), byte(c.Imm))
}

func (w *flowWorker) compareData(l *flowLane, c *transports.Done) error {
	sh := l.Sh
	if l.hasImm && c.Imm != uint32(l.taken) {
		return w.Corrupt(&l.Lane, "immediate", 0, byte(l.taken), byte(c.Imm))
	}
	if !w.Numbered {
		w.Compared.Message(immBytes)
		return nil
	}
	slot := int(c.Slot)
	if l.inSlots {
		l.written[slot] = true
	} else {
		slot = int(l.taken % uint64(sh.Slots))
	}
	return l.in.message(l.Mem[sh.RxSlot(slot):][:sh.Size], l.taken, l.in.Whole(l.taken))
}

func (w *flowWorker) compareBrought(l *flowLane, c *transports.Done) error {
	n := int64(c.Slot)
	if c.Kind != l.Kind {
		n-- // a control message
	}
	for range n {
		i := uint64(l.brought)
		var err error
		if l.Kind == transports.KindRead {
			err = l.in.read(i)
		} else {
			err = l.in.fetched(l.Sh.RxSlot(int(i%uint64(l.Sh.Slots))), i)
		}
		if err != nil {
			return err
		}
		l.brought++
	}
	return nil
}

func (l *flowLane) comparePass() error {
	pass := l.passes
	for !l.in.comparesPass(pass) {
		pass++
	}
	if err := l.in.writes(pass*uint64(l.Sh.Slots), int64(l.Sh.Slots)); err != nil {
		return err
	}
	l.passes = pass + 1
	l.acksDue++
	return nil
}

func (w *flowWorker) reply(l *flowLane) (moved bool, err error) {
	if l.unposted < l.repostAt && l.acksDue == 0 && !l.creditDue() {
		return false, nil
	}
	if err := l.repost(w.Worker, &l.Lane); err != nil || l.unposted > 0 {
		return true, err
	}
	for l.creditDue() {
		sent, err := w.sendControl(l, ctlCredit)
		if err != nil || !sent {
			return true, err
		}
		l.granted += l.every
	}
	for l.acksDue > 0 {
		sent, err := w.sendControl(l, ctlAck)
		if err != nil || !sent {
			return true, err
		}
		l.acksDue--
	}
	return true, nil
}

// creditDue reports whether as many messages were taken as a credit is for.
func (l *flowLane) creditDue() bool { return l.TakesReceive && l.taken-l.granted >= l.every }

// Verify compares what is left: how many messages came, what lies between the slots, and of writes the last pass.
func (f *Flow) Verify(_ int, peer []engine.LaneCount) error {
	if f.c.Sh.Bidirectional || f.c.Role == engine.SideServer {
		if err := f.c.VerifyCounts(peer); err != nil {
			return err
		}
	}
	return f.each(func(w *flowWorker, l *flowLane) error {
		switch {
		case !engine.OneSided(l.Kind) && l.takes:
			return w.verifyTaken(l, peer[l.Index])
		case engine.OneSided(l.Kind) && l.brought != l.Posted:
			return w.Miscounted(&l.Lane, l.brought, l.Posted)
		case engine.OneSided(l.Kind):
			return l.in.Gaps(0, l.Sh.Slots, 0, l.Posted)
		}
		return nil
	})
}

func (w *flowWorker) verifyTaken(l *flowLane, sent engine.LaneCount) error {
	sh := l.Sh
	switch {
	case l.TakesReceive && l.count != sent.Count:
		return w.Miscounted(&l.Lane, l.count, sent.Count)
	case sh.ImmAlone:
		return l.in.Gaps(0, sh.Slots, 0, 0)
	case l.inSlots:
		return l.verifyReceives()
	}
	if err := l.in.Gaps(0, sh.Slots, sent.First, sent.Count); err != nil || l.TakesReceive {
		return err
	}
	first := max(int64(l.passes)*int64(sh.Slots), sent.Count-int64(sh.Slots)) // the others were compared, or are gone
	return l.in.writes(uint64(first), sent.Count-first)
}

// verifyReceives compares what no send wrote. The first bytes of a slot may come from a control message.
func (l *flowLane) verifyReceives() error {
	sh := l.Sh
	for s := range sh.Slots {
		what, from := "never written", 0
		if l.written[s] {
			from, what = sh.Size, "behind its end"
		}
		slot := l.Mem[sh.RxSlot(s):][:sh.Stride()]
		if err := l.in.untouched(slot, max(from, controlReach), len(slot), s, what); err != nil {
			return err
		}
	}
	return nil
}
