package iwarp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// reactor is the device's background goroutine. A QP is in one of three hands:
//
//	armed      its socket is in epoll, one shot; an event makes the goroutine drive it
//	watched    the application drives it; the goroutine looks every watchPeriod
//	lingering  the stream is ending; the goroutine finishes it
type reactor struct {
	p    stream.Poller
	done chan struct{}

	mu       sync.Mutex
	qps      map[uint64]*qp
	ending   []*qp
	stopping bool

	sleepsLong atomic.Bool // asleep for long, because goroutines in Wait drive all that is watched

	// The goroutine's own.
	watch   []*qp
	lingers []*qp
	waited  int // looks in a row that found a waiter on every watched QP
}

// longSleepAfter periods begin a long sleep: who leaves Wait for every message wakes the goroutine less often.
const longSleepAfter = 3

// busyPolls within one watchPeriod make an application active: a spinning one does thousands.
const busyPolls = 16

func (b *reactor) start(s stream.Stack) error {
	p, err := s.NewPoller()
	if err != nil {
		return err
	}
	b.p, b.done, b.qps = p, make(chan struct{}), map[uint64]*qp{}
	go b.loop()
	return nil
}

// stop ends the goroutine and closes the sockets that still linger.
func (b *reactor) stop() {
	b.mu.Lock()
	b.stopping = true
	b.mu.Unlock()
	b.p.Wake()
	<-b.done
	b.mu.Lock()
	rest := slices.Collect(maps.Values(b.qps))
	b.mu.Unlock()
	for _, q := range rest {
		q.mu.Lock()
		q.lingerStep() // reads what is here, so that close does not reset
		q.drop(false)
		q.mu.Unlock()
	}
	b.p.Close()
}

// enter arms a QP whose stream just opened. The caller holds q.mu.
func (b *reactor) enter(q *qp) error {
	b.mu.Lock()
	b.qps[uint64(q.num)] = q
	b.mu.Unlock()
	if r := q.dev.receiver; r != nil {
		if err := r.enter(q); err != nil {
			return err
		}
	}
	return b.p.Add(q.conn, uint64(q.num), stream.Readable|stream.OneShot)
}

// leave removes a QP whose socket is about to be closed. The caller holds q.mu.
func (b *reactor) leave(q *qp) {
	b.mu.Lock()
	delete(b.qps, uint64(q.num))
	b.mu.Unlock()
	if r := q.dev.receiver; r != nil {
		r.leave(q)
	}
	b.p.Remove(q.conn)
}

// takeOver makes the goroutine take over a lingering QP. The caller holds q.mu.
func (b *reactor) takeOver(q *qp) {
	b.mu.Lock()
	b.ending = append(b.ending, q)
	b.mu.Unlock()
	b.p.Wake()
}

func (b *reactor) loop() {
	defer close(b.done)
	var events [64]stream.Event
	var last time.Time
	for {
		n, err := b.p.Wait(events[:], b.pause(), true)
		if err != nil {
			return // the instance is gone: only after Close
		}
		if b.sleepsLong.Swap(false) && time.Since(last) < waitSlice {
			b.waited = 0 // somebody left Wait
		}
		b.mu.Lock()
		stop := b.stopping
		ending := b.ending
		b.ending = nil
		ready := make([]*qp, 0, n)
		for _, ev := range events[:n] {
			if q := b.qps[ev.Tag]; q != nil {
				ready = append(ready, q)
			}
		}
		b.mu.Unlock()
		if stop {
			return
		}
		for _, q := range ending {
			b.lingers = append(b.lingers, q)
			b.linger(q, false)
		}
		for _, q := range ready {
			b.ready(q)
		}
		if now := time.Now(); now.Sub(last) >= watchPeriod {
			last = now
			b.tick(now)
		}
	}
}

// pause is how long to sleep in milliseconds.
func (b *reactor) pause() int {
	if len(b.lingers) > 0 {
		return int(watchPeriod / time.Millisecond)
	}
	if len(b.watch) == 0 {
		return -1
	}
	if b.waited >= longSleepAfter {
		b.sleepsLong.Store(true) // before the look: who leaves Wait behind it sees that
		if b.allWaitedOn() {
			return int(waitSlice / time.Millisecond)
		}
		b.sleepsLong.Store(false)
	}
	return int(watchPeriod / time.Millisecond)
}

func (b *reactor) allWaitedOn() bool {
	return !slices.ContainsFunc(b.watch, func(q *qp) bool { return !q.waitedOn() })
}

// leftWait makes the goroutine look after QPs that nobody waits on any more.
func (b *reactor) leftWait() {
	if b.sleepsLong.Load() {
		b.p.Wake()
	}
}

func (b *reactor) ready(q *qp) {
	if !q.mu.TryLock() {
		b.look(q) // somebody is at it
		return
	}
	defer q.mu.Unlock()
	q.roomArmed = false
	switch q.phase {
	case phaseOpen:
		active := q.activity.Load() != q.seen || q.waitedOn()
		q.seen = q.activity.Load()
		if !q.waitedOn() {
			q.progress()
		}
		if active {
			b.look(q)
			return
		}
		b.arm(q)
	case phaseLinger:
		q.lingerStep()
		b.arm(q)
	}
}

// look puts a QP on the watch list, once.
func (b *reactor) look(q *qp) {
	if !q.watched.Swap(true) {
		b.watch = append(b.watch, q)
	}
}

// arm asks for the next event. The caller holds q.mu.
func (b *reactor) arm(q *qp) {
	if q.phase != phaseOpen && q.phase != phaseLinger {
		return
	}
	bits := stream.OneShot
	if !q.eof {
		bits |= stream.Readable
	}
	q.roomArmed = q.tx.unsent()
	if q.roomArmed {
		bits |= stream.Writable
	}
	b.p.Modify(q.conn, uint64(q.num), bits)
}

func (b *reactor) tick(now time.Time) {
	keep := b.watch[:0]
	for _, q := range b.watch {
		if !q.mu.TryLock() {
			keep = append(keep, q)
			continue
		}
		delta := q.activity.Load() - q.seen
		q.seen += delta
		switch {
		case q.phase != phaseOpen:
			q.watched.Store(false)
		case delta >= busyPolls || q.waitedOn():
			keep = append(keep, q)
		default:
			q.watched.Store(false)
			q.progress()
			b.arm(q)
		}
		q.mu.Unlock()
	}
	clear(b.watch[len(keep):])
	b.watch = keep
	if b.waited++; !b.allWaitedOn() {
		b.waited = 0
	}

	left := b.lingers[:0]
	for _, q := range b.lingers {
		if b.linger(q, now.After(q.deadline)) {
			left = append(left, q)
		}
	}
	clear(b.lingers[len(left):])
	b.lingers = left
}

// linger moves one ending stream on and reports whether it still lives.
func (b *reactor) linger(q *qp, late bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lingerStep()
	if late {
		q.drop(false)
	}
	b.arm(q)
	return q.phase == phaseLinger
}

// waitedOn reports whether a goroutine sleeps in Wait on one of the QP's CQs.
func (q *qp) waitedOn() bool {
	return q.send.waiters.Load() > 0 || q.recv.waiters.Load() > 0
}

// joinPollers puts the socket into the pollers of CQs that are waited on.
func (q *qp) joinPollers() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.join()
}

// join does it with q.mu held.
func (q *qp) join() {
	if q.phase != phaseOpen {
		return
	}
	for i, c := range [2]*cq{q.send, q.recv} {
		if !c.waited.Load() || q.joined[i].Load() || i == 1 && c == q.send {
			continue
		}
		if c.poller.Add(q.conn, uint64(q.num), stream.Readable) == nil {
			q.joined[i].Store(true)
		}
	}
}

// watchRoom makes the pollers report room in the socket while octets wait for it, and no longer.
func (q *qp) watchRoom() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase == phaseOpen {
		q.roomInPollers()
	}
}

// polledBy reports whether c's poller reports what there is to do for this QP: from the
// opening of its stream to the end, unless the kernel refused the socket.
func (q *qp) polledBy(c *cq) bool {
	return q.send == c && q.joined[0].Load() || q.recv == c && q.joined[1].Load()
}

// roomInPollers does it with q.mu held.
func (q *qp) roomInPollers() {
	want := q.tx.unsent()
	for i, c := range [2]*cq{q.send, q.recv} {
		if want && c.parked.Load() != nil {
			c.rouse() // what it parks on does not report room
		}
		if !q.joined[i].Load() || q.writeIn[i] == want {
			continue
		}
		bits := stream.Readable
		if want {
			bits |= stream.Writable
		}
		if c.poller.Modify(q.conn, uint64(q.num), bits) == nil {
			q.writeIn[i] = want
		}
	}
}

func (q *qp) leavePollers() {
	for i, c := range [2]*cq{q.send, q.recv} {
		if q.joined[i].Load() {
			q.joined[i].Store(false)
			q.writeIn[i] = false
			c.poller.Remove(q.conn)
			c.wake()
		}
	}
}

// sliceOf is how long one sleep of d under ctx may take, in milliseconds.
func sliceOf(ctx context.Context, d time.Duration) int {
	if dl, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(dl))
	}
	return max(int(d/time.Millisecond), 1)
}
