package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Turns is a loop of a server: it calls one for every lane in turn until it fails or the flag is set.
func Turns[L any](w *engine.Worker, lanes []L, one func(L) error) error {
	w.Begin = engine.Now()
	taken, sleep := int64(0), int64(0)
	for !w.Stopped() { // here as well as in Idle, which a flood of messages never reaches
		for _, l := range lanes {
			if err := one(l); err != nil {
				w.End = engine.Now()
				if err == engine.ErrStop {
					return nil
				}
				return err
			}
		}
		switch {
		case !w.Sleeps:
		case w.Ops > taken:
			taken = w.Ops
			// Half of the receives are taken before the client gets credit.
			sleep = SleepTime(w.Sh.RecvDepth/2, taken, engine.Now()-w.Begin)
		case sleep >= leastSleep:
			Sleep(sleep)
		}
	}
	w.End = engine.Now()
	return nil
}

func pollTurn(w *engine.Worker, l *engine.Lane) error {
	n, err := w.Poll(l)
	if err != nil {
		return err
	}
	return completed(l, w.Done[:n])
}

func completed(l *engine.Lane, done []transports.Done) error {
	for i := range done {
		if d := &done[i]; d.Status != rdma.StatusSuccess {
			return engine.StatusError(l, *d)
		}
	}
	return nil
}

// exposed has windows that the client reads and writes; its thread only polls, or sleeps where its device needs none.
type exposed struct {
	c     *engine.Group
	fill  bool                                        // sources have the pattern
	check func(p *Proof, sent engine.LaneCount) error // nil: nothing was written
}

// NewExposed makes one. fill is for clients that read; check holds a window against what the client says it wrote.
func NewExposed(c *engine.Group, fill bool, check func(p *Proof, sent engine.LaneCount) error) engine.Side {
	return &exposed{c, fill, check}
}

func (e *exposed) Prepare(gen int) error {
	for _, l := range e.c.Lanes {
		l.ClearSlots()
		if e.fill {
			(&Proof{L: l, Gen: gen}).fillSlots()
		}
	}
	return nil
}

func (e *exposed) Loop(w *engine.Worker) func() error { return onlyPoll(w) }

func onlyPoll(w *engine.Worker) func() error {
	if w.Sh.Idle {
		return w.Rest
	}
	return func() error { return Turns(w, w.Lanes, func(l *engine.Lane) error { return pollTurn(w, l) }) }
}

func (e *exposed) Counts() []engine.LaneCount { return nil }
func (e *exposed) Close() error               { return nil }

func (e *exposed) Verify(gen int, sent []engine.LaneCount) error {
	if err := e.c.VerifyCounts(sent); err != nil || e.check == nil {
		return err
	}
	for _, w := range e.c.Workers {
		for _, l := range w.Lanes {
			p := NewProof(w, l)
			p.Gen = gen
			if err := e.check(&p, sent[l.Index]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Where the kernel is the device, its threads need the CPUs that poll, so both ends of a stream sleep for a 64th of
// what the queue holds; a sleep may last four times as long. MostSleep is a sixth of a fair scheduler's slice; below
// leastSleep most of it is slack of the kernel's timers.
const (
	sleepPart        = 64
	MostSleep  int64 = 500_000 // ns
	leastSleep int64 = 100_000
)

// SleepTime is for how many ns a worker may sleep with left operations to do, after done of them in took ns.
func SleepTime(left int, done, took int64) int64 {
	if left <= 0 || done <= 0 {
		return 0
	}
	return min(took/done*int64(left)/sleepPart, MostSleep)
}

// Sleep sleeps for so many ns. A variable, so that tests can have a clock of their own.
var Sleep = engine.SleepFor

func (w *pingPongWorker) target() func() error {
	sh := w.Sh
	turn := echoTurn
	switch {
	case sh.Arrival == engine.ArrivalMemory:
		turn = memoryTurn
	case sh.Arrival == engine.ArrivalNotify:
		turn = notifyTurn
	case engine.OneSided(sh.Kind()):
		return onlyPoll(w.Worker)
	}
	if answer := answering(sh); answer != nil && w.inProvider && len(w.lanes) == 1 {
		turn = answer // a long poll of one session would keep others waiting
	}
	return func() error { return Turns(w.Worker, w.lanes, func(l *pingPongLane) error { return turn(w, l) }) }
}

// echoTurn answers every message out of the buffer where it arrived, whose receive is posted again behind the echo.
func echoTurn(w *pingPongWorker, l *pingPongLane) error {
	n, err := w.Poll(&l.Lane)
	if err != nil {
		return err
	}
	return w.echo(l, n, 0)
}

// echo answers the messages among n finished operations, of which a batch has answered the first so many, in slots from
// l.next on, and posts the receives again whose echoes have left.
func (w *pingPongWorker) echo(l *pingPongLane, n, answered int) error {
	for i := range w.Done[:n] {
		d := &w.Done[i]
		if d.Status != rdma.StatusSuccess {
			return engine.StatusError(&l.Lane, *d)
		}
		op := &l.Pair[0]
		switch {
		case d.Kind != transports.KindRecv: // Slot is that of the receive it answered
			l.again = append(l.again, l.recvs[d.Slot])
			continue
		case answered > 0 && d.Slot == l.next:
			answered--
			w.arrived(l)
			w.Ops++
			continue
		default:
			l.next = d.Slot
			w.arrived(l)
			*op = l.echo(d.Slot, d.Len, d.Imm)
		}
		if err := w.Post(&l.Lane, l.Pair[:1]); err != nil {
			return err
		}
		w.Ops++
	}
	return w.repostAll(l)
}

func (w *pingPongWorker) arrived(l *pingPongLane) {
	l.iter++
	if l.next++; l.next == uint32(l.Sh.Slots) {
		l.next = 0
	}
}

// echo is the operation that sends back what arrived in a slot.
func (l *pingPongLane) echo(slot, length, imm uint32) transports.Op {
	if l.Kind == transports.KindWriteImm {
		at := uint64(l.at(uint64(imm)))
		return transports.Op{Kind: transports.KindWriteImm, Flags: l.Flags, Local: at, Remote: at,
			Len: uint32(l.Sh.Size), Imm: imm, Slot: slot}
	}
	kind := transports.KindSend
	if l.Kind == transports.KindSendImm {
		kind = transports.KindSendImm
	}
	return transports.Op{Kind: kind, Flags: l.Flags, Local: l.recvs[slot].Local, Len: length, Imm: imm,
		Slot: slot}
}

// memoryTurn watches one slot after the other and writes back what came.
func memoryTurn(w *pingPongWorker, l *pingPongLane) error {
	sh := l.Sh
	at := l.at(l.iter + 1)
	last := at + sh.Size - 1
	if rdma.LoadByte(l.Mem, last) != l.before(l.iter+1) {
		l.Pair[0] = l.writeBack(at)
		switch _, err := l.S.Post(l.Pair[:1]); err {
		case nil:
			l.iter++
			w.Ops++
			return nil
		case rdma.ErrQueueFull:
			// The next message came before the acknowledgements of earlier answers. Its mark stays for a later turn.
		default:
			return w.Lost(&l.Lane, "post write", err)
		}
	}
	n, err := w.Poll(&l.Lane)
	if err != nil {
		return err
	}
	return completed(&l.Lane, w.Done[:n])
}

func (l *pingPongLane) writeBack(at int) transports.Op {
	return transports.Op{Kind: transports.KindWrite, Flags: l.Flags, Local: uint64(at), Remote: uint64(at),
		Len: uint32(l.Sh.Size)}
}

// before is the last byte of the slot of message iter until it arrives.
func (l *pingPongLane) before(iter uint64) byte {
	slots := uint64(l.Sh.Slots)
	if iter <= slots {
		return 0
	}
	return stampOf(iter - slots)
}

// notifyTurn answers a write that an empty send announced.
func notifyTurn(w *pingPongWorker, l *pingPongLane) error {
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
			continue
		}
		l.iter++
		l.Pair[0] = l.writeBack(l.at(l.iter))
		l.Pair[1] = transports.Op{Kind: transports.KindSend}
		if err := w.Post(&l.Lane, l.Pair[:2]); err != nil {
			return err
		}
		l.Pair[0] = l.recvs[d.Slot]
		if err := w.Post(&l.Lane, l.Pair[:1]); err != nil {
			return err
		}
		w.Ops++
	}
	return nil
}
