//go:build lwip && cgo

package lwip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/ready"
	"github.com/rdmaperf/rdmaperf/softstack/shm"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// dialFrom connects to l from a port, over a link of its own or one that is there, which it returns.
func dialFrom(t *testing.T, s *Stack, l stream.Listener, local uint16) (a, b stream.Conn, over, other *link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	host, port, n, err := shm.Target(l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	over = s.core.reuse(func(k *link) bool { return k.stack == s && k.port == port })
	if over == nil {
		over = must(knock(ctx, s, port))(t)
		s.core.pin(over)
	}
	defer s.core.unpin(over)
	var c *conn
	within(t, 10*time.Second, "the port", func() bool { // which is ours again when the peer's FIN is answered
		c, err = s.dialLink(ctx, over, 0, shm.Six(host), local, n)
		return !errors.Is(err, syscall.EADDRINUSE)
	})
	if err != nil {
		t.Fatalf("from port %d to %s: %v", local, l.Addr(), err)
	}
	a = must(ready.NewOpening(c, c.nudge).Stream())(t)
	b = must(must(l.Accept())(t).Stream())(t)
	other = s.core.reuse(func(k *link) bool { return k.stack == s && k != over && !k.gone.Load() })
	s.core.unpin(other)
	return a, b, over, other
}

// endFirst closes b, whose side has to wait then (RFC 9293 §3.6.1), and a behind it.
func endFirst(t *testing.T, b, a stream.Conn) {
	t.Helper()
	b.Close()
	within(t, 10*time.Second, "the end", func() bool {
		_, err := a.Recv(make([]byte, 1))
		return errors.Is(err, io.EOF)
	})
	a.Close()
}

// TestAPortIsUsedAgainOverSharedMemory though the other side waits for stragglers of the connection before.
func TestAPortIsUsedAgainOverSharedMemory(t *testing.T) {
	// A connection's first number is ahead of the last one's by ticks of 500 ms; SYN and FIN count one each.
	pair(t, openStack(t, Config{}))
	time.Sleep(3 * time.Second)
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(at, func(t *testing.T) {
			s := openStack(t, Config{})
			l := must(s.Listen(t.Context(), at, stream.Buffers{}))(t)
			defer l.Close()
			for range 3 {
				begin := time.Now()
				a, b, _, _ := dialFrom(t, s, l, 50123)
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("connected after %v", took)
				}
				endFirst(t, b, a)
			}
		})
	}
}

// TestALinkTakesWhatWaitsWithIt: a connection from a port of an old peer's address is new, though its octets begin
// before those that came then.
func TestALinkTakesWhatWaitsWithIt(t *testing.T) {
	s := openStack(t, Config{})
	linksEnd(t, s) // of tests before this one
	l := must(s.Listen(t.Context(), "127.0.0.1:0", stream.Buffers{}))(t)
	defer l.Close()
	msg := random(8, 1<<20)
	a, b, _, other := dialFrom(t, s, l, 50124)
	if got := carry(t, a, b, msg, 30*time.Second); !bytes.Equal(got, msg) {
		t.Fatal("not what was sent")
	}
	place := other.c.index
	endFirst(t, b, a)
	linksEnd(t, s)
	for range 20 { // which of the two sides has which place is not said
		a, b, _, other = dialFrom(t, s, l, 50124)
		a.Abort()
		b.Abort()
		if other.c.index == place {
			return
		}
		linksEnd(t, s)
	}
	t.Error("no link of 20 had the old one's place again")
}

func linksEnd(t *testing.T, s *Stack) {
	t.Helper()
	within(t, 20*time.Second, "the links end", func() bool {
		s.core.mu.Lock()
		defer s.core.mu.Unlock()
		return len(s.core.links) == 0
	})
}

// TestWhatWasSentBeforeTheEndArrivesLater: the reader begins when the link would have ended.
func TestWhatWasSentBeforeTheEndArrivesLater(t *testing.T) {
	for name, end := range map[string]func(stream.Conn) error{
		"close": stream.Conn.Close,
		"half":  stream.Conn.CloseWrite,
	} {
		for _, cfg := range []Config{{}, {Sequential: true}, {Threads: C1}, {Threads: C3}} {
			t.Run(fmt.Sprintf("%s/sequential=%v,threads=%v", name, cfg.Sequential, cfg.Threads), func(t *testing.T) {
				t.Parallel()
				a, b := pair(t, openStack(t, cfg))
				endsFull(t, a, b, end, linkGrace+500*time.Millisecond)
			})
		}
	}
}

// endsFull fills the window of b, which does not read, ends a, and reads when after is over.
func endsFull(t *testing.T, a, b stream.Conn, end func(stream.Conn) error, after time.Duration) {
	msg := random(9, 1<<20)
	sent := 0
	within(t, 20*time.Second, "the window is full and the sender keeps octets", func() bool {
		n, err := a.Send(msg[sent:])
		if err != nil && err != stream.ErrAgain {
			t.Fatal(err)
		}
		sent += n
		return n == 0 && must(a.Unacked())(t) > 0
	})
	noError(t, end(a))
	time.Sleep(after)
	arrives(t, b, msg[:sent])
	buf := make([]byte, 1)
	within(t, 10*time.Second, "the end arrives behind it", func() bool {
		n, err := b.Recv(buf)
		if n > 0 || err != nil && err != stream.ErrAgain && err != io.EOF {
			t.Fatalf("%d octets too many, or %v", n, err)
		}
		return err == io.EOF
	})
}
