//go:build lwip && cgo

package lwip

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
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

func openStack(t testing.TB, cfg Config) *Stack {
	t.Helper()
	return must(Open(cfg))(t)
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair is two ends of a connection over a link of this process to itself, which is two links to the stack.
func pair(t testing.TB, s *Stack) (a, b stream.Conn) {
	t.Helper()
	return pairAt(t, s, "127.0.0.1:0")
}

func pairAt(t testing.TB, s *Stack, at string) (a, b stream.Conn) {
	t.Helper()
	l := must(s.Listen(t.Context(), at, stream.Buffers{}))(t)
	defer l.Close()
	return connect(t, s, l)
}

func connect(t testing.TB, s *Stack, l stream.Listener) (a, b stream.Conn) {
	t.Helper()
	oa := must(s.Dial(t.Context(), l.Addr(), stream.Buffers{}))(t)
	ob := must(l.Accept())(t)
	a, b = must(oa.Stream())(t), must(ob.Stream())(t)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// within repeats f until it is true.
func within(t testing.TB, d time.Duration, what string, f func() bool) {
	t.Helper()
	for stop := time.Now().Add(d); !f(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(stop) {
			t.Fatalf("%s: not in %v", what, d)
		}
	}
}

// carry sends msg from a to b and returns what arrived.
func carry(t testing.TB, a, b stream.Conn, msg []byte, limit time.Duration) []byte {
	t.Helper()
	return resume(t, a, b, msg, 0, limit, func() {})
}

// resume is carry of a message whose first octets are sent. It calls arrived after every octet, or more, that arrived.
func resume(t testing.TB, a, b stream.Conn, msg []byte, sent int, limit time.Duration, arrived func()) []byte {
	t.Helper()
	var got []byte
	buf := make([]byte, 32<<10)
	for stop := time.Now().Add(limit); len(got) < len(msg); {
		if time.Now().After(stop) {
			t.Fatalf("%d of %d bytes sent, %d received in %v", sent, len(msg), len(got), limit)
		}
		if sent < len(msg) {
			n, err := a.Send(msg[sent:])
			if err != nil && err != stream.ErrAgain {
				t.Fatal(err)
			}
			sent += n
		}
		n, err := b.Recv(buf)
		if err != nil && err != stream.ErrAgain {
			t.Fatal(err)
		}
		got = append(got, buf[:n]...)
		if n > 0 {
			arrived()
		}
		if _, err := a.Recv(buf); err != stream.ErrAgain { // it drives the sender's side too
			t.Fatalf("the sender received: %v", err)
		}
	}
	return got
}

// arrives reads want from b.
func arrives(t testing.TB, b stream.Conn, want []byte) {
	t.Helper()
	var got []byte
	buf := make([]byte, 32<<10)
	for stop := time.Now().Add(30 * time.Second); len(got) < len(want); {
		n, err := b.Recv(buf)
		if err != nil && err != stream.ErrAgain {
			t.Fatalf("%v behind %d of %d octets", err, len(got), len(want))
		}
		got = append(got, buf[:n]...)
		if time.Now().After(stop) {
			t.Fatalf("%d of %d octets arrived", len(got), len(want))
		}
	}
	if !bytes.Equal(got, want) {
		t.Fatal("not what was sent")
	}
}

func random(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed)})
	b := make([]byte, n)
	r.Read(b)
	return b
}

func TestStreamsAreExactOnEveryArm(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"one copy", Config{}},
		{"two copies", Config{TwoCopies: true}},
		{"ring smaller than the window", Config{Ring: 64}},
		{"packet thread", Config{Threads: C1}},
		{"sequential", Config{Sequential: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStack(t, c.cfg)
			a, b := pair(t, s)
			msg := random(1, 3<<20)
			if got := carry(t, a, b, msg, 60*time.Second); !bytes.Equal(got, msg) {
				t.Fatal("not what was sent")
			}
			if n := s.Counts(); (n.RxCopied >= uint64(len(msg))) != c.cfg.TwoCopies {
				t.Errorf("%d octets copied out of the ring of %d sent: %+v", n.RxCopied, len(msg), n)
			}
		})
	}
}

// A link carries both versions of IP, beside each other; segments of IPv6 are 20 octets shorter.
func TestLinksCarryIPv6(t *testing.T) {
	for _, cfg := range []Config{{}, {TwoCopies: true}, {Threads: C1}, {Sequential: true},
		{Ring: 64, Loss: 0.001, Seed: 3}} {
		t.Run(cfg.Params(), func(t *testing.T) {
			s := openStack(t, cfg)
			a, b := pairAt(t, s, "[::1]:0")
			msg := random(2, 1<<20)
			if got := carry(t, a, b, msg, 60*time.Second); !bytes.Equal(got, msg) {
				t.Fatal("not what was sent")
			}
			for _, c := range []stream.Conn{a, b} {
				if at, err := netip.ParseAddrPort(c.RemoteAddr()); err != nil || at.Addr() != netip.IPv6Loopback() ||
					at.Port() == 0 {
					t.Errorf("the peer of a connection over IPv6 is %q", c.RemoteAddr())
				}
			}
			a4, b4 := pair(t, s)
			if got := carry(t, a4, b4, msg[:9000], 60*time.Second); !bytes.Equal(got, msg[:9000]) {
				t.Fatal("over IPv4 beside it, not what was sent")
			}
			if four, six := a4.MSS(), a.MSS(); four-six != 20 {
				t.Errorf("segments of %d octets over IPv4 and %d over IPv6", four, six)
			}
		})
	}
}

func TestPeekShowsWhatRecvWouldRead(t *testing.T) {
	a, b := pair(t, openStack(t, Config{}))
	msg := random(3, 5000)
	v := []unix.Iovec{{Base: unsafe.SliceData(msg), Len: 1000}, {Base: unsafe.SliceData(msg[1000:]), Len: 4000}}
	var n int
	within(t, 10*time.Second, "sending", func() bool { n, _ = a.Sendv(v); return n > 0 })
	if n != len(msg) {
		t.Fatalf("took %d of %d bytes", n, len(msg))
	}
	var got []byte
	within(t, 10*time.Second, "receiving", func() bool {
		p, err := b.Peek()
		if err != nil {
			return false
		}
		k := min(len(p), 700)
		got = append(got, p[:k]...)
		b.Skip(k)
		buf := make([]byte, 100)
		k, _ = b.Recv(buf)
		got = append(got, buf[:k]...)
		return len(got) == len(msg)
	})
	if !bytes.Equal(got, msg) {
		t.Error("not what was sent")
	}
}

// TestOneSendIsOneSegment is what keeps FPDUs aligned (RFC 5044 §5).
func TestOneSendIsOneSegment(t *testing.T) {
	a, b := pair(t, openStack(t, Config{}))
	for i := range 20 {
		msg := random(uint64(i), 64+i*60)
		within(t, 10*time.Second, "sending", func() bool { n, _ := a.Send(msg); return n == len(msg) })
	}
	for i := range 20 {
		var p []byte
		within(t, 10*time.Second, "receiving", func() bool { p, _ = b.Peek(); return p != nil })
		if want := 64 + i*60; len(p) != want {
			t.Fatalf("segment %d has %d bytes, sent as %d", i, len(p), want)
		}
		b.Skip(len(p))
	}
}

func TestEndsAreTold(t *testing.T) {
	a, b := pair(t, openStack(t, Config{}))
	buf := make([]byte, 16)
	if _, err := b.Recv(buf); err != stream.ErrAgain {
		t.Fatalf("nothing was sent: %v", err)
	}
	must(a.Send([]byte("last")))(t)
	noError(t, a.CloseWrite())
	if n, err := soon(t, func() (int, error) { return b.Recv(buf) }); n != 4 || err != nil {
		t.Fatalf("before FIN: %d, %v", n, err)
	}
	if _, err := soon(t, func() (int, error) { return b.Recv(buf) }); err != io.EOF {
		t.Errorf("after FIN: %v, want EOF", err)
	}
	b.Abort()
	if _, err := soon(t, func() (int, error) { return a.Recv(buf) }); err != syscall.ECONNRESET {
		t.Errorf("after RST: %v, want ECONNRESET", err)
	}
	if _, err := a.Send(buf); err != syscall.ECONNRESET {
		t.Errorf("sending after RST: %v, want ECONNRESET", err)
	}
	if err := errors.Join(a.Close(), a.Close(), b.Close()); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func soon(t testing.TB, f func() (int, error)) (n int, err error) {
	t.Helper()
	within(t, 20*time.Second, "an answer", func() bool { n, err = f(); return err != stream.ErrAgain })
	return n, err
}

func TestAFullWindowAnswersAgainAndOpens(t *testing.T) {
	a, b := pair(t, openStack(t, Config{}))
	msg := random(4, 1<<20)
	sent := 0
	for idle := 0; idle < 1000; {
		n, err := a.Send(msg[sent:])
		if sent += n; err == stream.ErrAgain {
			idle++
			time.Sleep(10 * time.Microsecond)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if sent == 0 || sent > 256<<10 {
		t.Fatalf("a window of 64 KiB took %d bytes", sent)
	}
	unacked := must(a.Unacked())(t)
	got := resume(t, a, b, msg, sent, 20*time.Second, func() {})
	if !bytes.Equal(got, msg) {
		t.Error("not what was sent")
	}
	within(t, 5*time.Second, "all is acknowledged", func() bool { n, _ := a.Unacked(); return n == 0 })
	if unacked < 0 || unacked >= sent {
		t.Errorf("%d bytes of %d sent are not acknowledged", unacked, sent)
	}
}

func TestTransfersAllocateNothing(t *testing.T) {
	a, b := pair(t, openStack(t, Config{}))
	msg, buf := make([]byte, 64), make([]byte, 64)
	v := []unix.Iovec{{Base: unsafe.SliceData(msg), Len: 32}, {Base: unsafe.SliceData(msg[32:]), Len: 32}}
	if n := testing.AllocsPerRun(500, func() {
		for sent := 0; sent == 0; {
			sent, _ = a.Sendv(v)
		}
		for got := 0; got < 64; {
			n, _ := b.Recv2(buf[got:got+1], buf[got+1:64:64])
			got += n
			if got == 63 {
				n, _ = b.Recv(buf[63:])
				got += n
			}
		}
		for sent := 0; sent == 0; {
			sent, _ = b.Send(msg)
		}
		for got := 0; got < 64; {
			p, _ := a.Peek()
			a.Skip(len(p))
			got += len(p)
		}
	}); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

func TestPollersTellAndWake(t *testing.T) {
	s := openStack(t, Config{})
	a, b := pair(t, s)
	p := must(s.NewPoller())(t)
	defer p.Close()
	var ev [4]stream.Event
	noError(t, p.Add(b, 7, stream.Readable|stream.OneShot))
	start := time.Now()
	if n, err := p.Wait(ev[:], 20, false); n != 0 || err != nil || time.Since(start) < 15*time.Millisecond {
		t.Errorf("nothing is ready: %d, %v after %v", n, err, time.Since(start))
	}
	a.Send([]byte("x"))
	if n, err := p.Wait(ev[:], 5000, false); n != 1 || err != nil || ev[0] != (stream.Event{Tag: 7, Bits: stream.Readable}) {
		t.Fatalf("readable: %d, %v, %+v", n, err, ev[0])
	}
	if n, _ := p.Wait(ev[:], 20, false); n != 0 {
		t.Error("a one-shot connection was reported twice")
	}
	noError(t, p.Modify(b, 8, stream.Readable|stream.Writable))
	if n := p.Ready(ev[:]); n != 1 || ev[0] != (stream.Event{Tag: 8, Bits: stream.Readable | stream.Writable}) {
		t.Errorf("with octets and room: %d, %+v", n, ev[0])
	}
	noError(t, p.Modify(b, 9, 0))
	go p.Wake()
	if n, err := p.Wait(ev[:], 5000, false); n != 0 || err != nil {
		t.Errorf("woken: %d, %v", n, err)
	}
	a.Abort()
	if n, _ := p.Wait(ev[:], 5000, false); n != 1 || ev[0].Bits&stream.Failed == 0 {
		t.Errorf("a lost connection: %d, %+v", n, ev[0])
	}
	b.Close()
	if n := p.Ready(ev[:]); n != 0 {
		t.Error("a closed connection was reported")
	}
}

// TestSleepersAreWokenByBells: nobody polls, so every message needs the driver, which sleeps in the pauses.
func TestSleepersAreWokenByBells(t *testing.T) {
	s := openStack(t, Config{})
	a, b := pair(t, s)
	const rounds, pauses = 200, 20
	done := make(chan int)
	go func() {
		buf, got := make([]byte, 1), 0
		for got < rounds+pauses {
			n, err := b.Recv(buf)
			if err == stream.ErrAgain {
				b.Await(stream.Readable, 5000)
				continue
			}
			if err != nil {
				break
			}
			got += n
			b.Send(buf)
		}
		done <- got
	}()
	buf := make([]byte, 1)
	start := time.Now()
	for i := range rounds + pauses {
		if i >= rounds {
			time.Sleep(2 * driverTick)
		}
		a.Send(buf)
		for {
			if _, err := a.Recv(buf); err == nil {
				break
			}
			a.Await(stream.Readable, 5000)
		}
	}
	if got := <-done; got != rounds+pauses {
		t.Errorf("%d of %d messages", got, rounds+pauses)
	}
	if d := time.Since(start) - pauses*2*driverTick; d > 10*time.Second {
		t.Errorf("%d round trips of sleepers took %v", rounds+pauses, d)
	}
	if s.Counts().Bells == 0 {
		t.Error("nobody rang")
	}
}

func TestDialsThatCannotSucceedSayWhy(t *testing.T) {
	s := openStack(t, Config{})
	l := must(s.Listen(t.Context(), "127.0.0.1:0", stream.Buffers{}))(t)
	defer l.Close()
	if _, err := s.Listen(t.Context(), l.Addr(), stream.Buffers{}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port in use: %v", err)
	}
	if _, err := s.Dial(t.Context(), "127.0.0.1:1", stream.Buffers{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := s.Dial(t.Context(), "192.0.2.1:18515", stream.Buffers{}); err == nil ||
		errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("another machine: %v", err)
	}
}

// TestAPeerThatBreaksTheRingLosesItsConnections writes what no producer writes.
func TestAPeerThatBreaksTheRingLosesItsConnections(t *testing.T) {
	for name, bend := range map[string]func(mem []byte, slots int){
		"turn far ahead": func(mem []byte, slots int) { put64(mem, usedAt, entry(uint32(slots)+2, 0, 60)) },
		"turn behind":    func(mem []byte, slots int) { put64(mem, usedAt, entry(-uint32(2*slots)+1, 0, 60)) },
		"slot outside":   func(mem []byte, slots int) { put64(mem, usedAt, entry(1, slots, 60)) },
		"frame too long": func(mem []byte, slots int) { put64(mem, usedAt, entry(1, 0, 4096)) },
		"empty frame":    func(mem []byte, slots int) { put64(mem, usedAt, entry(1, 0, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openStack(t, Config{})
			l := must(s.Listen(t.Context(), "127.0.0.1:0", stream.Buffers{}))(t)
			defer l.Close()
			c, mem := foreign(t, l)
			c.SetDeadline(time.Now().Add(10 * time.Second))
			bend(mem, MinRing)
			c.Write([]byte("!"))
			if n, err := c.Read(make([]byte, 1)); n == 0 && !errors.Is(err, io.EOF) &&
				!errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the link lives: %d, %v", n, err)
			}
			must(s.Dial(t.Context(), l.Addr(), stream.Buffers{}))(t).Close()
		})
	}
}

// foreign is a peer of a listener's link without a stack, with the memory that they share.
func foreign(t *testing.T, l stream.Listener) (*net.UnixConn, []byte) {
	t.Helper()
	_, port, _ := net.SplitHostPort(l.Addr())
	c := must(net.DialUnix("unix", nil, &net.UnixAddr{Name: "@rdmaperf/lwip/" + port, Net: "unix"}))(t)
	mem := must(family.Offer(c, shm.Hello{Frames: MinRing}))(t)
	t.Cleanup(func() { c.Close(); unix.Munmap(mem) })
	return c, mem
}

// usedAt is where the entries of a direction are, in its memory (struct lw_dir).
const usedAt = 3 * 64

// entry is union lw_entry.
func entry(turn uint32, slot, length int) uint64 {
	return uint64(turn) | uint64(slot)<<32 | uint64(length)<<48
}

func put64(mem []byte, at int, v uint64) { *(*uint64)(unsafe.Pointer(&mem[at])) = v }

// TestGarbageInFramesHarmsNobody sends random packets through a proper ring.
func TestGarbageInFramesHarmsNobody(t *testing.T) {
	s := openStack(t, Config{})
	l := must(s.Listen(t.Context(), "127.0.0.1:0", stream.Buffers{}))(t)
	defer l.Close()
	a, b := pair(t, s)
	_, mem := foreign(t, l)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	frames := len(mem)/2 - MinRing*2048
	for i := range uint32(20000) {
		slot := int(i % MinRing)
		f := mem[frames+slot*2048:][:2048]
		for k := range 80 {
			f[k] = byte(r.Uint32())
		}
		if r.IntN(2) == 0 { // something that looks like TCP for us
			copy(f, []byte{0x45, 0, 0, 60, 0, 0, 0, 0, 64, 6})
		}
		put64(mem, usedAt+8*slot, entry(i+1, slot, 1+r.IntN(1500)))
		if i%8 == 0 {
			b.Recv(make([]byte, 1))
		}
	}
	msg := random(5, 10000)
	if got := carry(t, a, b, msg, 10*time.Second); !bytes.Equal(got, msg) {
		t.Error("a stream beside it is not exact")
	}
}

func TestALinkEndsWhenNobodyUsesIt(t *testing.T) {
	s := openStack(t, Config{})
	a, b := pair(t, s)
	a.Close()
	b.Close()
	within(t, 20*time.Second, "the stack holds nothing", func() bool {
		s.core.mu.Lock()
		defer s.core.mu.Unlock()
		return !slices.ContainsFunc(s.core.links, func(l *link) bool { return l.stack == s })
	})
}
