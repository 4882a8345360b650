// Package sessiontest is the test body that every transport shares: claims about [transports.Session], each byte
// checked. Both ends are driven from one goroutine unless a claim is about two.
package sessiontest

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
)

const waitLimit = 10 * time.Second

// Open makes the two transports of a test and the address that far listens at. They are closed by the test.
type Open func(t testing.TB) (near, far transports.Transport, addr string)

type end struct {
	t     testing.TB
	name  string
	s     transports.Session
	dones []transports.Done // polled and not yet looked at
	err   error             // of Poll
	buf   []transports.Done
}

// pair is two connected sessions: near dialled, far accepted.
type pair struct {
	t         testing.TB
	caps      transports.Caps
	near, far *end
	hello     []byte
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}

func ok(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

var ordinary = transports.Config{Window: 64 << 10, SendDepth: 32, RecvDepth: 32}

func connect(t testing.TB, open Open, cfg transports.Config) *pair {
	t.Helper()
	near, far, addr := open(t)
	t.Cleanup(func() {
		ok(t, "close near transport", near.Close())
		ok(t, "close far transport", far.Close())
	})
	p := dial(t, near, far, addr, []byte("hello"), cfg)
	t.Cleanup(func() {
		ok(t, "close near session", p.near.s.Close())
		ok(t, "close far session", p.far.s.Close())
	})
	return p
}

// dial connects near to far; the caller closes the sessions.
func dial(t testing.TB, near, far transports.Transport, addr string, hello []byte, cfg transports.Config) *pair {
	t.Helper()
	ctx := soon(t)
	l, err := far.Listen(ctx, addr, cfg)
	ok(t, "listen", err)
	type accepted struct {
		s     transports.Session
		hello []byte
		err   error
	}
	got := make(chan accepted, 1)
	go func() {
		s, h, err := l.Accept(ctx)
		got <- accepted{s, h, err}
	}()
	s, err := near.Dial(ctx, l.Addr(), hello, cfg)
	ok(t, "dial", err)
	a := <-got
	ok(t, "accept", a.err)
	ok(t, "close listener", l.Close())
	return &pair{t: t, caps: near.Caps(), near: newEnd(t, "near", s), far: newEnd(t, "far", a.s), hello: a.hello}
}

func newEnd(t testing.TB, name string, s transports.Session) *end {
	return &end{t: t, name: name, s: s, buf: make([]transports.Done, 16)}
}

func (e *end) poll() {
	if e.err != nil {
		return
	}
	n, err := e.s.Poll(e.buf)
	e.dones = append(e.dones, e.buf[:n]...)
	e.err = err
}

func (e *end) post(ops ...transports.Op) {
	e.t.Helper()
	if n, err := e.s.Post(ops); n != len(ops) || err != nil {
		e.t.Fatalf("%s post of %d ops = %d, %v", e.name, len(ops), n, err)
	}
}

func (p *pair) until(what string, cond func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(waitLimit)
	for !cond() {
		if time.Now().After(deadline) {
			p.t.Fatalf("no %s after %v; near has %v (%v), far has %v (%v)", what, waitLimit, p.near.dones, p.near.err,
				p.far.dones, p.far.err)
		}
		p.near.poll()
		p.far.poll()
	}
}

func (p *pair) take(e *end, n int) []transports.Done {
	p.t.Helper()
	p.until("completions at "+e.name, func() bool { return len(e.dones) >= n || e.err != nil })
	if len(e.dones) < n {
		p.t.Fatalf("%s poll: %v", e.name, e.err)
	}
	got := e.dones[:n:n]
	e.dones = append([]transports.Done(nil), e.dones[n:]...)
	for _, d := range got {
		if d.Status != 0 {
			p.t.Fatalf("%s %v in slot %d: %v, want success", e.name, d.Kind, d.Slot, d.Status)
		}
	}
	return got
}

func (p *pair) postAll(e *end, ops []transports.Op) {
	p.t.Helper()
	for len(ops) > 0 {
		p.until("room at "+e.name, func() bool {
			n, err := e.s.Post(ops)
			if err != nil && !isFull(err) {
				p.t.Fatalf("%s post: %v", e.name, err)
			}
			ops = ops[n:]
			return n > 0
		})
	}
}

// barrier proves that everything both ends posted before it has taken effect.
func (p *pair) barrier() {
	p.t.Helper()
	const slot = 1 << 30
	last := uint64(len(p.near.s.Local()))
	for _, e := range []*end{p.near, p.far} {
		e.post(transports.Op{Kind: transports.KindRecv, Local: last, Slot: slot})
	}
	for _, e := range []*end{p.near, p.far} {
		e.post(transports.Op{Kind: transports.KindSend, Local: last, Slot: slot, Flags: transports.Unsignaled})
	}
	for _, e := range []*end{p.near, p.far} {
		p.until("barrier at "+e.name, func() bool {
			return e.err != nil || slices.ContainsFunc(e.dones, func(d transports.Done) bool {
				return d.Slot == slot && d.Kind == transports.KindRecv
			})
		})
		if e.err != nil {
			p.t.Fatalf("%s poll: %v", e.name, e.err)
		}
		e.dones = slices.DeleteFunc(e.dones, func(d transports.Done) bool { return d.Slot == slot })
	}
}

func scribble(b []byte, seed int) {
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], uint64(seed)+1)
	rand.NewChaCha8(key).Read(b)
}

func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d bytes, want %d", what, len(got), len(want))
	}
	if bytes.Equal(got, want) {
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: byte %d of %d = %#02x, want %#02x", what, i, len(got), got[i], want[i])
		}
	}
}
