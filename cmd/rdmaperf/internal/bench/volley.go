package bench

import (
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Ping-pongs on transports that take steps of one in a single call (Caps.Volleys).
// The clock is read, and the answer posted, where the arrival is seen; what stays
// here is between two samples. Small messages are prepared together, go one after the
// other, and are looked at together: what a thread does elsewhere between two samples
// costs the next one caches, and where code is translated even more. The plain loops
// take over when a session is in no state for it, because they know what to say.

// eachVolley is each for one lane, in volleys of several steps. It may end that many
// samples behind the time limit.
func (w *worker) eachVolley(x *exchange, l *lane) error {
	w.open()
	w.end = w.begin
	deadline := w.begin + int64(w.lim.dur)
	for n := int64(0); w.lim.ops == 0 || n < w.lim.ops; {
		k := len(l.trips)
		if w.lim.ops > 0 {
			k = int(min(int64(k), w.lim.ops-n))
		}
		l.came, l.out = 0, k
		for i := range k {
			l.trips[i] = trip{}
			x.begin(l, &l.trips[i], &l.steps[i].Ask)
		}
		met, err := w.volley(x, l, k)
		for i := 0; i < met; i++ {
			t := &l.trips[i]
			if err == nil {
				err = x.settle(w, l, t)
			}
			if err != nil && err != errStop {
				break
			}
			w.record(t.end, t.took/x.divide, 0)
			w.ops++
			w.end = t.end
		}
		if err == nil {
			err = w.repostAll(l)
		}
		if err != nil {
			w.end = now()
			return err
		}
		if w.lim.dur > 0 && w.end >= deadline {
			return nil
		}
		if w.stopped() {
			return errStop
		}
		n += int64(k)
	}
	return nil
}

// volley takes the first k trips of x, whose operations are in l.steps, and returns
// how many came to an end.
func (w *worker) volley(x *exchange, l *lane, k int) (met int, err error) {
	looks := w.offers.looks()
	for i := range k {
		v, t := &l.steps[i], &l.trips[i]
		v.HasAsk, v.HasAnswer, v.Met, v.Until, v.Looks = true, false, false, x.until, looks
		if x.until == rdma.UntilByte {
			last := t.at + l.sh.Size - 1
			v.Watch, v.Was = uint64(last), rdma.LoadByte(l.mem, last)
		}
	}
	for met < k {
		n, err := l.s.Volley(l.steps[met:k], w.done)
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
			w.spins = 0
			continue // what stopped it will stop the next call
		case l.steps[met].HasAsk:
			t := &l.trips[met]
			l.pair[0] = l.steps[met].Ask
			t0, t1, err := w.plainTrip(l, x.until, t.at+l.sh.Size-1)
			if err != nil {
				return met, err
			}
			t.end, t.took = t1, t1-t0
			met++
		case err == rdma.ErrState: // it is over, and a poll will say why
			err = w.reap(l)
		case err != nil:
			err = w.lost(l, "wait for the answer", err)
		default:
			err = w.lookedAround(l)
		}
		if err != nil {
			return met, err
		}
	}
	return met, nil
}

// stamps notes when the steps from was to met ended: the last one just now.
func (w *worker) stamps(l *lane, was, met int) {
	if was == met {
		return
	}
	last := &l.steps[met-1]
	shift := now() - last.Start - last.Took
	for i := was; i < met; i++ {
		v, t := &l.steps[i], &l.trips[i]
		t.end, t.took = v.Start+v.Took+shift, v.Took
	}
}

// lookedAround is idle after a volley that met nothing: time for a look.
func (w *worker) lookedAround(l *lane) error {
	w.spins |= spinLook - 1
	return w.idle(l)
}

// answering is the server's turn of a ping-pong in volleys, nil for none.
func answering(sh *Shape) func(*worker, *lane) error {
	switch {
	case sh.Workload != WorkloadLatency || sh.Arrival == ArrivalNotify || oneSided(sh.kind()):
		return nil
	case sh.Arrival == ArrivalMemory:
		return answerMemory
	}
	return answerMessage
}

// answerMessage is echoTurn: the echoes of the messages that are expected next leave
// as soon as those are there.
func answerMessage(w *worker, l *lane) error {
	vs, slot, looks := l.steps, l.next, w.offers.looks()
	for i := range vs {
		v := &vs[i]
		v.Until, v.Slot, v.Looks = rdma.UntilRecv, slot, looks
		v.Answer, v.HasAsk, v.HasAnswer = l.echo(slot, uint32(l.sh.Size), uint32(l.iter+1)+uint32(i)), false, true
		if slot++; slot == uint32(l.sh.Slots) {
			slot = 0
		}
	}
	n, err := l.s.Volley(vs, w.done)
	if err == rdma.ErrState {
		return echoTurn(w, l)
	}
	if err != nil {
		return w.lost(l, "post "+l.kind.String(), err)
	}
	if n == 0 {
		return w.lookedAround(l)
	}
	w.spins = 0
	return w.echo(l, n, l.answered())
}

// answered is how many steps posted their answers.
func (l *lane) answered() int {
	for i := range l.steps {
		if l.steps[i].HasAnswer {
			return i
		}
	}
	return len(l.steps)
}

// answerMemory is memoryTurn. A queue that is full is polled by the call, and the
// mark stays for the next one.
func answerMemory(w *worker, l *lane) error {
	looks := w.offers.looks()
	for i := range l.steps {
		v, iter := &l.steps[i], l.iter+1+uint64(i)
		at := l.at(iter)
		v.Until, v.Watch, v.Was, v.Looks = rdma.UntilByte, uint64(at+l.sh.Size-1), l.before(iter), looks
		v.Answer, v.HasAsk, v.HasAnswer = l.writeBack(at), false, true
	}
	n, err := l.s.Volley(l.steps, w.done)
	if err == rdma.ErrState {
		return memoryTurn(w, l)
	}
	if err != nil && err != rdma.ErrQueueFull {
		return w.lost(l, "post write", err)
	}
	answered := l.answered()
	l.iter += uint64(answered)
	w.ops += int64(answered)
	if n == 0 && !l.steps[0].Met {
		return w.lookedAround(l)
	}
	w.spins = 0
	return w.completed(l, n)
}
