package iwarp

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// receiver is a device's thread that polls all streams, places payloads, and pushes completions.
type receiver struct {
	p    stream.Poller
	done chan struct{}
	qps  atomic.Pointer[[]*qp]
	end  atomic.Bool
	mu   sync.Mutex // of changes to qps

	asleep atomic.Bool   // posts must wake it
	looks  atomic.Uint32 // of applications that found nothing
	Yields atomic.Uint64 // system calls by which the two sides offer each other a CPU
	CPU    atomic.Uint64 // nanoseconds that the thread ran, as of a moment ago
}

const (
	receiverIdle  = 1 << 16 // rounds that find nothing before it sleeps until something comes: some milliseconds
	receiverOffer = 128     // rounds before the CPU is offered: more than it takes a stack to acknowledge what came
	receiverClock = 1 << 12 // rounds until it looks how long it ran: about a millisecond
	pollOffer     = 16      // empty polls before an application offers it
)

func newReceiver(s stream.Stack) (*receiver, error) {
	p, err := s.NewPoller()
	if err != nil {
		return nil, err
	}
	r := &receiver{p: p, done: make(chan struct{})}
	r.qps.Store(&[]*qp{})
	go r.run()
	return r, nil
}

func (r *receiver) stop() {
	r.end.Store(true)
	r.p.Wake()
	<-r.done
	r.p.Close()
}

func (r *receiver) enter(q *qp) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := append(slices.Clone(*r.qps.Load()), q)
	r.qps.Store(&list)
	return r.p.Add(q.conn, uint64(q.num), stream.Readable)
}

func (r *receiver) leave(q *qp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*r.qps.Load()), func(x *qp) bool { return x == q })
	r.qps.Store(&list)
	r.p.Remove(q.conn)
}

func (r *receiver) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(r.done)
	defer procs.Reserve(1)()
	var ev [16]stream.Event
	defer r.clock()
	for idle, rounds := 0, 0; !r.end.Load(); {
		list := *r.qps.Load()
		if idle++; r.round(list) {
			idle = 0
		}
		switch {
		case len(list) == 0 || idle >= receiverIdle:
			r.asleep.Store(true)
			if r.waiting() {
				if _, err := r.p.Wait(ev[:], -1, false); err != nil {
					return // closed
				}
			}
			r.asleep.Store(false)
			idle = 0
		case idle%receiverOffer == receiverOffer-1:
			r.yield()
		}
		if rounds++; rounds%receiverClock == 0 {
			r.clock()
		}
	}
}

// round looks at every stream once and reports whether anything came.
func (r *receiver) round(list []*qp) (moved bool) {
	for _, q := range list {
		if !q.mu.TryLock() {
			continue // somebody posts
		}
		if q.phase == phaseOpen {
			seen, sent := q.rx.seen, q.tx.sent
			q.progress()
			moved = moved || q.rx.seen != seen || q.tx.sent != sent
			q.wantRoom()
		}
		q.mu.Unlock()
	}
	return moved
}

// waiting tells, after asleep was set, that nothing was posted, on the queue pairs that there are now.
func (r *receiver) waiting() bool {
	for _, q := range *r.qps.Load() {
		q.mu.Lock()
		pending := q.needsPolling()
		q.mu.Unlock()
		if pending {
			return false
		}
	}
	return !r.end.Load()
}

// needsPolling tells that octets wait for the stack, or with OnAck a request for an acknowledgement, which no poller
// reports. It does not look whether that has come, as the finder must retire requests. q.mu is held.
func (q *qp) needsPolling() bool {
	return q.tx.unsent() || q.dev.cfg.OnAck && q.phase == phaseOpen && q.sqHead != q.sqNext &&
		!answeredOps.Has(q.sq[q.sqHead&uint32(len(q.sq)-1)].wr.Op)
}

func (r *receiver) wakeUp() {
	if r.asleep.Load() {
		r.p.Wake()
	}
}

// await is what an application does that finds no completion.
func (r *receiver) await() {
	if r.looks.Add(1)%pollOffer == 0 {
		r.yield()
	}
}

// clock reads how long the thread ran (clock_gettime(2)).
func (r *receiver) clock() {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) == nil {
		r.CPU.Store(uint64(t.Nano()))
	}
}

func (r *receiver) yield() {
	r.Yields.Store(r.Yields.Load() + 1)
	procs.YieldThread()
}
