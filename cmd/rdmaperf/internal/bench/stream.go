package bench

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// stream is the throughput loop of the client: as many operations outstanding as
// the depth, the credits and the limits allow, posted in batches out of a ring of
// prepared operations. The clock is read once a turn in which something
// completed.
func (w *worker) stream() error {
	w.open()
	err := w.flow()
	if err == nil || err == errStop && w.mayFinish() {
		// After a stop, too, what was posted is brought home: an interrupted stream
		// is an honest short one.
		if e := w.finish(); e != nil {
			err = e
		}
	}
	w.end = now()
	for _, l := range w.lanes {
		n := l.posted
		if !l.settled() {
			n -= int64(min(l.out, int(l.posted))) // what nobody knows did not happen
		}
		w.ops += n
		w.took(w.end, n-l.counted)
	}
	return err
}

// took counts operations seen complete at t.
func (w *worker) took(t, n int64) {
	if w.peak != nil {
		w.peak.count(t, n)
	}
	if w.series != nil {
		w.series.count(t, n)
	}
}

// flow posts until the limits are reached and only the tail is left to post.
func (w *worker) flow() error {
	fill := filler(w.sh.kind())
	deadline := int64(1<<63 - 1)
	if w.lim.dur > 0 {
		deadline = w.begin + int64(w.lim.dur)
	}
	for _, l := range w.lanes {
		l.remaining = 1<<62 - 1
		if w.lim.ops > 0 {
			l.remaining = w.lim.ops - 1 // the tail is the last one
		}
	}
	open := len(w.lanes)
	for open > 0 {
		open = 0
		lull := mostLull
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
				lull = min(lull, l.lull)
				continue
			}
			lull = 0
			if w.stopped() {
				return errStop
			}
			if n == 0 {
				continue
			}
			t := now()
			// Below zero while operations of the phase before are still counted out.
			if done := l.posted - int64(l.out); done > l.counted {
				w.took(t, done-l.counted)
				l.counted = done
				if w.lulls {
					l.lull = lullOf(l.out-l.sh.Moderation, done, t-w.begin)
				}
			}
			if t >= deadline {
				return nil
			}
		}
		if lull >= leastLull {
			sleepFor(lull)
		}
	}
	return nil
}

// push posts one batch and returns its length, 0 when nothing may be posted now.
func (w *worker) push(l *lane, fill func(*lane, []transports.Op)) (int, error) {
	k := min(l.sh.Depth-l.out, l.sh.batch())
	if int64(k) > l.remaining {
		k = int(l.remaining)
	}
	if l.takesReceive {
		k = min(k, l.credits())
	}
	if k <= 0 {
		return 0, nil
	}
	ops := l.ops[l.head : l.head+k]
	if fill != nil {
		fill(l, ops)
	}
	n, err := l.s.Post(ops)
	l.posted += int64(n)
	l.remaining -= int64(n)
	l.out += n
	if l.head += n; l.head >= l.sh.ring() {
		l.head %= l.sh.ring()
	}
	if l.takesReceive {
		l.messages += uint64(n)
	}
	if n < k && err != rdma.ErrQueueFull {
		return n, w.lost(l, "post "+l.sh.Op, err)
	}
	return n, nil
}

// credits is how many messages the peer has receives for.
func (l *lane) credits() int { return l.sh.RecvDepth - int(l.messages-l.acked) }

// collect takes one poll of completions and credits and returns their number.
func (w *worker) collect(l *lane) (int, error) {
	n, err := w.poll(l)
	if err != nil {
		return 0, err
	}
	for i := range w.done[:n] {
		d := &w.done[i]
		if d.Status != rdma.StatusSuccess {
			return n, statusError(l, *d)
		}
		if d.Kind != transports.KindRecv {
			l.out -= int(d.Slot)
			continue
		}
		acked := l.credit(d.Slot)
		if acked <= l.acked || acked > l.messages {
			return n, w.lost(l, "read credit", fmt.Errorf("%d messages taken, after %d of %d", acked, l.acked, l.messages))
		}
		l.acked = acked
		l.pair[0] = l.ctlRecv(int(d.Slot))
		if err := w.post(l, l.pair[:1]); err != nil {
			return n, err
		}
	}
	return n, nil
}

// finish posts the tail, which is signalled whatever the moderation, waits until
// everything is complete, and proves arrival with a barrier where completion does
// not: an empty send that the target answers after all its receives before it,
// hence after everything that travelled ahead of it.
func (w *worker) finish() error {
	fill := filler(w.sh.kind())
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

// settled tells that nothing of a lane is outstanding.
func (l *lane) settled() bool {
	return l.tail && l.out == 0 && (!l.needsBarrier() || l.fenced && l.acked == l.messages)
}

func (l *lane) needsBarrier() bool { return !oneSided(l.kind) }

// wrapUp posts the tail and then the barrier as soon as there is room.
func (w *worker) wrapUp(l *lane, fill func(*lane, []transports.Op)) error {
	if l.needsBarrier() && l.credits() == 0 {
		return nil
	}
	var op transports.Op
	switch {
	case !l.tail:
		if l.out >= l.sh.Depth {
			return nil
		}
		if fill != nil {
			fill(l, l.ops[l.head:l.head+1])
		}
		op = l.ops[l.head]
		op.Flags &^= transports.Quiet
		op.Slot = uint32(l.head%l.sh.Moderation + 1)
	case l.needsBarrier() && !l.fenced:
		op = transports.Op{Kind: transports.KindSend, Slot: 1}
	default:
		return nil
	}
	l.pair[0] = op
	switch _, err := l.s.Post(l.pair[:1]); {
	case err == rdma.ErrQueueFull:
		return nil
	case err != nil:
		return w.lost(l, "post "+op.Kind.String(), err)
	}
	l.out++
	switch {
	case l.tail:
		l.fenced = true
		l.messages++
	default:
		l.tail = true
		l.posted++
		l.head = (l.head + 1) % l.sh.ring()
		if l.takesReceive {
			l.messages++
		}
	}
	return nil
}

// filler returns what must be set in every single operation, nil for most kinds.
func filler(k transports.Kind) func(*lane, []transports.Op) {
	switch k {
	case transports.KindWriteImm:
		return func(l *lane, ops []transports.Op) {
			for i := range ops {
				ops[i].Imm = uint32(l.messages) + uint32(i)
			}
		}
	case transports.KindCmpSwap:
		return func(l *lane, ops []transports.Op) {
			for i := range ops {
				ops[i].Add = uint64(l.posted) + uint64(i)
				ops[i].Swap = uint64(l.posted) + uint64(i) + 1
			}
		}
	}
	return nil
}
