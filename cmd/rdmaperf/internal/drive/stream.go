package drive

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// streamLane is a session of the initiator of a stream.
type streamLane struct {
	Sender
	gen   int    // of the phase
	done  int64  // data operations of this phase that completed, where numbers are compared
	asked int64  // operations posted when that was asked for last
	asks  uint64 // of messages that ask for a look at a pass of writes: the count at which it is answered; 0: none is out
	acked uint64 // of its messages, how many receives the peer has posted again
	tail  bool   // the last operation of the phase was posted
	sleep int64  // ns for which its worker may sleep while nothing comes
}

// seek starts a phase. Messages go on counting from the phase before, because the
// peer's receives lie in the ring in that order. Operations of a moderation group that
// began before the phase count as outstanding until the group's completion, which
// stands for all of them.
func (l *streamLane) seek() {
	l.First = 0
	if l.TakesReceive {
		l.First = l.Messages
	}
	l.Head = int(l.First % uint64(Ring(l.Sh)))
	l.Out = l.Head % l.Sh.Moderation
	l.Posted, l.tail, l.Fenced = 0, false, false
	l.counted, l.done, l.asks, l.asked = 0, 0, 0, 0
}

// credit reads a credit message.
func (l *streamLane) credit(i uint32) uint64 {
	return binary.LittleEndian.Uint64(l.Mem[l.Sh.CtlRx(int(i)):])
}

// stream is the client's side of a stream one way.
type stream struct {
	c       *engine.Group
	workers []*streamWorker
	begun   bool
}

// streamWorker is one thread's share.
type streamWorker struct {
	*engine.Worker
	lanes []*streamLane
}

func NewStream(c *engine.Group) (engine.Side, error) {
	s := &stream{c: c}
	for _, w := range c.Workers {
		sw := &streamWorker{Worker: w}
		for _, l := range w.Lanes {
			sw.lanes = append(sw.lanes, &streamLane{Sender: NewSender(l)})
		}
		s.workers = append(s.workers, sw)
	}
	return s, nil
}

// each calls f for every session.
func (s *stream) each(f func(w *streamWorker, l *streamLane) error) error {
	for _, w := range s.workers {
		for _, l := range w.lanes {
			if err := f(w, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stream) Prepare(gen int) error {
	defer func() { s.begun = true }()
	return s.each(func(_ *streamWorker, l *streamLane) error {
		l.ClearSlots()
		if l.Kind != transports.KindRead && !engine.IsAtomic(l.Kind) {
			l.FillSlots(l.Sh.Seed, gen)
		}
		l.seek()
		l.gen = gen
		if s.begun || engine.OneSided(l.Kind) {
			return nil
		}
		ops := make([]transports.Op, engine.CtlSlots)
		for i := range ops {
			ops[i] = l.CtlRecv(i)
		}
		return l.PostAll(ops)
	})
}

func (s *stream) Loop(w *engine.Worker) func() error {
	w.Peak = new(engine.Peak) // the outcome of the phase before keeps its own
	return s.workers[w.Index].run
}

func (s *stream) Counts() []engine.LaneCount {
	counts := make([]engine.LaneCount, len(s.c.Lanes))
	s.each(func(_ *streamWorker, l *streamLane) error { counts[l.Index] = l.Sent(); return nil })
	return counts
}

// Verify checks what came back.
func (s *stream) Verify(gen int, _ []engine.LaneCount) error {
	return s.each(func(w *streamWorker, l *streamLane) error {
		switch {
		case l.Sh.Numbered() && engine.OneSided(l.Kind):
			return w.complete(l)
		case l.Kind == transports.KindRead:
			return w.VerifySlots(&l.Lane, l.Sh.Seed, gen, l.First, l.Posted)
		case engine.IsAtomic(l.Kind):
			return w.verifyFetched(l)
		}
		return nil
	})
}

func (s *stream) Close() error { return nil }

// verifyFetched: every slot holds the old value that the last atomic of that slot fetched.
func (w *streamWorker) verifyFetched(l *streamLane) error {
	sh := l.Sh
	for s := range min(int64(sh.Slots), l.Posted) {
		last := (l.Posted - 1 - s) / int64(sh.Slots)
		if err := w.VerifyCounter(&l.Lane, sh.RxSlot(int(s)), uint64(s+last*int64(sh.Slots))); err != nil {
			return err
		}
	}
	return nil
}

// run is the throughput loop of the client: as many operations outstanding as
// the depth, the credits and the limits allow, posted in batches out of a ring of
// prepared operations. The clock is read once a turn in which something
// completed.
func (w *streamWorker) run() error {
	w.Open()
	err := w.flow()
	if err == nil || err == engine.ErrStop && w.MayFinish() {
		// After a stop, too, what was posted is brought home: an interrupted stream
		// is an honest short one.
		if e := w.finish(); e != nil {
			err = e
		}
	}
	w.End = engine.Now()
	for _, l := range w.lanes {
		n := l.Posted
		if !l.settled() {
			n -= int64(min(l.Out, int(l.Posted))) // what nobody knows did not happen
		}
		w.Ops += n
		w.Took(w.End, n-l.counted)
	}
	return err
}

// flow posts until the limits are reached and only the tail is left to post.
func (w *streamWorker) flow() error {
	fill := filler(w.Sh)
	deadline := int64(1<<63 - 1)
	if w.Lim.Dur > 0 {
		deadline = w.Begin + int64(w.Lim.Dur)
	}
	for _, l := range w.lanes {
		l.remaining = 1<<62 - 1
		if w.Lim.Ops > 0 {
			l.remaining = w.Lim.Ops - 1 // the tail is the last one
		}
	}
	open := len(w.lanes)
	for open > 0 {
		open = 0
		sleep := MostSleep
		for _, l := range w.lanes {
			k, err := w.push(l, fill)
			if err != nil {
				return err
			}
			if l.remaining > 0 {
				open++
			}
			n, err := w.collect(l)
			if err != nil {
				return err
			}
			if k == 0 && n == 0 {
				sleep = min(sleep, l.sleep)
				continue
			}
			sleep = 0
			if w.Stopped() {
				return engine.ErrStop
			}
			if n == 0 {
				continue
			}
			t := engine.Now()
			// Below zero while operations of the phase before are still counted out.
			if done := l.Posted - int64(l.Out); done > l.counted {
				w.Took(t, done-l.counted)
				l.counted = done
				if w.Sleeps {
					l.sleep = SleepTime(l.Out-l.Sh.Moderation, done, t-w.Begin)
				}
			}
			if t >= deadline {
				return nil
			}
		}
		if sleep >= leastSleep {
			Nap(sleep)
		}
	}
	return nil
}

// push posts one batch and returns its length, 0 when nothing may be posted now.
func (w *streamWorker) push(l *streamLane, fill func(*streamLane, []transports.Op)) (int, error) {
	k := min(l.Sh.Depth-l.Out, Batch(l.Sh))
	if int64(k) > l.remaining {
		k = int(l.remaining)
	}
	if l.TakesReceive {
		k = min(k, l.credits())
	}
	if w.Numbered {
		var err error
		if k, err = w.own(l, k); err != nil {
			return 0, err
		}
	}
	if k <= 0 {
		return 0, nil
	}
	ops := l.Ops[l.Head : l.Head+k]
	if fill != nil {
		fill(l, ops)
	}
	n, err := l.S.Post(ops)
	l.Posted += int64(n)
	l.remaining -= int64(n)
	l.Out += n
	if l.Head += n; l.Head >= Ring(l.Sh) {
		l.Head %= Ring(l.Sh)
	}
	if l.TakesReceive {
		l.Messages += uint64(n)
	}
	if n < k && err != rdma.ErrQueueFull {
		return n, w.Lost(&l.Lane, "post "+l.Sh.Op, err)
	}
	return n, nil
}

// credits is how many messages the peer has receives for.
func (l *streamLane) credits() int { return l.Sh.RecvDepth - int(l.Messages-l.acked) }

// collect takes one poll of completions and credits and returns their number.
func (w *streamWorker) collect(l *streamLane) (int, error) {
	n, err := w.Poll(&l.Lane)
	if err != nil {
		return 0, err
	}
	for i := range w.Done[:n] {
		d := &w.Done[i]
		if d.Status != rdma.StatusSuccess {
			return n, engine.StatusError(&l.Lane, *d)
		}
		if d.Kind != transports.KindRecv {
			l.Out -= int(d.Slot)
			if w.Numbered && engine.OneSided(l.Kind) {
				if err := w.lookAtDone(l, int64(d.Slot)); err != nil {
					return n, err
				}
			}
			continue
		}
		acked := l.credit(d.Slot)
		if acked <= l.acked || acked > l.Messages {
			return n, w.Lost(&l.Lane, "read credit", fmt.Errorf("%d messages taken, after %d of %d", acked, l.acked, l.Messages))
		}
		l.acked = acked
		l.Pair[0] = l.CtlRecv(int(d.Slot))
		if err := w.Post(&l.Lane, l.Pair[:1]); err != nil {
			return n, err
		}
	}
	return n, nil
}

// finish posts the tail, which is signalled whatever the moderation, waits until
// everything is complete, and proves arrival with a barrier where completion does
// not: an empty send that the target answers after all its receives before it,
// hence after everything that travelled ahead of it.
func (w *streamWorker) finish() error {
	fill := filler(w.Sh)
	for open := len(w.lanes); open > 0; {
		open = 0
		for _, l := range w.lanes {
			if err := w.wrapUp(l, fill); err != nil {
				return err
			}
			if !l.settled() {
				open++
				if _, err := w.collect(l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// own bounds a batch of k operations to slots that are nobody's any more, and has the target
// look at a pass of writes where that is due. It returns how many may be posted now.
func (w *streamWorker) own(l *streamLane, k int) (int, error) {
	k = min(k, l.Sh.Slots-l.Out)
	if l.Kind != transports.KindWrite {
		return k, nil
	}
	slots := int64(l.Sh.Slots)
	if l.asks > 0 {
		if l.acked < l.asks {
			return 0, nil
		}
		l.asks = 0
	} else if l.Posted > l.asked && l.Posted%slots == 0 && l.Sh.LooksAt(uint64(l.Posted/slots-1)) {
		return 0, w.ask(l)
	}
	return min(k, int(slots-l.Posted%slots)), nil
}

// ask sends the number of the first message of the pass that is looked at. The message
// travels behind the writes.
func (w *streamWorker) ask(l *streamLane) error {
	if l.Out >= l.Sh.Depth || l.credits() == 0 {
		return nil
	}
	at := l.Sh.CtlTx(0)
	binary.LittleEndian.PutUint64(l.Mem[at:], uint64(l.Posted)-uint64(l.Sh.Slots))
	l.Pair[0] = transports.Op{Kind: transports.KindSend, Local: uint64(at), Len: engine.CheckSize, Slot: 1}
	switch _, err := l.S.Post(l.Pair[:1]); {
	case err == rdma.ErrQueueFull:
		return nil
	case err != nil:
		return w.Lost(&l.Lane, "post send", err)
	}
	l.Out++
	l.Messages++
	l.asks, l.asked = l.Messages, l.Posted
	return nil
}

// lookAtDone compares what the next n reads or atomics brought.
func (w *streamWorker) lookAtDone(l *streamLane, n int64) error {
	for range n {
		i := uint64(l.done)
		var err error
		if l.Kind == transports.KindRead {
			err = w.LookAtRead(&l.Lane, l.gen, i, l.Sh.Whole(l.gen, i))
		} else if err = w.VerifyCounter(&l.Lane, l.Sh.RxSlot(int(i%uint64(l.Sh.Slots))), i); err == nil {
			w.Compared.Message(engine.AtomicSize)
		}
		if err != nil {
			return err
		}
		l.done++
	}
	return nil
}

// complete tells whether each operation was looked at.
func (w *streamWorker) complete(l *streamLane) error {
	if l.done != l.Posted {
		return w.Miscounted(&l.Lane, l.done, l.Posted)
	}
	return w.Gaps(&l.Lane, l.Posted)
}

// settled tells that nothing of a lane is outstanding.
func (l *streamLane) settled() bool {
	return l.tail && l.Out == 0 && (!l.needsBarrier() || l.Fenced && l.acked == l.Messages)
}

func (l *streamLane) needsBarrier() bool { return !engine.OneSided(l.Kind) }

// wrapUp posts the tail and then the barrier as soon as there is room.
func (w *streamWorker) wrapUp(l *streamLane, fill func(*streamLane, []transports.Op)) error {
	if l.needsBarrier() && l.credits() == 0 {
		return nil
	}
	var op transports.Op
	switch {
	case !l.tail:
		if l.Out >= l.Sh.Depth {
			return nil
		}
		if w.Numbered {
			if k, err := w.own(l, 1); k < 1 || err != nil {
				return err
			}
		}
		if fill != nil {
			fill(l, l.Ops[l.Head:l.Head+1])
		}
		op = l.Ops[l.Head]
		op.Flags &^= transports.Unsignaled
		op.Slot = uint32(l.Head%l.Sh.Moderation + 1)
	case l.needsBarrier() && !l.Fenced:
		op = transports.Op{Kind: transports.KindSend, Slot: 1}
	default:
		return nil
	}
	l.Pair[0] = op
	switch _, err := l.S.Post(l.Pair[:1]); {
	case err == rdma.ErrQueueFull:
		return nil
	case err != nil:
		return w.Lost(&l.Lane, "post "+op.Kind.String(), err)
	}
	l.Out++
	switch {
	case l.tail:
		l.Fenced = true
		l.Messages++
	default:
		l.tail = true
		l.Posted++
		l.Head = (l.Head + 1) % Ring(l.Sh)
		if l.TakesReceive {
			l.Messages++
		}
	}
	return nil
}

// filler returns what must be set in every single operation, nil where that is nothing.
func filler(sh *engine.Shape) func(*streamLane, []transports.Op) {
	switch k := sh.Kind(); {
	case !sh.Numbered() || engine.IsAtomic(k):
	case k == transports.KindRead:
		return turnSource
	default:
		return numberer(k)
	}
	switch sh.Kind() {
	case transports.KindSendImm, transports.KindWriteImm:
		return func(l *streamLane, ops []transports.Op) {
			for i := range ops {
				ops[i].Imm = uint32(l.Messages) + uint32(i)
			}
		}
	case transports.KindCmpSwap:
		return func(l *streamLane, ops []transports.Op) {
			for i := range ops {
				ops[i].Add = uint64(l.Posted) + uint64(i)
				ops[i].Swap = uint64(l.Posted) + uint64(i) + 1
			}
		}
	}
	return nil
}

// numberer returns what writes the messages of a batch, which begin with the lane's next.
func numberer(k transports.Kind) func(*streamLane, []transports.Op) {
	return func(l *streamLane, ops []transports.Op) {
		sh := l.Sh
		for i := range ops {
			n := l.First + uint64(l.Posted) + uint64(i)
			whole := sh.Whole(l.gen, n) || k == transports.KindWrite && sh.LooksAt(n/uint64(sh.Slots))
			l.Write(l.Mem[ops[i].Local:][:sh.Size], l.gen, n, whole)
			if k == transports.KindSendImm || k == transports.KindWriteImm {
				ops[i].Imm = uint32(n)
			}
		}
	}
}

// turnSource has reads ask for another slot of the source in each pass.
func turnSource(l *streamLane, ops []transports.Op) {
	sh := l.Sh
	for i := range ops {
		ops[i].Remote = uint64(sh.ReadFrom(uint64(l.Posted)+uint64(i)) * sh.Stride())
	}
}
