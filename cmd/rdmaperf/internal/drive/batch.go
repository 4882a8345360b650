package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Ping-pongs on transports that take steps of one in a single call (Caps.PingPong). Small messages are prepared and
// compared together, because work between two samples costs the next one caches.

// eachBatch is each for one lane, in batches of several steps. It may end that many samples behind the time limit.
func (w *pingPongWorker) eachBatch(x *exchange, l *pingPongLane) error {
	deadline := w.Open()
	w.End = w.Begin
	for n := int64(0); w.Lim.Ops == 0 || n < w.Lim.Ops; {
		k := len(l.rounds)
		if w.Lim.Ops > 0 {
			k = int(min(int64(k), w.Lim.Ops-n))
		}
		l.came, l.out = 0, k
		for i := range k {
			l.rounds[i] = roundTrip{}
			x.begin(l, &l.rounds[i], &l.steps[i].Ask)
		}
		met, err := w.batch(x, l, k)
		for i := 0; i < met; i++ {
			t := &l.rounds[i]
			if err == nil {
				err = x.verify(w, l, t)
			}
			if err != nil && err != engine.ErrStop {
				break
			}
			w.Record(t.end, t.took/x.divide, 0)
			w.Ops++
			w.End = t.end
		}
		if err == nil {
			err = w.repostAll(l)
		}
		if err != nil {
			w.End = engine.Now()
			return err
		}
		if w.End >= deadline {
			return nil
		}
		if w.Stopped() {
			return engine.ErrStop
		}
		n += int64(k)
	}
	return nil
}

// batch takes the first k round trips of x, whose operations are in l.steps, and returns how many came to an end.
func (w *pingPongWorker) batch(x *exchange, l *pingPongLane, k int) (met int, err error) {
	looks := w.Yielder.Polls()
	for i := range k {
		v, t := &l.steps[i], &l.rounds[i]
		v.HasAsk, v.HasAnswer, v.Met, v.Until, v.Looks = true, false, false, x.until, looks
		if x.until == rdma.UntilByte {
			last := t.at + l.Sh.Size - 1
			v.Watch, v.Was = uint64(last), rdma.LoadByte(l.Mem, last)
		}
	}
	for met < k {
		n, err := l.S.PingPong(l.steps[met:k], w.Done)
		was := met
		for met < k && l.steps[met].Met {
			met++
		}
		w.stamps(l, was, met)
		if e := w.take(l, n); e != nil {
			return was, e
		}
		switch {
		case met > was:
			w.Spins = 0
			continue // what stopped it will stop the next call
		case l.steps[met].HasAsk:
			t := &l.rounds[met]
			l.Pair[0] = l.steps[met].Ask
			t0, t1, err := w.plainRoundTrip(l, x.until, t.at+l.Sh.Size-1)
			if err != nil {
				return met, err
			}
			t.end, t.took = t1, t1-t0
			met++
		case err == rdma.ErrState: // it is over, and a poll will say why
			err = w.reap(l)
		case err != nil:
			err = w.Lost(&l.Lane, "wait for the answer", err)
		default:
			err = w.CheckNow(&l.Lane)
		}
		if err != nil {
			return met, err
		}
	}
	return met, nil
}

func (w *pingPongWorker) stamps(l *pingPongLane, was, met int) {
	if was == met {
		return
	}
	last := &l.steps[met-1]
	shift := engine.Now() - last.Start - last.Took
	for i := was; i < met; i++ {
		v, t := &l.steps[i], &l.rounds[i]
		t.end, t.took = v.Start+v.Took+shift, v.Took
	}
}

func answering(sh *engine.Shape) func(*pingPongWorker, *pingPongLane) error {
	switch {
	case sh.Arrival == engine.ArrivalNotify || engine.OneSided(sh.Kind()):
		return nil
	case sh.Arrival == engine.ArrivalMemory:
		return answerMemory
	}
	return answerMessage
}

// answerMessage is echoTurn: the echoes of the messages that are expected next leave as soon as those are there.
func answerMessage(w *pingPongWorker, l *pingPongLane) error {
	vs, slot, looks := l.steps, l.next, w.Yielder.Polls()
	for i := range vs {
		v := &vs[i]
		v.Until, v.Slot, v.Looks = rdma.UntilRecv, slot, looks
		v.Answer, v.HasAsk, v.HasAnswer = l.echo(slot, uint32(l.Sh.Payload()), uint32(l.iter+1)+uint32(i)), false, true
		if slot++; slot == uint32(l.Sh.Slots) {
			slot = 0
		}
	}
	n, err := l.S.PingPong(vs, w.Done)
	if err == rdma.ErrState {
		return echoTurn(w, l)
	}
	if err != nil {
		return w.Lost(&l.Lane, "post "+l.Kind.String(), err)
	}
	if n == 0 {
		return w.CheckNow(&l.Lane)
	}
	w.Spins = 0
	return w.echo(l, n, l.answered())
}

func (l *pingPongLane) answered() int {
	for i := range l.steps {
		if l.steps[i].HasAnswer {
			return i
		}
	}
	return len(l.steps)
}

// answerMemory is memoryTurn. A queue that is full is polled by the call, and the mark stays for the next one.
func answerMemory(w *pingPongWorker, l *pingPongLane) error {
	looks := w.Yielder.Polls()
	for i := range l.steps {
		v, iter := &l.steps[i], l.iter+1+uint64(i)
		at := l.at(iter)
		v.Until, v.Watch, v.Was, v.Looks = rdma.UntilByte, uint64(at+l.Sh.Size-1), l.before(iter), looks
		v.Answer, v.HasAsk, v.HasAnswer = l.writeBack(at), false, true
	}
	n, err := l.S.PingPong(l.steps, w.Done)
	if err == rdma.ErrState {
		return memoryTurn(w, l)
	}
	if err != nil && err != rdma.ErrQueueFull {
		return w.Lost(&l.Lane, "post write", err)
	}
	answered := l.answered()
	l.iter += uint64(answered)
	w.Ops += int64(answered)
	if n == 0 && !l.steps[0].Met {
		return w.CheckNow(&l.Lane)
	}
	w.Spins = 0
	return completed(&l.Lane, w.Done[:n])
}
