package stream

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// pair is two ends of one loopback connection.
func pair(t testing.TB) (a, b Conn) { return bufferedPair(t, Buffers{}) }

func bufferedPair(t testing.TB, buf Buffers) (a, b Conn) {
	t.Helper()
	l := must(Kernel.Listen(t.Context(), "127.0.0.1:0", buf))(t)
	defer l.Close()
	da := must(Kernel.Dial(t.Context(), l.Addr(), buf))(t)
	db := must(l.Accept())(t)
	a = must(da.Stream())(t)
	b = must(db.Stream())(t)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func poller(t testing.TB) Poller {
	t.Helper()
	p := must(Kernel.NewPoller())(t)
	t.Cleanup(func() { p.Close() })
	return p
}

// soon repeats f until it does not answer ErrAgain.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func soon(t testing.TB, f func() (int, error)) (int, error) {
	t.Helper()
	for stop := time.Now().Add(20 * time.Second); time.Now().Before(stop); {
		if n, err := f(); err != ErrAgain {
			return n, err
		}
	}
	t.Fatal("nothing in 20 s")
	return 0, nil
}

func TestEmptySocketAnswersAgain(t *testing.T) {
	a, _ := pair(t)
	buf := make([]byte, 8)
	if n, err := a.Recv(buf); n != 0 || err != ErrAgain {
		t.Errorf("Recv = %d, %v, want ErrAgain", n, err)
	}
	if n, err := a.Recv2(buf[:4], buf[4:]); n != 0 || err != ErrAgain {
		t.Errorf("Recv2 = %d, %v, want ErrAgain", n, err)
	}
}

func TestPiecesArriveInOrder(t *testing.T) {
	a, b := pair(t)
	x, y := []byte("head"), []byte("payload")
	v := []unix.Iovec{{Base: unsafe.SliceData(x), Len: 4}, {Base: unsafe.SliceData(y), Len: 7}}
	if n, err := a.Sendv(v); n != 11 || err != nil {
		t.Fatalf("Sendv = %d, %v", n, err)
	}
	if n, err := a.Send([]byte("!")); n != 1 || err != nil {
		t.Fatalf("Send = %d, %v", n, err)
	}
	var got []byte
	for len(got) < 12 {
		p, q := make([]byte, 5), make([]byte, 4)
		n := must(soon(t, func() (int, error) { return b.Recv2(p, q) }))(t)
		got = append(got, append(p, q...)[:n]...)
	}
	if string(got) != "headpayload!" {
		t.Errorf("received %q", got)
	}
}

func TestFullSocketAnswersAgainAndLosesNothing(t *testing.T) {
	a, b := bufferedPair(t, Buffers{Send: 32 << 10, Recv: 32 << 10})
	msg := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	sent, full := 0, false
	var got []byte
	buf := make([]byte, 64<<10)
	for stop := time.Now().Add(20 * time.Second); len(got) < len(msg) && time.Now().Before(stop); {
		for sent < len(msg) {
			n, err := a.Send(msg[sent:])
			if err == ErrAgain {
				full = true
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			sent += n
		}
		if n, err := b.Recv(buf); err == nil {
			got = append(got, buf[:n]...)
		} else if err != ErrAgain {
			t.Fatal(err)
		}
	}
	if !full || !bytes.Equal(got, msg) {
		t.Errorf("the socket was full: %v; received %d of %d bytes, equal %v", full, len(got), len(msg),
			bytes.Equal(got, msg))
	}
}

func TestEndsAreTold(t *testing.T) {
	a, b := pair(t)
	noError(t, a.CloseWrite())
	buf := make([]byte, 1)
	if _, err := soon(t, func() (int, error) { return b.Recv(buf) }); err != io.EOF {
		t.Errorf("after FIN: %v, want EOF", err)
	}
	noError(t, b.Abort())
	if _, err := soon(t, func() (int, error) { return a.Recv(buf) }); err != unix.ECONNRESET {
		t.Errorf("after RST: %v, want ECONNRESET", err)
	}
	if err := errors.Join(a.Close(), a.Close(), b.Close()); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

// TestAcknowledgedIsWhatThePeersStackHas: the peer need not read for it.
func TestAcknowledgedIsWhatThePeersStackHas(t *testing.T) {
	a, b := pair(t)
	before, asked := KernelCalls().Queue, uint64(1)
	defer func() {
		if n := KernelCalls().Queue - before; n != asked {
			t.Errorf("%d of %d questions are counted as system calls", n, asked)
		}
	}()
	if n, err := a.Unacked(); n != 0 || err != nil {
		t.Fatalf("before anything was sent: %d, %v", n, err)
	}
	for total := 0; total < 3000; {
		n := must(a.Send(make([]byte, 1000)))(t)
		total += n
		left := n
		for stop := time.Now().Add(20 * time.Second); left != 0 && time.Now().Before(stop); {
			asked++
			if left = must(a.Unacked())(t); left < 0 || left > n {
				t.Fatalf("%d of %d not acknowledged", left, n)
			}
		}
		if left != 0 {
			t.Fatalf("%d of %d not acknowledged after 20 s", left, n)
		}
	}
	if n, err := soon(t, func() (int, error) { return b.Recv(make([]byte, 4000)) }); n != 3000 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
}

func TestSegmentSizeIsTheLinks(t *testing.T) {
	a, _ := pair(t)
	if mss := a.MSS(); mss < 536 || mss > 1<<16 {
		t.Errorf("MSS = %d", mss)
	}
}

func TestTransfersAllocateNothing(t *testing.T) {
	a, b := pair(t)
	msg, buf := make([]byte, 64), make([]byte, 64)
	v := []unix.Iovec{{Base: unsafe.SliceData(msg), Len: 32}, {Base: unsafe.SliceData(msg[32:]), Len: 32}}
	if n := testing.AllocsPerRun(200, func() {
		a.Send(msg)
		for got := 0; got < 64; {
			n, _ := b.Recv(buf[got:])
			got += n
		}
		a.Sendv(v)
		for got := 0; got < 64; {
			n, _ := b.Recv2(buf[got:got+1], buf[got+1:64:64])
			got += n
			if got == 63 {
				n, _ = b.Recv(buf[63:])
				got += n
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

func TestPollersWaitAndWake(t *testing.T) {
	for name, park := range map[string]bool{"blocking": false, "parking": true} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			p := poller(t)
			var ev [4]Event
			noError(t, p.Add(b, 7, Readable|OneShot))
			if n, err := p.Wait(ev[:], 0, park); n != 0 || err != nil {
				t.Errorf("nothing is ready: %d, %v", n, err)
			}
			start := time.Now()
			if n, err := p.Wait(ev[:], 20, park); n != 0 || err != nil || time.Since(start) < 15*time.Millisecond {
				t.Errorf("after the time: %d, %v, %v", n, err, time.Since(start))
			}
			a.Send([]byte("x"))
			if n, err := p.Wait(ev[:], 5000, park); n != 1 || err != nil || ev[0].Tag != 7 || ev[0].Bits&Readable == 0 {
				t.Fatalf("readable: %d, %v, %+v", n, err, ev[0])
			}
			a.Send([]byte("y"))
			if n, _ := p.Wait(ev[:], 20, park); n != 0 {
				t.Error("a one-shot descriptor was reported twice")
			}
			noError(t, p.Modify(b, 7, Readable|OneShot))
			if n, _ := p.Wait(ev[:], 5000, park); n != 1 {
				t.Error("an armed descriptor with unread bytes was not reported")
			}
			go p.Wake()
			if n, err := p.Wait(ev[:], 5000, park); n != 0 || err != nil {
				t.Errorf("woken: %d, %v", n, err)
			}
			p.Wake()
			p.Wake()
			start = time.Now()
			if p.Wait(ev[:], 5000, park); time.Since(start) > 4*time.Second {
				t.Error("a wake-up before the wait was lost")
			}
			noError(t, p.Remove(b))
			if n, _ := p.Wait(ev[:], 10, park); n != 0 {
				t.Error("a removed descriptor was reported")
			}
		})
	}
}

// TestParkingPollerLosesNoEvent sends one byte at a time to a goroutine that
// only ever sleeps.
func TestParkingPollerLosesNoEvent(t *testing.T) {
	a, b := pair(t)
	p := poller(t)
	noError(t, p.Add(b, 1, Readable|OneShot))
	const rounds = 2000
	done := make(chan int)
	go func() {
		var ev [4]Event
		buf, got := make([]byte, 16), 0
		for got < rounds {
			n, err := p.Wait(ev[:], 5000, true)
			if n == 0 || err != nil {
				break
			}
			if n, err := b.Recv(buf); err == nil {
				got += n
				b.Send(buf[:n])
			}
			p.Modify(b, 1, Readable|OneShot)
		}
		done <- got
	}()
	buf := make([]byte, 1)
	for range rounds {
		a.Send(buf)
		must(soon(t, func() (int, error) { return a.Recv(buf) }))(t)
	}
	if got := <-done; got != rounds {
		t.Errorf("%d of %d bytes seen", got, rounds)
	}
}

// A Park looks at once, and again behind all that arrives; a look that found something, Unpark, and the end of the
// connection on either side end it.
func TestParking(t *testing.T) {
	buf := make([]byte, 16)
	for name, tc := range map[string]struct {
		during func(a, b Conn)
		look   func(b Conn) bool
		looks  int // at least
	}{
		"by a look":         {func(_, _ Conn) {}, func(Conn) bool { return true }, 1},
		"by an octet":       {func(a, _ Conn) { a.Send(buf[:1]) }, nil, 2},
		"by Unpark":         {func(_, b Conn) { b.Unpark() }, nil, 1},
		"by the peer's FIN": {func(a, _ Conn) { a.CloseWrite() }, nil, 2},
		"by a reset":        {func(a, _ Conn) { a.Abort() }, nil, 2},
		"by Close":          {func(_, b Conn) { b.Close() }, nil, 1},
		"by a look that closes": {func(a, _ Conn) { a.Send(buf[:1]) }, func(b Conn) bool {
			if _, err := b.Recv(buf); err == ErrAgain {
				return false
			}
			b.Close()
			return true
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			if !b.Parks() || !b.Parks() {
				t.Fatal("a kernel socket does not park")
			}
			look := tc.look
			if look == nil {
				look = func(b Conn) bool { _, err := b.Recv(buf); return err != ErrAgain }
			}
			looked, done := make(chan struct{}, 8), make(chan error, 1)
			go func() {
				done <- b.Park(func() bool {
					found := look(b)
					looked <- struct{}{}
					return found
				})
			}()
			<-looked
			tc.during(a, b)
			select {
			case err := <-done:
				noError(t, err)
			case <-time.After(20 * time.Second):
				t.Fatal("it does not end")
			}
			if n := len(looked) + 1; n < tc.looks {
				t.Errorf("%d looks, want %d at least", n, tc.looks)
			}
		})
	}
}

func TestUnparkOutlivesNoPark(t *testing.T) {
	a, b := pair(t)
	b.Parks()
	b.Unpark() // before a Park: it ends the next one, and no other
	noError(t, b.Park(func() bool { return false }))
	buf := make([]byte, 1)
	done := make(chan error, 1)
	go func() { done <- b.Park(func() bool { _, err := b.Recv(buf); return err == nil }) }()
	select {
	case err := <-done:
		t.Fatalf("a second Park ends with nothing read: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	a.Send(buf)
	noError(t, <-done)
	noError(t, b.Close())
	noError(t, b.Park(func() bool { t.Error("a closed connection is looked at"); return true }))
	if _, err := soon(t, func() (int, error) { return a.Recv(buf) }); err != io.EOF {
		t.Errorf("the peer of a closed connection reads %v, want EOF", err)
	}
}

// A hundred waits at once hold mostBlocked threads, and each ends with what it waits for:
// an octet, or a wake-up.
func TestACrowdOfWaitsHoldsFewThreads(t *testing.T) {
	const crowd = 100
	threads := func() int {
		all := must(os.ReadDir("/proc/self/task"))(t)
		return len(all)
	}
	before := threads()
	var pollers [crowd]Poller
	var peers [crowd]Conn
	var events [crowd]chan int
	for i := range crowd {
		var b Conn
		peers[i], b = pair(t)
		p := poller(t)
		noError(t, p.Add(b, uint64(i), Readable))
		pollers[i], events[i] = p, make(chan int, 1)
		go func() {
			var ev [4]Event
			n, err := p.Wait(ev[:], 20_000, false)
			if err != nil || n > 0 && ev[0].Tag != uint64(i) {
				t.Errorf("poller %d: %d events, first %+v, %v", i, n, ev[0], err)
			}
			events[i] <- n
		}()
	}
	time.Sleep(300 * time.Millisecond) // every one is in Wait
	if got := threads() - before; got > mostBlocked+8 {
		t.Errorf("%d waits hold %d threads more, want about %d", crowd, got, mostBlocked)
	}
	begun := time.Now()
	for i := range crowd {
		if i%2 == 0 {
			peers[i].Send([]byte("x"))
		} else {
			pollers[i].Wake()
		}
		if n, want := <-events[i], 1-i%2; n != want {
			t.Errorf("poller %d saw %d events, want %d", i, n, want)
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("they ended after %v: by their limit", took)
	}
	if n := blocked.Load(); n != 0 {
		t.Errorf("%d waits count as blocked behind their end", n)
	}
}

func TestAwaitReturnsWhenReadyOrLate(t *testing.T) {
	a, b := pair(t)
	start := time.Now()
	b.Await(Readable, 20)
	if d := time.Since(start); d < 15*time.Millisecond {
		t.Errorf("an idle socket was awaited for %v", d)
	}
	a.Send([]byte("x"))
	start = time.Now()
	b.Await(Readable, 5000)
	a.Await(Writable, 5000)
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("ready sockets took %v", d)
	}
}

// A Wake that comes late must not reach whoever has the descriptor's number now.
func TestWakeAfterCloseTouchesNobody(t *testing.T) {
	p := must(newEpoll())(t)
	number := p.wake
	p.Close()
	heir := must(unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC))(t)
	defer unix.Close(heir)
	if heir != number { // another goroutine was quicker: take the number anyway
		noError(t, unix.Dup2(heir, number))
		defer unix.Close(number)
	}
	p.Wake()
	var b [8]byte
	if n, err := unix.Read(heir, b[:]); err != unix.EAGAIN {
		t.Errorf("the heir of the number read %d octets, %v, want none", n, err)
	}
	if err := p.ctl(unix.EPOLL_CTL_ADD, heir, 1, Readable); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Add after Close: %v, want %v", err, os.ErrClosed)
	}
}

// Both ends of a connection mark their packets, over IPv4 and over IPv6.
func TestPacketsAreMarked(t *testing.T) {
	marked := KernelTOS(104)
	if marked.Name() != "tos=104" {
		t.Errorf("name %q", marked.Name())
	}
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := marked.Listen(t.Context(), at, Buffers{})
		if err != nil {
			t.Logf("%s: %v", at, err) // a machine without IPv6
			continue
		}
		defer l.Close()
		near := must(marked.Dial(t.Context(), l.Addr(), Buffers{}))(t)
		defer near.Close()
		far := must(l.Accept())(t)
		defer far.Close()
		level, opt := unix.IPPROTO_IP, unix.IP_TOS
		if at[0] == '[' {
			level, opt = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		for side, o := range map[string]Opening{"dialled": near, "accepted": far} {
			raw := must(o.(opening).SyscallConn())(t)
			var got int
			raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), level, opt) })
			if err != nil || got&^3 != 104 { // the two lowest bits are ECN's
				t.Errorf("%s, %s: type of service %d, %v, want 104", at, side, got, err)
			}
		}
	}
}
