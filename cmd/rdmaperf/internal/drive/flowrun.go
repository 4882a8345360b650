package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// run is the loop of a side that sends. The client begins and ends; the server goes on until it is stopped.
func (w *flowWorker) run() error {
	deadline := w.Open()
	for _, l := range w.lanes {
		if !l.takes {
			w.begin(l)
		}
	}
	err := w.flow(deadline)
	if w.End == 0 {
		w.End = engine.Now()
	}
	for _, l := range w.lanes {
		n := l.Posted
		if !l.finAcked {
			n -= min(int64(l.Out), l.Posted) // what nobody knows did not happen
		}
		w.Ops += n
		w.Took(w.End, n-l.counted)
	}
	return err
}

// flow lasts until all lanes are done in both directions. The clock is read once a turn in which something completed.
func (w *flowWorker) flow(deadline int64) error {
	begun := w.Role == engine.SideClient
	for ended := false; ; {
		over, sleep := true, MostSleep
		for _, l := range w.lanes {
			n, moved, err := w.turn(l)
			switch {
			case err == engine.ErrStop && w.MayFinish():
			case err != nil:
				return err
			}
			over = over && l.over()
			if !moved {
				sleep = min(sleep, l.sleep)
				continue
			}
			if sleep = 0; n == 0 {
				continue
			}
			t := engine.Now()
			if !begun && l.begun { // before that nobody asked this side for anything
				begun, w.Begin = true, t
			}
			w.progress(l, t)
			if t >= deadline && !ended {
				ended = true
				w.stopFlows()
			}
		}
		if over && (w.Role == engine.SideClient || w.Stopped()) {
			return nil
		}
		if w.Stopped() && !ended {
			if !w.MayFinish() {
				return engine.ErrStop
			}
			ended = true
			w.stopFlows()
		}
		if sleep >= leastSleep {
			Sleep(sleep)
		}
	}
}

// turn does what can be done on one lane now, and returns how many operations ended and whether anything was done.
func (w *flowWorker) turn(l *flowLane) (n int, moved bool, err error) {
	var before, at int64
	if w.Peak.Exact() {
		before, at = l.Posted, engine.Now()
	}
	posted, err := w.send(l)
	if err != nil {
		return 0, false, err
	}
	if at != 0 {
		w.Peak.Posting(at, l.Posted-before)
	}
	if n, err = w.PollOnce(&l.Lane); err != nil {
		return 0, false, err
	}
	for i := range w.Done[:n] {
		d := &w.Done[i]
		if d.Kind != transports.KindRecv && d.Status == rdma.StatusSuccess && !l.compares {
			l.Out -= int(d.Slot)
			continue
		}
		if err := w.takeDone(l, d); err != nil {
			return n, true, err
		}
	}
	if !l.acked && l.remaining == 0 && l.Out == 0 {
		l.finAcked = true // by the last completion
	}
	if l.finAcked && !l.done && (l.Out == 0 || !engine.OneSided(l.Kind)) {
		l.done = true
		w.End = engine.Now()
	}
	replied, err := w.reply(l)
	switch {
	case err != nil:
		return n, true, err
	case n > 0 || replied:
		w.Spins = 0
	case !posted:
		return 0, false, w.Idle(&l.Lane)
	}
	return n, true, nil
}

// takeTurn is the turn of a side that only takes.
func (w *flowWorker) takeTurn(l *flowLane) error {
	_, _, err := w.turn(l)
	return err
}

// sleepUntilDone is the target of writes that the device places unaided: it sleeps on one lane after the other, until
// the last control message of each.
func (w *flowWorker) sleepUntilDone() error {
	w.Begin = engine.Now()
	for _, l := range w.lanes {
		for !l.peerFin || l.acksDue > 0 {
			if err := w.takeTurn(l); err != nil {
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

func (l *flowLane) over() bool {
	return l.finAcked && l.peerFin && l.acksDue == 0 && l.Out == 0
}

// stopFlows ends the sending of all lanes. A lane that never began still takes part in the end.
func (w *flowWorker) stopFlows() {
	for _, l := range w.lanes {
		l.stop(true)
	}
}

// stop ends a lane's sending; peer asks the other side to end, too.
func (l *flowLane) stop(peer bool) {
	l.stopPeer, l.sleep = l.stopPeer || peer, 0
	if !l.acked { // one more is signalled, and with it those before it end
		l.remaining = min(l.remaining, int64(min(l.unsignaled, 1)))
		return
	}
	l.flowing = false
}

func (w *flowWorker) progress(l *flowLane, t int64) {
	done := l.Posted - int64(l.Out)
	if done <= l.counted {
		return
	}
	w.Took(t, done-l.counted)
	l.counted = done
	if w.Sleeps && l.flowing {
		l.sleep = SleepTime(l.Out-l.Sh.Moderation, done, t-w.Begin)
	}
}
