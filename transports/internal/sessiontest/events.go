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

func evented(t *testing.T, open Open) *pair {
	t.Helper()
	near, far, _ := open(t)
	events := near.Caps().Events
	ok(t, "close", near.Close())
	ok(t, "close", far.Close())
	if !events {
		t.Skip("event mode is not declared")
	}
	cfg := ordinary
	cfg.Events = true
	return connect(t, open, cfg)
}

func waitState(t *testing.T, open Open) {
	p := connect(t, open, ordinary)
	if err := p.near.s.Wait(soon(t)); !errors.Is(err, rdma.ErrState) {
		t.Errorf("wait = %v, want %v", err, rdma.ErrState)
	}
}

func waitContext(t *testing.T, open Open) {
	p := evented(t, open)
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		for ctx.Err() == nil {
			if err := p.near.s.Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("wait: %v, want %v", err, context.DeadlineExceeded)
			}
			p.near.poll() // a wait may wake for nothing
		}
		if err := p.near.s.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("wait under an ended context: %v, want %v", err, context.DeadlineExceeded)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.barrier() // an accepting iWARP side may not send first (RFC 5044 section 7.1.2)
	p.near.post(transports.Op{Kind: transports.KindRecv, Len: 8})
	p.far.post(transports.Op{Kind: transports.KindSend, Len: 8})
	p.take(p.far, 1)
	p.near.post(transports.Op{Kind: transports.KindWrite, Len: 8})
	if err := p.near.s.Wait(ctx); err != nil {
		t.Errorf("wait with a completion there: %v, want nil whatever the context", err)
	}
	p.take(p.near, 2)
}

// waitPingPong blocks both sides in every turn: one lost wake-up stops it.
func waitPingPong(t *testing.T, open Open) {
	p := evented(t, open)
	const rounds = 500
	ctx := soon(t)
	play := func(e *end, first bool) error {
		turn := []transports.Op{{Kind: transports.KindRecv, Len: 16, Slot: 1},
			{Kind: transports.KindSend, Local: 64, Len: 16, Slot: 2, Flags: transports.Unsignaled}}
		if first {
			if _, err := e.s.Post(turn[1:]); err != nil {
				return err
			}
		}
		for i := 0; i < rounds; {
			if err := e.s.Wait(ctx); err != nil {
				return fmt.Errorf("wait in round %d: %w", i, err)
			}
			// One completion a Poll: what is left must end the next Wait at once.
			n, err := e.s.Poll(e.buf[:1])
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			if d := e.buf[0]; d.Status != 0 || d.Kind != transports.KindRecv {
				return fmt.Errorf("done %+v in round %d", d, i)
			}
			i++
			if first && i == rounds {
				return nil
			}
			if _, err := e.s.Post(turn); err != nil {
				return err
			}
		}
		return nil
	}
	for _, e := range []*end{p.near, p.far} { // before anybody sends
		e.post(transports.Op{Kind: transports.KindRecv, Len: 16, Slot: 1})
	}
	errs := make(chan error, 1)
	go func() { errs <- play(p.far, false) }()
	ok(t, "near", play(p.near, true))
	ok(t, "far", <-errs)
}

func allocs(t *testing.T, open Open) {
	p := connect(t, open, transports.Config{Window: 1 << 20, SendDepth: 16, RecvDepth: 16,
		MaxInline: min(32, open16(open, t))})
	var recvs, ops []transports.Op
	for _, op := range []transports.Op{
		{Kind: transports.KindSend, Len: 64, Slot: 1},
		{Kind: transports.KindSend, Len: 32, Slot: 1, Flags: transports.Inline | transports.Unsignaled},
		{Kind: transports.KindWrite, Len: 100 << 10, Slot: 2},
		{Kind: transports.KindWriteImm, Len: 8, Slot: 3},
		{Kind: transports.KindRead, Local: 512 << 10, Len: 50 << 10, Slot: 4},
		{Kind: transports.KindFetchAdd, Local: 512 << 10, Len: 8, Slot: 5},
		{Kind: transports.KindSend, Len: 8, Slot: 6, Flags: transports.Fence},
	} {
		if !p.caps.Kinds.Has(op.Kind) || op.Flags&transports.Inline != 0 && p.caps.MaxInline < 32 {
			continue
		}
		if op.Kind == transports.KindSend || op.Kind == transports.KindWriteImm {
			recvs = append(recvs, transports.Op{Kind: transports.KindRecv, Local: 900 << 10, Len: 64})
		}
		ops = append(ops, op)
	}
	want := len(recvs) + len(ops)
	for i := range ops {
		if ops[i].Flags&transports.Unsignaled != 0 {
			want--
		}
	}
	dst := make([]transports.Done, 16)
	round := func() {
		if n, err := p.far.s.Post(recvs); n != len(recvs) || err != nil {
			t.Fatalf("post receives = %d, %v", n, err)
		}
		if n, err := p.near.s.Post(ops); n != len(ops) || err != nil {
			t.Fatalf("post = %d, %v", n, err)
		}
		deadline := time.Now().Add(waitLimit)
		for got, spin := 0, 0; got < want; spin++ {
			for _, e := range [...]*end{p.near, p.far} {
				n, err := e.s.Poll(dst)
				if err != nil {
					t.Fatalf("poll: %v", err)
				}
				for _, d := range dst[:n] {
					if d.Status != 0 {
						t.Fatalf("%v: %v", d.Kind, d.Status)
					}
				}
				got += n
			}
			if spin%1000 == 999 && time.Now().After(deadline) {
				t.Fatalf("%d of %d completions after %v", got, want, waitLimit)
			}
		}
	}
	// Goroutines of the stack that begin to sleep, or end it, allocate beside the rounds when
	// CPUs are few. What a round allocates itself is there every time.
	n := testing.AllocsPerRun(200, round)
	for range 2 {
		if n == 0 {
			break
		}
		n = min(n, testing.AllocsPerRun(200, round))
	}
	if n != 0 {
		t.Errorf("a round of post and poll allocates %v times, want 0", n)
	}
}

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
