package acceptor_test

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/acceptor"
)

// world is an acceptor whose requests are one octet, and its connections. All of it lives
// in one bubble of synctest, so that its times are exact.
type world struct {
	*acceptor.Acceptor[net.Conn, byte]
	conns  chan net.Conn
	closed chan struct{}
	ended  chan error // of connections whose request did not come
	full   chan byte  // requests that found the queue full
}

func start(limits acceptor.Limits) *world {
	w := &world{acceptor.New[net.Conn, byte](limits), make(chan net.Conn), make(chan struct{}), make(chan error, 16),
		make(chan byte, 16)}
	w.Serve(func() (net.Conn, error) {
		select {
		case c := <-w.conns:
			return c, nil
		case <-w.closed:
			return nil, net.ErrClosed
		}
	}, func(c net.Conn) {
		var b [1]byte
		err := w.Await(c, func() error { _, err := c.Read(b[:]); return err })
		if err != nil {
			c.Close()
			w.ended <- err
			return
		}
		if w.Offer(b[0]) != nil {
			w.full <- b[0]
		}
	})
	return w
}

func (w *world) end(refuse func(byte)) error {
	return w.Close(func() error { close(w.closed); return nil }, refuse)
}

func (w *world) dial() net.Conn {
	near, far := net.Pipe()
	w.conns <- far
	return near
}

var limits = acceptor.Limits{Backlog: 1, Room: 1, Request: time.Second, Grace: 100 * time.Millisecond}

func TestTheLongestSilentGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(limits)
		began := time.Now()
		w.dial() // both slots are taken by those who say nothing
		w.dial()
		speaker := w.dial()
		speaker.Write([]byte{7})
		r, err := w.Next(context.Background())
		if r != 7 || err != nil {
			t.Errorf("%d, %v, want 7", r, err)
		}
		if d := time.Since(began); d != limits.Grace {
			t.Errorf("a place after %v, want the grace of %v", d, limits.Grace)
		}
		if err := <-w.ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the longest silent one ended with %v", err)
		}
		if err := <-w.ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != limits.Request {
			t.Errorf("the other one ended after %v with %v, want the request's %v", time.Since(began), err,
				limits.Request)
		}
		if err := w.end(nil); err != nil {
			t.Error(err)
		}
	})
}

func TestAFullQueueIsToldAndCloseRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(limits)
		for i := range byte(2) {
			w.dial().Write([]byte{i})
			synctest.Wait()
		}
		if r := <-w.full; r != 1 {
			t.Errorf("request %d found the queue full, want 1", r)
		}
		silent := w.dial()
		synctest.Wait()
		var refused []byte
		if err := w.end(func(r byte) { refused = append(refused, r) }); err != nil || len(refused) != 1 ||
			refused[0] != 0 {
			t.Errorf("refused %v, %v, want the one that waited", refused, err)
		}
		if err := <-w.ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a connection outlived Close: %v", err)
		}
		silent.Close()
		if _, err := w.Next(context.Background()); err != rdma.ErrClosed {
			t.Errorf("next: %v", err)
		}
		if err := w.Offer(9); err != rdma.ErrClosed {
			t.Errorf("offer: %v", err)
		}
		if err := w.end(nil); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

func TestARequestIsPreferredToAnEndedContext(t *testing.T) {
	w := acceptor.New[net.Conn, byte](limits)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Next(ctx); err != context.Canceled {
		t.Errorf("%v, want the context's end", err)
	}
	w.Offer(3)
	if r, err := w.Next(ctx); r != 3 || err != nil {
		t.Errorf("%d, %v, want the request", r, err)
	}
}
