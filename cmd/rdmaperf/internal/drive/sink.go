package drive

import (
	"encoding/binary"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// sinkLane is a session of a stream's server.
type sinkLane struct {
	engine.Lane
	receiver
	gen        int
	data       int64  // messages of this phase that came, and of writes those up to the last pass that was looked at
	seen       uint64 // receives completed
	announced  uint64 // last credit sent
	owed       bool   // a credit is due now
	immediates int64  // of the phase that came with messages
	ctlFree    int    // free credit buffers
	ctlNext    int
}

// sink is the server's side of a stream one way.
type sink struct {
	c       *engine.Group
	workers []*sinkWorker
	begun   bool
}

// sinkWorker is one thread's share.
type sinkWorker struct {
	*engine.Worker
	lanes []*sinkLane
}

// NewSink is the target of messages and of writes; that of reads and atomics has
// nothing to take.
func NewSink(c *engine.Group) (engine.Side, error) {
	switch k := c.Sh.Kind(); {
	case k == transports.KindRead:
		return NewExposed(c, true, nil), nil
	case engine.IsAtomic(k):
		return NewExposed(c, false, func(w *engine.Worker, l *engine.Lane, _ int, sent engine.LaneCount) error {
			return w.VerifyFinal(l, uint64(sent.Count))
		}), nil
	}
	s := &sink{c: c}
	for _, w := range c.Workers {
		sw := &sinkWorker{Worker: w}
		for _, l := range w.Lanes {
			sw.lanes = append(sw.lanes, &sinkLane{Lane: *l, receiver: newReceiver(c.Sh), ctlFree: engine.CtlSlots})
		}
		s.workers = append(s.workers, sw)
	}
	return s, nil
}

func (s *sink) Prepare(gen int) error {
	defer func() { s.begun = true }()
	for _, w := range s.workers {
		for _, l := range w.lanes {
			l.ClearSlots()
			l.gen, l.data, l.immediates = gen, 0, 0
			if s.begun {
				continue
			}
			if err := l.start(&l.Lane, l.Sh.RecvDepth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sink) Loop(base *engine.Worker) func() error {
	w := s.workers[base.Index]
	if s.c.Sh.ServerSleeps() {
		return w.sleepUntilDone
	}
	return func() error { return Turns(base, w.lanes, w.turn) }
}

func (s *sink) Counts() []engine.LaneCount { return nil }
func (s *sink) Close() error               { return nil }

func (s *sink) Verify(gen int, sent []engine.LaneCount) error {
	if err := s.c.VerifyCounts(sent); err != nil {
		return err
	}
	for _, w := range s.workers {
		for _, l := range w.lanes {
			if l.Sh.Numbered() {
				if err := w.settle(l, sent[l.Index]); err != nil {
					return err
				}
				continue
			}
			if l.Sh.ImmAlone { // a lost one passes for a barrier
				if l.immediates != sent[l.Index].Count {
					return w.Miscounted(&l.Lane, l.immediates, sent[l.Index].Count)
				}
				if err := w.Gaps(&l.Lane, 0); err != nil {
					return err
				}
				continue
			}
			if err := w.VerifySlots(&l.Lane, l.Sh.Seed, gen, sent[l.Index].First, sent[l.Index].Count); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle is what is left to look at behind a phase: how many messages came, what lies
// between the slots, and of writes those of the last pass.
func (w *sinkWorker) settle(l *sinkLane, sent engine.LaneCount) error {
	if l.Kind != transports.KindWrite {
		if l.data != sent.Count {
			return w.Miscounted(&l.Lane, l.data, sent.Count)
		}
		return w.Gaps(&l.Lane, int64(l.Sh.Slots)) // they begin at any slot
	}
	if err := w.Gaps(&l.Lane, sent.Count); err != nil {
		return err
	}
	first := max(l.data, sent.Count-int64(l.Sh.Slots)) // the others were looked at
	return w.LookAtWrites(&l.Lane, l.gen, uint64(first), sent.Count-first)
}

// sleepUntilDone is the target of a stream of writes that the device places unaided. Nothing
// reaches its queues but one barrier a lane, behind the last write, so it sleeps on
// one lane after the other. An incast's target polls: each client's window ends with
// the answer to its own barrier, which must not wait for another's.
func (w *sinkWorker) sleepUntilDone() error {
	w.Begin = engine.Now()
	if w.Numbered && len(w.lanes) == 1 { // asked now and then
		for {
			if err := w.turn(w.lanes[0]); err != nil {
				w.End = engine.Now()
				if err == engine.ErrStop {
					return nil
				}
				return err
			}
		}
	}
	for _, l := range w.lanes {
		for seen := l.seen; l.seen == seen || l.owed; {
			if err := w.turn(l); err != nil {
				w.End = engine.Now()
				if err == engine.ErrStop {
					return nil
				}
				return err
			}
		}
	}
	<-w.Ctx.Done()
	w.End = engine.Now()
	return nil
}

// turn posts receives again and returns credits.
func (w *sinkWorker) turn(l *sinkLane) error {
	n, err := w.Poll(&l.Lane)
	if err != nil {
		return err
	}
	for i := range w.Done[:n] {
		d := &w.Done[i]
		if d.Status != rdma.StatusSuccess {
			return engine.StatusError(&l.Lane, *d)
		}
		if d.Kind != transports.KindRecv {
			l.ctlFree++
			continue
		}
		switch {
		case d.HasImm != carriesImm(l.Kind) && (d.HasImm || d.Len > 0):
			return w.misplaced(l, d)
		case d.HasImm: // counts the messages of the session
			if d.Imm != uint32(l.seen) && l.Sh.Verify {
				return w.Corrupt(&l.Lane, "immediate", 0, byte(l.seen), byte(d.Imm))
			}
			if l.Kind == transports.KindSendImm && int(d.Len) != l.Sh.Payload() {
				return w.Corrupt(&l.Lane, "length of a message", 0, byte(l.Sh.Payload()), byte(d.Len))
			}
			if l.Sh.ImmAlone && l.Sh.Verify {
				w.Compared.Message(immBytes)
			}
			l.immediates++
		case d.Len == 0: // a barrier: only it is empty
			l.owed = true
		case w.Numbered && l.Kind == transports.KindWrite && d.Len == engine.CheckSize:
			at := l.Sh.CtlRx(int(d.Slot) % engine.CtlSlots)
			first := binary.LittleEndian.Uint64(l.Mem[at:])
			if err := w.LookAtWrites(&l.Lane, l.gen, first, int64(l.Sh.Slots)); err != nil {
				return err
			}
			l.data = int64(first) + int64(l.Sh.Slots)
			l.owed = true
		case int(d.Len) != l.Sh.Size:
			return w.Corrupt(&l.Lane, "length of a message", 0, byte(l.Sh.Size), byte(d.Len))
		}
		if w.Numbered && l.takes(d) {
			n := l.seen
			if err := w.Inspect(&l.Lane, l.Mem[l.Sh.RxSlot(int(n%uint64(l.Sh.Slots))):][:l.Sh.Size], l.gen, n, l.Sh.Whole(l.gen, n)); err != nil {
				return err
			}
			l.data++
		}
		l.seen++
		l.unposted++
		w.Ops++
	}
	if l.unposted >= l.repostAt || l.owed {
		return w.refill(l)
	}
	return nil
}

// carriesImm tells operations each of which brings an immediate.
func carriesImm(k transports.Kind) bool {
	return k == transports.KindSendImm || k == transports.KindWriteImm
}

// misplaced is the error of an immediate that is lost, or came with what has none.
func (w *sinkWorker) misplaced(l *sinkLane, d *transports.Done) error {
	what := "immediate that nobody sent with a message"
	if !d.HasImm {
		what = "immediate that a message came without"
	}
	return w.Corrupt(&l.Lane, what, 0, byte(l.seen), byte(d.Imm))
}

// takes tells messages with data from barriers and from what asks for a look.
func (l *sinkLane) takes(d *transports.Done) bool {
	return l.Kind != transports.KindWrite && (d.Len > 0 || d.HasImm)
}

// refill posts taken receives again and tells the client when enough of them, or
// a barrier, make it worth a message. A full queue is left for the next turn.
func (w *sinkWorker) refill(l *sinkLane) error {
	if err := l.repost(w.Worker, &l.Lane); err != nil || l.unposted > 0 {
		return err
	}
	if l.owed = l.owed || l.seen-l.announced >= uint64(CreditEvery(l.Sh)); !l.owed || l.ctlFree == 0 {
		return nil
	}
	at := l.Sh.CtlTx(l.ctlNext)
	binary.LittleEndian.PutUint64(l.Mem[at:], l.seen)
	l.Pair[0] = transports.Op{Kind: transports.KindSend, Local: uint64(at), Len: 8}
	switch _, err := l.S.Post(l.Pair[:1]); err {
	case nil:
		l.announced, l.owed = l.seen, false
		l.ctlFree--
		l.ctlNext = (l.ctlNext + 1) % engine.CtlSlots
		return nil
	case rdma.ErrQueueFull:
		return nil
	default:
		return w.Lost(&l.Lane, "post credit", err)
	}
}
