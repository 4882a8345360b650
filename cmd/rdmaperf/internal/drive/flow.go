// Package drive holds what workloads call: ping-pong, flows one way and both, open loops, calls, and the proof of data.
// A loop owns its worker's lanes until the phase ends, and allocates nothing.
package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Flow is one side of a stream: one way, the server is silent. The window of a side lasts until the peer acknowledges
// that everything arrived, or until the last read or atomic is complete.
//
// Numbers of messages that take receives go on from phase to phase, as the peer's ring of receives does. Generations of
// what the server sends are negative, so that bytes that come back do not pass for the peer's.
type Flow struct {
	c       *engine.Group
	workers []*flowWorker
	begun   bool // the receives are posted
}

type flowWorker struct {
	*engine.Worker
	lanes []*flowLane
}

type flowLane struct {
	Sender
	receiver
	sends, takes bool   // data
	every        uint64 // messages of a credit
	acked        bool   // the peer acknowledges its end
	inSlots      bool   // the receives for data are the window's slots, in turn
	hasImm       bool   // each message of data has an immediate
	dataLen      int    // of data that takes a receive here; -1: there is none
	compares     bool   // what its operations bring, when they end

	out, in Proof // of what leaves and arrives

	fill           func(l *flowLane, ops []transports.Op) // sets what differs between operations; nil: nothing
	begun, flowing bool                                   // the stream may begin; it goes on
	unsignaled     int                                    // operations since the last signalled one
	sent           uint64                                 // number of the next message
	credit         uint64                                 // messages that the peer took and has room for again
	shared         bool                                   // several receives lie in a slot
	used           []uint64                               // by slot, if shared: number behind the last message there
	pass           Pass                                   // of writes
	brought        int64                                  // reads and atomics of the phase that were compared
	stopPeer       bool                                   // the fin asks the peer to end, too
	finAcked, done bool                                   // the fin was; and with it, every read is complete
	sleep          int64                                  // ns for which its worker may sleep while nothing comes

	taken   uint64 // number of the next message
	granted uint64 // of these, credit was given for
	count   int64  // data messages of the phase
	written []bool // by slot, in the phase
	passes  uint64 // of the peer's writes: up to the last one that was compared
	peerFin bool
	acksDue int // to the peer
}

// NewFlow is a side of a stream. The server of reads and atomics has nothing to take.
func NewFlow(c *engine.Group) (engine.Side, error) {
	both, server, k := c.Sh.Bidirectional, c.Role == engine.SideServer, c.Sh.Kind()
	if server && !both && engine.OneSided(k) {
		if k == transports.KindRead {
			return NewExposed(c, true, nil), nil
		}
		return NewExposed(c, false, func(p *Proof, sent engine.LaneCount) error {
			return p.counter(p.L.Sh.RxSlot(0), uint64(sent.Count), "counter after the last atomic")
		}), nil
	}
	f := &Flow{c: c}
	for _, base := range c.Workers {
		w := &flowWorker{Worker: base}
		for _, l := range base.Lanes {
			w.lanes = append(w.lanes, newFlowLane(base, l, both || !server, both || server))
		}
		f.workers = append(f.workers, w)
	}
	return f, nil
}

func newFlowLane(w *engine.Worker, base *engine.Lane, sends, takes bool) *flowLane {
	sh := base.Sh
	l := &flowLane{Sender: NewSender(base), sends: sends, takes: takes, peerFin: !takes}
	l.out, l.in = NewProof(w, base), NewProof(w, base)
	l.acked = sends && takes || !engine.OneSided(l.Kind)
	l.inSlots = l.Kind == transports.KindSend || l.Kind == transports.KindSendImm
	l.fill = filler(sh)
	l.receiver = newReceiver(sh, takes && l.inSlots, takes && !sends)
	if sends && takes && l.inSlots && l.receives() > sh.Slots {
		l.shared, l.used = true, make([]uint64, sh.Slots)
	}
	l.written, l.every = make([]bool, sh.Slots), uint64(CreditEvery(sh))
	if l.hasImm, l.dataLen = carriesImm(l.Kind), -1; takes && l.TakesReceive {
		l.dataLen = sh.Size
	}
	l.compares = sh.Numbered() && engine.OneSided(l.Kind)
	for i := range l.Ops {
		if l.Ops[i].Slot = uint32(sh.Moderation); sh.Moderation > 1 {
			l.Ops[i].Flags |= transports.Unsignaled
		}
	}
	return l
}

func (l *flowLane) receives() int {
	switch {
	case l.sends && l.takes && l.TakesReceive:
		return l.Sh.RecvDepth + controlReceives
	case l.takes && !l.sends:
		return l.Sh.RecvDepth
	}
	return controlReceives
}

func (f *Flow) each(do func(w *flowWorker, l *flowLane) error) error {
	for _, w := range f.workers {
		for _, l := range w.lanes {
			if err := do(w, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Flow) Prepare(gen int) error {
	defer func() { f.begun = true }()
	return f.each(func(w *flowWorker, l *flowLane) error {
		l.ClearSlots()
		l.out.Gen, l.in.Gen = gen, gen
		if both := l.sends && l.takes; both && w.Role == engine.SideServer {
			l.out.Gen = ^gen
		} else if both {
			l.in.Gen = ^gen
		}
		if l.sends && l.acked { // the peer reads it where it does not arrive
			l.out.fillSlots()
		}
		l.seek()
		if f.begun || !l.acked {
			return nil
		}
		return l.start(&l.Lane, l.receives())
	})
}

func (l *flowLane) seek() {
	if !l.TakesReceive {
		l.sent, l.taken = 0, 0
	}
	l.First = l.sent
	l.Head = int(l.First % uint64(l.Sh.Slots))
	if l.inSlots {
		l.Head = int(l.Messages % uint64(l.Sh.Slots))
	}
	l.Posted, l.counted, l.Fenced, l.remaining, l.unsignaled = 0, 0, false, 0, 0
	l.begun, l.flowing, l.stopPeer, l.finAcked, l.done = false, false, false, false, false
	l.pass, l.brought, l.sleep = Pass{}, 0, 0
	l.count, l.passes, l.acksDue, l.peerFin = 0, 0, 0, !l.takes
	clear(l.written)
	clear(l.used) // the acknowledgement of the fin says that all of them were compared
}

func (f *Flow) Loop(base *engine.Worker) func() error {
	w := f.workers[base.Index]
	switch {
	case f.c.Sh.Bidirectional:
		if w.Lim.Ops > 0 {
			w.Peak = new(engine.Peak)
		}
		return w.run
	case f.c.Role == engine.SideClient:
		w.Peak = new(engine.Peak) // the outcome of the phase before keeps its own
		return w.run
	case f.c.Sh.ServerSleeps():
		return w.sleepUntilDone
	}
	return func() error { return Turns(base, w.lanes, w.takeTurn) }
}

// Counts are those of a side that sends.
func (f *Flow) Counts() []engine.LaneCount {
	if f.c.Role == engine.SideServer && !f.c.Sh.Bidirectional {
		return nil
	}
	counts := make([]engine.LaneCount, len(f.c.Lanes))
	f.each(func(_ *flowWorker, l *flowLane) error { counts[l.Index] = l.Sent(); return nil })
	return counts
}

func (f *Flow) Close() error { return nil }
