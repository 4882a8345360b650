package drive

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The latency loops of the client: prepare; read the clock, post, wait for the answer, read the clock; then verify,
// record and repost. QPs are served in turn, one operation at a time.

type exchange struct {
	divide int64      // ways in a round trip
	until  rdma.Until // what ends it
	begin  func(l *pingPongLane, t *roundTrip, op *transports.Op)
	verify func(w *pingPongWorker, l *pingPongLane, t *roundTrip) error // compares what came, untimed
}

type roundTrip struct {
	iter    uint64
	off, at int // window offsets: its source, and the slot that the answer fills
	// Of an answer that took a receive.
	slot, length, imm uint32
	hasImm            bool
	end, took         int64 // ns, of steps taken together
}

var (
	messages = exchange{2, rdma.UntilRecv, beginMessage, verifyMessage}
	writes   = exchange{2, rdma.UntilByte, beginWrite, verifyWrite}
	reads    = exchange{1, rdma.UntilSend, beginRead, (*pingPongWorker).verifyEcho}
	atomics  = exchange{1, rdma.UntilSend, beginAtomic, verifyAtomic}
)

type pingPongLane struct {
	engine.Lane
	proof  Proof
	rx     [engine.LatencySlots]int // window slots
	recvs  []transports.Op          // prepared, one for each slot
	iter   uint64                   // messages of this phase, from 1
	rounds []roundTrip              // under way, or not compared yet
	came   int                      // of these, answered by a message
	out    int                      // operations posted and not known to be complete
	again  []transports.Op          // receives to be posted again
	next   uint32                   // slot of the receive that the next message takes
	steps  []transports.PingPongStep
	ref    rdma.Buffer // client: what the source region should hold; no transport knows it
}

type pingPong struct {
	c       *engine.Group
	workers []*pingPongWorker
	begun   bool
}

type pingPongWorker struct {
	*engine.Worker
	lanes      []*pingPongLane
	inProvider bool // it takes its steps in one call each
}

func NewPingPong(c *engine.Group) (engine.Side, error) {
	p := &pingPong{c: c}
	for _, w := range c.Workers {
		pw := &pingPongWorker{Worker: w, inProvider: c.Sh.Loop == engine.LoopProvider && c.Caps.PingPong && !w.Event}
		p.workers = append(p.workers, pw)
		for _, base := range w.Lanes {
			l, err := newPingPongLane(w, base)
			if err != nil {
				p.Close()
				return nil, err
			}
			pw.lanes = append(pw.lanes, l)
		}
	}
	if c.Role == engine.SideClient {
		for i, w := range p.workers {
			Paced(w.Worker, c.Sh, i, len(p.workers))
		}
	}
	return p, nil
}

func newPingPongLane(w *engine.Worker, base *engine.Lane) (*pingPongLane, error) {
	sh := base.Sh
	l := &pingPongLane{Lane: *base, proof: NewProof(w, base), recvs: make([]transports.Op, sh.Slots)}
	for i := range sh.Slots {
		l.rx[i] = sh.RxSlot(i)
		l.recvs[i] = transports.Op{Kind: transports.KindRecv, Local: uint64(l.rx[i]), Len: uint32(sh.Stride()),
			Slot: uint32(i)}
	}
	l.rounds, l.steps = make([]roundTrip, BatchSteps(sh)), make([]transports.PingPongStep, BatchSteps(sh))
	if w.Role == engine.SideServer {
		return l, nil
	}
	var err error
	if l.ref, err = rdma.Alloc(sh.RxOff()); err != nil {
		return nil, engine.Failed("set up session", err)
	}
	return l, nil
}

func (p *pingPong) Close() error {
	var errs []error
	for _, w := range p.workers {
		for _, l := range w.lanes {
			errs = append(errs, l.ref.Free())
		}
	}
	return errors.Join(errs...)
}

// Prepare writes the pattern into the sources that are used.
func (p *pingPong) Prepare(gen int) error {
	defer func() { p.begun = true }()
	sh := p.c.Sh
	source := p.c.Role == engine.SideClient && !engine.IsAtomic(sh.Kind())
	if sh.Kind() == transports.KindRead {
		source = p.c.Role == engine.SideServer
	}
	for _, w := range p.workers {
		for _, l := range w.lanes {
			l.iter = 0
			l.ClearSlots()
			if source {
				engine.FillPattern(l.Mem[:sh.RxOff()], engine.PatternState(sh.Seed, gen, l.Index, 0))
			}
			// Apart from the window: a transport that damages the source is noticed as well.
			if ref := l.ref.Bytes(); ref != nil {
				engine.FillPattern(ref, engine.PatternState(sh.Seed, gen, l.Index, 0))
			}
			if !p.begun && (sh.Arrival == engine.ArrivalMessage || sh.Arrival == engine.ArrivalNotify) {
				if err := l.PostAll(l.recvs); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *pingPong) Counts() []engine.LaneCount           { return nil }
func (p *pingPong) Verify(int, []engine.LaneCount) error { return nil } // every echo was compared

func (p *pingPong) Loop(base *engine.Worker) func() error {
	w := p.workers[base.Index]
	if p.c.Role == engine.SideServer {
		return w.target()
	}
	sh := p.c.Sh
	x := &messages
	switch {
	case sh.Arrival == engine.ArrivalMemory, sh.Arrival == engine.ArrivalNotify:
		x = &writes
	case sh.Kind() == transports.KindRead:
		x = &reads
	case engine.IsAtomic(sh.Kind()):
		x = &atomics
	}
	sample := x.sample
	if sh.Arrival == engine.ArrivalNotify {
		sample = notifySample
	}
	switch {
	case sh.Rate > 0:
		return func() error { return w.paced(x.divide, sample) }
	case w.inProvider && len(w.lanes) == 1 && BatchSteps(sh) > 1:
		return func() error { return w.eachBatch(x, w.lanes[0]) }
	}
	return func() error { return w.each(x.divide, sample) }
}

// each runs one sample after another until a limit, an error or the stop flag.
func (w *pingPongWorker) each(divide int64,
	one func(w *pingPongWorker, l *pingPongLane) (t0, t1 int64, err error)) error {
	deadline := w.Open()
	for n := int64(0); w.Lim.Ops == 0 || n < w.Lim.Ops; n++ {
		for _, l := range w.lanes {
			t0, t1, err := one(w, l)
			if err != nil {
				w.End = engine.Now()
				return err
			}
			w.Record(t1, (t1-t0)/divide, 0)
			w.Ops++
			w.End = t1
			if t1 >= deadline {
				return nil
			}
			if w.Stopped() {
				return engine.ErrStop
			}
		}
	}
	return nil
}

func (x *exchange) sample(w *pingPongWorker, l *pingPongLane) (t0, t1 int64, err error) {
	t := &l.rounds[0]
	*t = roundTrip{}
	x.begin(l, t, &l.Pair[0])
	l.came, l.out = 0, 1
	if w.inProvider {
		l.steps[0].Ask = l.Pair[0]
		if _, err := w.batch(x, l, 1); err != nil {
			return 0, 0, err
		}
		t0, t1 = t.end-t.took, t.end
	} else if t0, t1, err = w.plainRoundTrip(l, x.until, t.at+l.Sh.Size-1); err != nil {
		return 0, 0, err
	}
	if err := x.verify(w, l, t); err != nil {
		return 0, 0, err
	}
	return t0, t1, w.repostAll(l)
}

// plainRoundTrip posts the operation in l.Pair and waits for what answers it; last is the offset of the byte to watch.
func (w *pingPongWorker) plainRoundTrip(l *pingPongLane, until rdma.Until, last int) (t0, t1 int64, err error) {
	before, came, out := rdma.LoadByte(l.Mem, last), l.came, l.out
	t0 = engine.Now()
	if err := w.Post(&l.Lane, l.Pair[:1]); err != nil {
		return 0, 0, err
	}
	for err == nil {
		switch until {
		case rdma.UntilRecv:
			if l.came > came {
				return t0, engine.Now(), nil
			}
		case rdma.UntilSend:
			if l.out < out {
				return t0, engine.Now(), nil
			}
		default:
			if rdma.LoadByte(l.Mem, last) != before {
				return t0, engine.Now(), nil
			}
		}
		err = w.reap(l)
	}
	return 0, 0, err
}

func (w *pingPongWorker) repostAll(l *pingPongLane) error {
	if len(l.again) == 0 {
		return nil
	}
	err := w.Post(&l.Lane, l.again)
	l.again = l.again[:0]
	return err
}

func (w *pingPongWorker) reap(l *pingPongLane) error {
	n, err := w.Poll(&l.Lane)
	if err != nil {
		return err
	}
	return w.take(l, n)
}

// take counts the n operations of a client lane that have ended.
func (w *pingPongWorker) take(l *pingPongLane, n int) error {
	for i := range w.Done[:n] {
		d := &w.Done[i]
		if d.Status != rdma.StatusSuccess {
			return engine.StatusError(&l.Lane, *d)
		}
		if d.Kind == transports.KindRecv {
			if l.came == len(l.rounds) {
				return engine.Failed(l.Sh.String(), fmt.Errorf("qp %d: more echoes than messages", l.Index))
			}
			t := &l.rounds[l.came]
			t.slot, t.length, t.imm, t.hasImm = d.Slot, d.Len, d.Imm, d.HasImm
			l.came++
		} else {
			l.out--
		}
	}
	return nil
}

func (w *pingPongWorker) untilArrived(l *pingPongLane) error {
	for l.came == 0 {
		if err := w.reap(l); err != nil {
			return err
		}
	}
	return nil
}

func (w *pingPongWorker) untilComplete(l *pingPongLane) error {
	for l.out > 0 {
		if err := w.reap(l); err != nil {
			return err
		}
	}
	return nil
}

// beginMessage is one send or write with immediate, which an echo answers.
func beginMessage(l *pingPongLane, t *roundTrip, op *transports.Op) {
	t.off = l.stamp()
	t.iter, t.at = l.iter, l.at(l.iter)
	*op = transports.Op{Kind: l.Kind, Flags: l.Flags, Local: uint64(t.off), Remote: uint64(t.at),
		Len: uint32(l.Sh.Payload()), Imm: uint32(l.iter)}
}

func verifyMessage(w *pingPongWorker, l *pingPongLane, t *roundTrip) error {
	if err := w.untilComplete(l); err != nil {
		return err
	}
	sh := l.Sh
	if l.Kind != transports.KindSend && sh.Verify && (!t.hasImm || t.imm != uint32(t.iter)) {
		return w.Corrupt(&l.Lane, fmt.Sprintf("immediate of echo %d", t.iter), 0, byte(t.iter), byte(t.imm))
	}
	if l.Kind != transports.KindWriteImm {
		if int(t.length) != sh.Payload() {
			return engine.Failed(sh.String(), fmt.Errorf("qp %d: echo %d has %d bytes, want %d", l.Index, t.iter,
				t.length, sh.Payload()))
		}
		t.at = l.rx[t.slot&(engine.LatencySlots-1)]
	}
	l.again = append(l.again, l.recvs[t.slot])
	return w.verifyEcho(l, t)
}

// immBytes is what an immediate alone proves (IBTA 9.3.6, RFC 7306 §6.2).
const immBytes = 4

func (w *pingPongWorker) verifyEcho(l *pingPongLane, t *roundTrip) error {
	if !l.Sh.Verify {
		return nil
	}
	if l.Sh.ImmAlone {
		w.Compared.Message(immBytes)
		return nil
	}
	n, what := l.Sh.Size, "echo"
	if engine.OneSided(l.Kind) {
		what = "answer"
	}
	return l.proof.Echo(what, t.iter, l.Mem[t.at:t.at+n], l.ref.Bytes()[t.off:t.off+n])
}

func beginWrite(l *pingPongLane, t *roundTrip, op *transports.Op) {
	t.off = l.stamp()
	t.iter, t.at = l.iter, l.at(l.iter)
	*op = transports.Op{Kind: transports.KindWrite, Flags: l.Flags, Local: uint64(t.off), Remote: uint64(t.at),
		Len: uint32(l.Sh.Size)}
}

func verifyWrite(w *pingPongWorker, l *pingPongLane, t *roundTrip) error {
	if err := w.untilComplete(l); err != nil {
		return err
	}
	return w.verifyEcho(l, t)
}

// notifySample is a write and its answer where memory cannot be watched: an empty send follows each.
func notifySample(w *pingPongWorker, l *pingPongLane) (t0, t1 int64, err error) {
	t := &l.rounds[0]
	*t = roundTrip{}
	beginWrite(l, t, &l.Pair[0])
	l.Pair[1] = transports.Op{Kind: transports.KindSend}
	l.came, l.out = 0, 2
	t0 = engine.Now()
	if err := w.Post(&l.Lane, l.Pair[:2]); err != nil {
		return 0, 0, err
	}
	if err := w.untilArrived(l); err != nil {
		return 0, 0, err
	}
	t1 = engine.Now()
	if err := verifyWrite(w, l, t); err != nil {
		return 0, 0, err
	}
	l.again = append(l.again, l.recvs[t.slot])
	return t0, t1, w.repostAll(l)
}

// beginRead is one read. The source offset moves every time, so that the last read's bytes are wrong ones.
func beginRead(l *pingPongLane, t *roundTrip, op *transports.Op) {
	l.iter++
	t.iter, t.off, t.at = l.iter, l.source(l.iter), l.at(l.iter)
	*op = transports.Op{Kind: transports.KindRead, Local: uint64(t.at), Remote: uint64(t.off), Len: uint32(l.Sh.Size)}
}

// beginAtomic is one atomic on the target's counter. It must return the number of those before it.
func beginAtomic(l *pingPongLane, t *roundTrip, op *transports.Op) {
	want := l.iter
	l.iter++
	t.iter, t.at = l.iter, l.at(l.iter)
	*op = transports.Op{Kind: l.Kind, Local: uint64(t.at), Remote: uint64(l.rx[0]), Len: engine.AtomicSize}
	if l.Kind == transports.KindFetchAdd {
		op.Add = 1
	} else {
		op.Add, op.Swap = want, want+1
	}
}

func verifyAtomic(w *pingPongWorker, l *pingPongLane, t *roundTrip) error {
	if !l.Sh.Verify {
		return nil
	}
	return l.proof.fetched(t.at, t.iter-1)
}

func (l *pingPongLane) source(iter uint64) int { return int(iter%engine.LatencyShifts) * Shift(l.Sh) }

func (l *pingPongLane) at(iter uint64) int {
	return l.rx[iter&uint64(l.Sh.Slots-1)&(engine.LatencySlots-1)]
}

// Stamp marks message iter at its start, where it is long enough, and at its end.
func Stamp(b []byte, iter uint64) {
	if len(b) > 8 {
		binary.LittleEndian.PutUint64(b, iter)
	}
	b[len(b)-1] = stampOf(iter)
}

// stampOf is the last byte of message iter: unlike that of the 254 messages before, and never zero.
func stampOf(iter uint64) byte { return byte(iter%255) + 1 }

// stamp marks the next message, in source and reference alike so that nothing has to be restored.
func (l *pingPongLane) stamp() int {
	l.iter++
	off, n, ref := l.source(l.iter), l.Sh.Size, l.ref.Bytes()
	Stamp(l.Mem[off:off+n], l.iter)
	Stamp(ref[off:off+n], l.iter)
	return off
}
