// Package acceptor takes connections for a listener with bounded memory: each waits in a slot while its connection
// request is read, and then in a queue for the application. When all slots are taken, the connection that has sent
// nothing for longest gives way by a deadline in the past, so reading must end with it.
//
// An Acceptor owns its goroutines, which Close joins. A connection belongs to the function that reads its request. A
// request that Next returned is the application's; those that wait at Close are handed to its refuse.
package acceptor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Conn is what a connection needs here.
type Conn interface {
	comparable
	SetDeadline(time.Time) error
	Close() error
}

// Limits bound who waits.
type Limits struct {
	Backlog int           // requests that wait for Next; below 1 means 1
	Room    int           // connections whose request is being read, beside the backlog
	Request time.Duration // for a request to come
	Grace   time.Duration // a connection is safe for so long, however many others wait
}

// Acceptor takes connections of type C and hands out their requests, of type R.
type Acceptor[C Conn, R any] struct {
	limits Limits

	mu     sync.Mutex
	silent []silent[C] // those whose request has not come, oldest first

	slots chan struct{} // those whose request is being read
	queue chan R
	done  chan struct{}
	group sync.WaitGroup
	once  sync.Once
}

type silent[C Conn] struct {
	conn  C
	since time.Time
}

// New makes one; Serve starts it.
func New[C Conn, R any](limits Limits) *Acceptor[C, R] {
	limits.Backlog = max(limits.Backlog, 1)
	return &Acceptor[C, R]{limits: limits, slots: make(chan struct{}, limits.Backlog+limits.Room),
		queue: make(chan R, limits.Backlog), done: make(chan struct{})}
}

var past = time.Unix(1, 0)

// acceptPause follows a failed accept, of which an exhausted descriptor table is the
// likely cause: a retry at once would spin.
const acceptPause = 10 * time.Millisecond

// Serve takes connections from accept until Close, and calls request for each in a
// goroutine of its own, which reads by Await and queues by Offer.
func (a *Acceptor[C, R]) Serve(accept func() (C, error), request func(C)) {
	a.group.Go(func() {
		for {
			c, err := accept()
			if err != nil {
				select {
				case <-a.done:
					return
				case <-time.After(acceptPause):
					continue
				}
			}
			if !a.takeSlot() {
				c.Close()
				return
			}
			a.group.Go(func() {
				defer func() { <-a.slots }()
				request(c)
			})
		}
	})
}

// takeSlot waits for a slot, at the cost of the longest silent connection if there is
// none. It is false when the acceptor closes.
func (a *Acceptor[C, R]) takeSlot() bool {
	for {
		select {
		case a.slots <- struct{}{}:
			return true
		default:
		}
		select {
		case a.slots <- struct{}{}:
			return true
		case <-a.done:
			return false
		case <-time.After(a.evict(time.Now())):
		}
	}
}

// evict ends the longest silent connection, unless it came only just now. It returns when to look again.
func (a *Acceptor[C, R]) evict(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.silent) == 0 {
		return a.limits.Grace
	}
	oldest := a.silent[0]
	if rest := a.limits.Grace - now.Sub(oldest.since); rest > 0 {
		return rest
	}
	oldest.conn.SetDeadline(past)
	a.silent = a.silent[1:]
	return a.limits.Grace
}

// Await calls read, which ends within Limits.Request, when the connection has to give way,
// and when the acceptor closes. Behind a success the connection has no deadline.
func (a *Acceptor[C, R]) Await(c C, read func() error) error {
	now := time.Now()
	a.mu.Lock()
	c.SetDeadline(now.Add(a.limits.Request))
	select {
	case <-a.done:
		c.SetDeadline(past)
	default:
	}
	a.silent = append(a.silent, silent[C]{c, now})
	a.mu.Unlock()
	err := read()
	a.mu.Lock()
	a.silent = slices.DeleteFunc(a.silent, func(s silent[C]) bool { return s.conn == c })
	a.mu.Unlock()
	if err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// Offer queues a request for Next. rdma.ErrQueueFull when as many wait as the backlog
// allows, rdma.ErrClosed behind Close: the request is the caller's to refuse then.
func (a *Acceptor[C, R]) Offer(r R) error {
	select {
	case <-a.done:
		return rdma.ErrClosed
	default:
	}
	select {
	case a.queue <- r:
		return nil
	default:
		return rdma.ErrQueueFull
	}
}

// Next returns the oldest request, rdma.ErrClosed, or the end of ctx, over which a request that waits is preferred.
func (a *Acceptor[C, R]) Next(ctx context.Context) (r R, err error) {
	select {
	case <-a.done:
		return r, rdma.ErrClosed
	default:
	}
	select {
	case r := <-a.queue:
		return r, nil
	default:
	}
	select {
	case r := <-a.queue:
		return r, nil
	case <-a.done:
		return r, rdma.ErrClosed
	case <-ctx.Done():
		return r, ctx.Err()
	}
}

// Waiting is how many requests Next would give out, and Reading how many connections are read of at most how many.
func (a *Acceptor[C, R]) Waiting() int             { return len(a.queue) }
func (a *Acceptor[C, R]) Reading() (now, most int) { return len(a.slots), cap(a.slots) }

// Done is closed by Close.
func (a *Acceptor[C, R]) Done() <-chan struct{} { return a.done }

// Close ends accepting by stop, wakes who reads, joins the goroutines, and has the requests
// that wait refused. Those that were handed out live on. Idempotent.
func (a *Acceptor[C, R]) Close(stop func() error, refuse func(R)) (err error) {
	a.once.Do(func() {
		close(a.done)
		err = stop()
		a.mu.Lock()
		for _, s := range a.silent {
			s.conn.SetDeadline(past)
		}
		a.mu.Unlock()
		a.group.Wait()
		for {
			select {
			case r := <-a.queue:
				refuse(r)
			default:
				return
			}
		}
	})
	return err
}
