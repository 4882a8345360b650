package sessiontest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func acceptEnds(t *testing.T, open Open) {
	near, far, addr := open(t)
	defer far.Close()
	defer near.Close()
	l, err := far.Listen(soon(t), addr, ordinary)
	ok(t, "listen", err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("accept with nobody there: %v, want %v", err, context.DeadlineExceeded)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if s, err := near.Dial(ctx, l.Addr(), nil, ordinary); err == nil {
		t.Errorf("dial that nobody accepts = %v", s)
	}
}

func closeDelivers(t *testing.T, open Open) {
	p := connect(t, open, transports.Config{Window: 1 << 20, SendDepth: 16, RecvDepth: 16})
	win := p.near.s.Local()
	scribble(win, 8)
	want := bytes.Clone(win)
	for i := range 16 {
		p.far.post(transports.Op{Kind: transports.KindRecv, Local: uint64(i) << 16, Len: 1 << 16, Slot: uint32(i)})
	}
	// Something unread at the closing side must not cost the peer its data.
	p.far.post(transports.Op{Kind: transports.KindWrite, Len: 0, Flags: transports.Unsignaled})
	for i := range 16 {
		p.near.post(transports.Op{Kind: transports.KindSend, Local: uint64(i) << 16, Len: 1 << 12, Slot: uint32(i)})
	}
	ok(t, "close", p.near.s.Close())
	p.near.err = rdma.ErrClosed
	for i, d := range p.take(p.far, 16) {
		if int(d.Slot) != i || d.Len != 1<<12 {
			t.Fatalf("receive %d done = %+v", i, d)
		}
		same(t, fmt.Sprintf("message %d", i), p.far.s.Local()[i<<16:][:1<<12], want[i<<16:][:1<<12])
	}
}

func peerCloses(t *testing.T, open Open) {
	p := connect(t, open, transports.Config{Window: 4096, SendDepth: 4, RecvDepth: 4})
	for i := range 3 {
		p.near.post(transports.Op{Kind: transports.KindRecv, Len: 8, Slot: uint32(i)})
	}
	ok(t, "close", p.far.s.Close())
	p.far.err = rdma.ErrClosed
	p.until("flushed receives", func() bool { return len(p.near.dones) >= 3 || p.near.err != nil })
	if len(p.near.dones) != 3 {
		t.Fatalf("near has %v (%v), want three failed receives", p.near.dones, p.near.err)
	}
	for i, d := range p.near.dones {
		if int(d.Slot) != i || d.Kind != transports.KindRecv || d.Status == rdma.StatusSuccess {
			t.Errorf("receive %d done = %+v, want failed", i, d)
		}
	}
	p.until("error of poll", func() bool { return p.near.err != nil })
	if n, err := p.near.s.Post([]transports.Op{{Kind: transports.KindSend, Len: 1}}); n != 0 || err == nil {
		t.Errorf("post after the end = %d, %v", n, err)
	}
	if n, err := p.near.s.Poll(p.near.buf); n != 0 || err == nil {
		t.Errorf("second poll after the end = %d, %v", n, err)
	}
}

func closeTwice(t *testing.T, open Open) {
	p := connect(t, open, ordinary)
	p.near.post(transports.Op{Kind: transports.KindRecv, Len: 8})
	where := uint64(uintptr(unsafe.Pointer(&p.near.s.Local()[0])))
	if rdma.BufferAt(where, 1) == nil {
		t.Error("the window is no mapped buffer")
	}
	for range 2 {
		ok(t, "close", p.near.s.Close())
	}
	if rdma.BufferAt(where, 1) != nil {
		t.Error("the window is still mapped after close")
	}
	if _, err := p.near.s.Post([]transports.Op{{Kind: transports.KindRecv}}); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("post after close: %v, want %v", err, rdma.ErrClosed)
	}
	if _, err := p.near.s.Poll(p.near.buf); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("poll after close: %v, want %v", err, rdma.ErrClosed)
	}
	if err := p.near.s.Wait(soon(t)); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("wait after close: %v, want %v", err, rdma.ErrClosed)
	}
	if w := p.near.s.Local(); len(w) != 0 {
		t.Errorf("window after close has %d bytes", len(w))
	}
}
