package hol

import (
	"encoding/binary"
	"errors"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type targetLane struct {
	engine.Lane
	set     *setup
	recvs   []transports.Op
	cuts    drive.Cuts // of bulk
	bulk    int64      // bulk messages of this phase: sends that came, and writes up to the last pass that was compared
	taken   int        // of the session, since the last credit
	replies int        // empty messages to send

	// Probes to be answered, by receive, oldest first. At most probeSlots echoes leave at once.
	queue   []uint32
	first   int
	waiting int
	leaving int
}

type target struct {
	c     *engine.Group
	w     *engine.Worker
	lanes []*targetLane
	begun bool
}

func newTarget(c *engine.Group) (engine.Side, error) {
	s := &target{c: c, w: c.Workers[0]}
	for _, base := range c.Lanes {
		s.lanes = append(s.lanes, &targetLane{Lane: *base, set: setUp(c.Sh), recvs: receivesOf(c.Sh),
			cuts: drive.NewCuts(drive.NewProof(s.w, base), 0, c.Sh.Slots), queue: make([]uint32, c.Sh.RecvDepth)})
	}
	return s, nil
}

func (s *target) Prepare(gen int) error {
	defer func() { s.begun = true }()
	for _, l := range s.lanes {
		l.ClearSlots()
		l.cuts.Gen, l.bulk = gen, 0
		if s.begun {
			continue
		}
		if err := l.PostAll(l.recvs); err != nil {
			return err
		}
	}
	return nil
}

func (s *target) Loop(w *engine.Worker) func() error {
	return func() error { return drive.Turns(w, s.lanes, func(l *targetLane) error { return targetTurn(w, l) }) }
}

func (s *target) Counts() []engine.LaneCount { return nil }
func (s *target) Close() error               { return nil }

func (s *target) Verify(_ int, sent []engine.LaneCount) error {
	if err := s.c.VerifyCounts(sent); err != nil {
		return err
	}
	for _, l := range s.lanes {
		n := sent[l.Index].Count
		switch {
		case l.Kind != transports.KindSend:
			if err := l.cuts.Rest(l.bulk, n); err != nil {
				return err
			}
		case l.bulk != n:
			return s.w.Miscounted(&l.Lane, l.bulk, n)
		}
	}
	return nil
}

// targetTurn answers probes out of the receive where they are, which is posted again when the echo left.
func targetTurn(w *engine.Worker, l *targetLane) error {
	n, err := w.Poll(&l.Lane)
	if err != nil {
		return err
	}
	for i := range w.Done[:n] {
		d := &w.Done[i]
		if d.Status != rdma.StatusSuccess {
			return engine.StatusError(&l.Lane, *d)
		}
		if err := targetDone(w, l, d); err != nil {
			return err
		}
	}
	if err := echoProbes(w, l); err != nil {
		return err
	}
	for l.replies > 0 {
		// of no receive
		posted, err := w.TryPost(&l.Lane, transports.Op{Kind: transports.KindSend, Slot: uint32(l.Sh.RecvDepth)})
		if !posted {
			return err
		}
		l.replies--
	}
	return nil
}

func targetDone(w *engine.Worker, l *targetLane, d *transports.Done) error {
	sh := l.Sh
	switch n := int(d.Len); {
	case d.Kind != transports.KindRecv:
		if int(d.Slot) == sh.RecvDepth {
			return nil
		}
		l.leaving--
	case n == l.set.ProbeSize:
		if l.waiting == len(l.queue) {
			return w.Lost(&l.Lane, "take probe", errors.New("more probes than receives"))
		}
		l.queue[(l.first+l.waiting)%len(l.queue)] = d.Slot
		l.waiting++
		return nil
	case n == 0:
		l.replies++
	case n == sh.Size && l.Kind == transports.KindSend:
		if sh.Verify {
			b := l.Mem[l.recvs[d.Slot].Local:][:sh.Size]
			if err := l.cuts.Compare(b, 0, l.bulk, l.cuts.Whole(uint64(l.bulk))); err != nil {
				return err
			}
		}
		l.bulk++
		if l.taken++; l.taken == creditEvery(sh) {
			l.taken = 0
			l.replies++
		}
	case n == compareSize(sh) && sh.Verify && l.Kind == transports.KindWrite:
		first := int64(binary.LittleEndian.Uint64(l.Mem[l.recvs[d.Slot].Local:]))
		l.bulk = first + int64(sh.Slots)
		if err := l.cuts.Written(first, l.bulk); err != nil {
			return err
		}
		l.replies++
	default:
		return w.Corrupt(&l.Lane, "length of a message", 0, byte(l.set.ProbeSize), byte(n))
	}
	l.Pair[0] = l.recvs[d.Slot]
	return w.Post(&l.Lane, l.Pair[:1])
}

func echoProbes(w *engine.Worker, l *targetLane) error {
	sh := l.Sh
	for ; l.waiting > 0 && l.leaving < l.set.probeSlots; l.waiting-- {
		slot := l.queue[l.first]
		l.Pair[0] = transports.Op{Kind: transports.KindSend, Flags: probeFlags(sh), Priority: l.set.ProbePriority,
			Local: l.recvs[slot].Local, Len: uint32(l.set.ProbeSize), Slot: slot}
		if err := w.Post(&l.Lane, l.Pair[:1]); err != nil {
			return err
		}
		l.first = (l.first + 1) % len(l.queue)
		l.leaving++
		w.Ops++
	}
	return nil
}
