//go:build netstack

package netstack

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/shm"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// pair is two ends of a connection in this process. They are over when the test is.
func pair(t testing.TB, cfg Config) (a, b stream.Conn) {
	t.Helper()
	return pairAt(t, cfg, "127.0.0.1:0")
}

func pairAt(t testing.TB, cfg Config, at string) (a, b stream.Conn) {
	t.Helper()
	s := must(Open(cfg))(t)
	l := must(s.Listen(t.Context(), at, stream.Buffers{}))(t)
	defer l.Close()
	oa := must(s.Dial(t.Context(), l.Addr(), stream.Buffers{}))(t)
	ob := must(l.Accept())(t)
	a, b = must(oa.Stream())(t), must(ob.Stream())(t)
	t.Cleanup(func() { a.Close(); b.Close(); ending.Wait() })
	return a, b
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// soon repeats f until it does not answer ErrAgain.
func soon(t testing.TB, f func() (int, error)) (n int, err error) {
	t.Helper()
	for stop := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Microsecond) {
		if n, err = f(); err != stream.ErrAgain {
			return n, err
		}
		if time.Now().After(stop) {
			t.Fatal("no answer in 30 s")
		}
	}
}

// carry sends msg from a to b, and tells how long nothing arrived at most.
func carry(t testing.TB, a, b stream.Conn, msg []byte) (got []byte, quiet time.Duration) {
	t.Helper()
	buf, sent, last := make([]byte, 32<<10), 0, time.Now()
	for stop := time.Now().Add(60 * time.Second); len(got) < len(msg); {
		if time.Now().After(stop) {
			t.Fatalf("%d of %d bytes sent, %d received in a minute", sent, len(msg), len(got))
		}
		if sent < len(msg) {
			k := min(len(msg)-sent, 10000)
			v := []unix.Iovec{{Base: &msg[sent], Len: uint64(k / 3)}, {Base: unsafe.SliceData(msg[sent+k/3:]), Len: uint64(k - k/3)}}
			n, err := a.Sendv(v)
			if err != nil && err != stream.ErrAgain {
				t.Fatal(err)
			}
			sent += n
		}
		n, err := b.Recv2(buf[:100], buf[100:])
		if err != nil && err != stream.ErrAgain {
			t.Fatal(err)
		}
		if got = append(got, buf[:n]...); n > 0 {
			quiet, last = max(quiet, time.Since(last)), time.Now()
		}
		if _, err := a.Recv(buf); err != stream.ErrAgain { // it drives the sender's side too
			t.Fatalf("the sender received: %v", err)
		}
	}
	return got, quiet
}

// longestStall is how long nothing may arrive (F10): netstack retransmits after 200 ms at
// least (MinRTO) and 1 s before the first measurement, and twice that for what is lost
// again. A machine that is busy adds its own.
const longestStall = 2*time.Second + time.Second

func TestStreamsAreExactOnEveryLink(t *testing.T) {
	for name, cfg := range map[string]Config{
		"default":     {},
		"large MTU":   {MTU: 9000},
		"largest MTU": {MTU: MaxMTU, Ring: 64},
		"small ring":  {Ring: MinRing},
		"reordered":   {Reorder: 0.05, Seed: 7},
		"duplicated":  {Duplicate: 0.05, Seed: 7},
		"lost":        {Loss: 0.01, Seed: 7},
		"delayed":     {Delay: 200 * time.Microsecond, Jitter: 100 * time.Microsecond, Seed: 7},
		"all":         {Loss: 0.005, Duplicate: 0.01, Reorder: 0.01, Delay: 100 * time.Microsecond, Seed: 7},
		"over IPv6":   {Loss: 0.001, Seed: 8},
	} {
		t.Run(name, func(t *testing.T) {
			before := Totals()
			at := "127.0.0.1:0"
			if name == "over IPv6" {
				at = "[::1]:0"
			}
			a, b := pairAt(t, cfg, at)
			for _, c := range []stream.Conn{a, b} {
				if peer, err := netip.ParseAddrPort(c.RemoteAddr()); err != nil || peer.Addr().Is6() != (name == "over IPv6") || peer.Port() == 0 {
					t.Errorf("the peer is %q", c.RemoteAddr())
				}
			}
			msg := random(2 << 20)
			got, quiet := carry(t, a, b, msg)
			if !bytes.Equal(got, msg) {
				t.Fatal("not what was sent")
			}
			n := Totals()
			if cfg.Loss > 0 && n.Lost == before.Lost || cfg.Duplicate > 0 && n.Duplicated == before.Duplicated || cfg.Reorder > 0 && n.Reordered == before.Reordered ||
				(cfg.Delay > 0) != (n.Delayed > before.Delayed) {
				t.Errorf("the impairment of %+v did nothing: %+v", cfg, n)
			}
			if quiet > longestStall {
				t.Errorf("nothing arrived for %v: a retransmission takes %v", quiet, longestStall)
			}
			stop := time.Now().Add(20 * time.Second)
			for left, _ := a.Unacked(); left != 0; left, _ = a.Unacked() {
				if time.Sleep(time.Millisecond); time.Now().After(stop) {
					t.Fatalf("%d of %d bytes not acknowledged", left, len(msg))
				}
			}
			if n, err := a.Unsent(); n != 0 || err != nil {
				t.Errorf("%d unsent, %v", n, err)
			}
			t.Logf("seed %d: the longest stall was %v", cfg.Seed, quiet)
		})
	}
}

func TestEndsAreTold(t *testing.T) {
	a, b := pair(t, Config{})
	buf := make([]byte, 16)
	if _, err := b.Recv(buf); err != stream.ErrAgain {
		t.Fatalf("nothing was sent: %v", err)
	}
	if _, err := a.Send([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := soon(t, func() (int, error) { return b.Recv(buf) }); n != 4 || err != nil {
		t.Fatalf("before FIN: %d, %v", n, err)
	}
	if _, err := soon(t, func() (int, error) { return b.Recv(buf) }); err != io.EOF {
		t.Errorf("after FIN: %v, want EOF", err)
	}
	if n, err := b.Send([]byte("back")); n != 4 || err != nil {
		t.Errorf("the other way after FIN: %d, %v", n, err)
	}
	if n, err := soon(t, func() (int, error) { return a.Recv(buf) }); n != 4 || err != nil {
		t.Errorf("the other way after FIN: %d, %v", n, err)
	}
	b.Abort()
	if _, err := soon(t, func() (int, error) { return a.Recv(buf) }); err != syscall.ECONNRESET {
		t.Errorf("after RST: %v, want ECONNRESET", err)
	}
	if _, err := a.Send(buf); err == nil || err == stream.ErrAgain {
		t.Errorf("sending after RST: %v", err)
	}
	if err := errors.Join(a.Close(), a.Close(), b.Close()); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if _, err := a.Recv(buf); err != syscall.EBADF {
		t.Errorf("after Close: %v", err)
	}
}

// TestWhatWasSentBeforeCloseArrives: the link outlives its connection that long.
func TestWhatWasSentBeforeCloseArrives(t *testing.T) {
	a, b := pair(t, Config{Delay: 5 * time.Millisecond})
	msg := random(100_000)
	for sent := 0; sent < len(msg); {
		n, err := soon(t, func() (int, error) { return a.Send(msg[sent:]) })
		if err != nil {
			t.Fatal(err)
		}
		sent += n
	}
	a.Close()
	var got []byte
	buf := make([]byte, 8192)
	for {
		n, err := soon(t, func() (int, error) { return b.Recv(buf) })
		if got = append(got, buf[:n]...); err != nil {
			if err != io.EOF || !bytes.Equal(got, msg) {
				t.Errorf("%d of %d bytes, %v", len(got), len(msg), err)
			}
			return
		}
	}
}

func TestPollersTellAndWake(t *testing.T) {
	a, b := pair(t, Config{})
	p := must(must(Open(Config{}))(t).NewPoller())(t)
	defer p.Close()
	var ev [4]stream.Event
	if err := p.Add(b, 7, stream.Readable|stream.OneShot); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Wait(ev[:], 20); n != 0 || err != nil {
		t.Errorf("nothing is ready: %d, %v", n, err)
	}
	a.Send([]byte("x"))
	if n, err := p.Wait(ev[:], 20000); n != 1 || err != nil || ev[0] != (stream.Event{Tag: 7, Bits: stream.Readable}) {
		t.Fatalf("readable: %d, %v, %+v", n, err, ev[0])
	}
	if n, _ := p.Wait(ev[:], 20); n != 0 {
		t.Error("a one-shot connection was reported twice")
	}
	if err := p.Modify(b, 8, stream.Readable|stream.Writable); err != nil {
		t.Fatal(err)
	}
	if n := p.Ready(ev[:]); n != 1 || ev[0] != (stream.Event{Tag: 8, Bits: stream.Readable | stream.Writable}) {
		t.Errorf("with octets and room: %d, %+v", n, ev[0])
	}
	if err := p.Modify(b, 9, 0); err != nil {
		t.Fatal(err)
	}
	go p.Wake()
	if n, err := p.Wait(ev[:], 20000); n != 0 || err != nil {
		t.Errorf("woken: %d, %v", n, err)
	}
	a.Abort()
	if n, _ := p.Wait(ev[:], 20000); n != 1 || ev[0].Bits&stream.Failed == 0 {
		t.Errorf("a lost connection: %d, %+v", n, ev[0])
	}
	b.Close()
	if n := p.Ready(ev[:]); n != 0 {
		t.Error("a closed connection was reported")
	}
}

func TestDialsThatCannotSucceedSayWhy(t *testing.T) {
	s := must(Open(Config{}))(t)
	l := must(s.Listen(t.Context(), "127.0.0.1:0", stream.Buffers{}))(t)
	defer l.Close()
	if _, err := s.Listen(t.Context(), l.Addr(), stream.Buffers{}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port in use: %v", err)
	}
	if _, err := s.Dial(t.Context(), "127.0.0.1:1", stream.Buffers{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := s.Dial(t.Context(), "192.0.2.1:18515", stream.Buffers{}); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("another machine: %v", err)
	}
	if _, err := Open(Config{Ring: 63}); err == nil {
		t.Error("a ring of 63 frames")
	}
}

// TestAPeerThatBreaksTheRingLosesItsConnection writes what no producer writes, and then
// dies without a word: the listener goes on, and nothing is left.
func TestAPeerThatBreaksTheRingLosesItsConnection(t *testing.T) {
	s := must(Open(Config{}))(t)
	l := must(s.Listen(t.Context(), "127.0.0.1:0", stream.Buffers{}))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr())
	for name, bend := range map[string]func(r *ring){
		"far ahead": func(r *ring) { *r.word(atUsed) = MinRing + 1 },
		"no size":   func(r *ring) { *r.word(atUsed) = 1 },
		"too long":  func(r *ring) { *r.word(atSlots) = 1 << 30; *r.word(atUsed) = 1 },
		"garbage": func(r *ring) {
			for i := range 5000 {
				frame := make([]byte, 1+rand.N(200))
				rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(frame)
				if i%2 == 0 {
					copy(frame, []byte{0x45, 0, 0, byte(len(frame)), 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
				}
				r.put([][]byte{frame})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sock, mem, err := family.Knock(t.Context(), port, shm.Hello{Frames: MinRing, Option: DefaultMTU})
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Munmap(mem)
			tx := newRing(mem[:len(mem)/2], MinRing, DefaultMTU)
			bend(&tx)
			sock.Write([]byte("!"))
			time.Sleep(5 * time.Millisecond)
			sock.Close()
			must(s.Dial(t.Context(), l.Addr(), stream.Buffers{}))(t).Close()
		})
	}
	ending.Wait()
}
