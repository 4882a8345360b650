package tcp

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// waiter is the event mode of one session: the socket, level-triggered, and the end of the context of the latest Wait.
type waiter struct {
	poller stream.Poller
	conn   stream.Conn
	bits   uint32
	ev     [1]stream.Event

	// It is watched until another one comes, so that Waits under one context do not register each time.
	done  <-chan struct{}
	leave func()
}

func newWaiter(st stream.Stack, c stream.Conn) (*waiter, error) {
	p, err := st.NewPoller()
	if err != nil {
		return nil, err
	}
	if err := p.Add(c, 0, stream.Readable); err != nil {
		p.Close()
		return nil, err
	}
	return &waiter{poller: p, conn: c, bits: stream.Readable}, nil
}

func (w *waiter) watch(ctx context.Context) {
	if ctx.Done() == w.done {
		return
	}
	w.unwatch()
	if w.done = ctx.Done(); w.done != nil {
		w.leave = after(ctx, w.poller.Wake)
	}
}

func (w *waiter) unwatch() {
	if w.leave != nil {
		w.leave()
	}
	w.done, w.leave = nil, nil
}

func (w *waiter) close() error {
	w.unwatch()
	return w.poller.Close()
}

// after runs f once when ctx ends. leave undoes that, or waits for f to return.
func after(ctx context.Context, f func()) (leave func()) {
	ran := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ran)
		f()
	})
	return func() {
		if !stop() {
			<-ran
		}
	}
}

// Wait blocks until Poll may have something, which wins, or ctx ends. rdma.ErrState without Config.Events.
func (s *session) Wait(ctx context.Context) error {
	if s.closed {
		return rdma.ErrClosed
	}
	if s.wait == nil {
		return rdma.ErrState
	}
	if s.err != nil || s.sendErr != nil || s.in.ready() || s.out.finished() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w := s.wait
	var bits uint32
	if !s.in.stuck() {
		bits |= stream.Readable
	}
	if s.out.sendable(&s.in) {
		bits |= stream.Writable
	}
	if bits != w.bits {
		if err := w.poller.Modify(w.conn, 0, bits); err != nil {
			return err
		}
		w.bits = bits
	}
	w.watch(ctx)
	n, err := w.poller.Wait(w.ev[:], -1, false)
	if err != nil {
		return err
	}
	if n == 0 {
		return ctx.Err() // nil after a wake-up that another Wait left behind
	}
	// While the machine is stuck Poll does not read, so it would not learn of a reset.
	if w.ev[0].Bits&(stream.Failed) != 0 && s.in.stuck() && s.sendErr == nil {
		s.sendErr = unix.ECONNRESET
	}
	return nil
}
