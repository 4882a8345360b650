package bench

import (
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Ping-pongs on transports that take a step of one in a single call
// (Caps.Volleys). The clock is read, and the answer posted, where the
// arrival is seen; what stays here is between two samples. The plain loops take
// over when a session is in no state for it, because they know what to say.

// volleyLooks is how long one call looks: as long as the other loops do between two
// looks at the stop flag and the clock.
const volleyLooks = spinLook

// volley is roundTrip.
func (w *worker) volley(l *lane, until rdma.Until, last int) (t0, t1 int64, err error) {
	v := &l.step
	v.Ask, v.HasAsk, v.HasAnswer = l.pair[0], true, false
	v.Until, v.Watch, v.Looks = until, uint64(last), volleyLooks
	if until == rdma.UntilByte {
		v.Was = rdma.LoadByte(l.mem, last)
	}
	for {
		n, err := l.s.Volley(v, w.done)
		if e := w.take(l, n); e != nil {
			return 0, 0, e
		}
		switch {
		case v.HasAsk:
			return w.plainTrip(l, until, last)
		case err == rdma.ErrState: // it is over, and a poll will say why
			err = w.reap(l)
		case err != nil:
			err = w.lost(l, "wait for the answer", err)
		case v.Met:
			w.spins = 0
			t1 = now()
			return t1 - v.Took, t1, nil
		default:
			err = w.lookedAround(l)
		}
		if err != nil {
			return 0, 0, err
		}
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

// answerMessage is echoTurn: the echo of the message that is expected next leaves
// as soon as that is there.
func answerMessage(w *worker, l *lane) error {
	v := &l.step
	v.Until, v.Slot, v.Looks = rdma.UntilRecv, l.next, volleyLooks
	v.Answer, v.HasAsk, v.HasAnswer = l.echo(l.next, uint32(l.sh.Size), uint32(l.iter+1)), false, true
	n, err := l.s.Volley(v, w.done)
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
	return w.echo(l, n, !v.HasAnswer)
}

// answerMemory is memoryTurn. A queue that is full is polled by the call, and the
// mark stays for the next one.
func answerMemory(w *worker, l *lane) error {
	at := l.at(l.iter + 1)
	v := &l.step
	v.Until, v.Watch, v.Was, v.Looks = rdma.UntilByte, uint64(at+l.sh.Size-1), l.before(l.iter+1), volleyLooks
	v.Answer, v.HasAsk, v.HasAnswer = l.writeBack(at), false, true
	n, err := l.s.Volley(v, w.done)
	if err == rdma.ErrState {
		return memoryTurn(w, l)
	}
	if err != nil && err != rdma.ErrQueueFull {
		return w.lost(l, "post write", err)
	}
	if !v.HasAnswer {
		l.iter++
		w.ops++
	}
	if n == 0 && !v.Met {
		return w.lookedAround(l)
	}
	w.spins = 0
	return w.completed(l, n)
}
