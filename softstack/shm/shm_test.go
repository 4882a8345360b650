package shm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// ring is a family of tests, and of this process alone.
var ring = &Family{
	Name: "test-" + strconv.Itoa(os.Getpid()), Magic: "testring", MinFrames: 16, MaxFrames: 1024,
	Size: func(h Hello) int { return h.Frames * 4096 },
}

// need is the value of a call that must not fail.
func need[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

type guest struct {
	c   *net.UnixConn
	mem []byte
	h   Hello
}

// house listens at port and gives out who came in.
func house(t *testing.T, port string) <-chan guest {
	t.Helper()
	l := need(ring.Listen(port))(t)
	in := make(chan guest, 8)
	l.Serve(func(c *net.UnixConn, mem []byte, h Hello) { in <- guest{c, mem, h} })
	t.Cleanup(func() {
		l.Close()
		for {
			select {
			case g := <-in:
				g.c.Close()
				unix.Munmap(g.mem)
			default:
				return
			}
		}
	})
	return in
}

func TestTwoSidesSeeOneMemory(t *testing.T) {
	in := house(t, "1")
	c, mem, err := ring.Knock(t.Context(), "1", Hello{64})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	g := <-in
	defer unix.Munmap(g.mem)
	defer g.c.Close()
	if g.h != (Hello{64}) || len(mem) != 64*4096 || len(g.mem) != len(mem) {
		t.Fatalf("%+v, %d and %d bytes", g.h, len(mem), len(g.mem))
	}
	copy(mem[100:], "here")
	if !bytes.Equal(g.mem[100:104], []byte("here")) {
		t.Error("what one side wrote the other does not see")
	}
	c.Close()
	g.c.SetDeadline(time.Now().Add(10 * time.Second))
	if n, err := g.c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the end of the other side: %d, %v", n, err)
	}
}

func TestMeetingsThatCannotBeSayWhy(t *testing.T) {
	if _, _, err := ring.Knock(t.Context(), "2", Hello{Frames: 64}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody is at home: %v", err)
	}
	house(t, "2")
	if l, err := ring.Listen("2"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port in use: %v", err)
		l.Close()
	}
	if _, _, err := ring.Knock(t.Context(), "2", Hello{ring.MaxFrames * 2}); err == nil {
		t.Error("a ring that the family refuses was let in")
	}
	if _, _, _, err := Target("192.0.2.1:18515"); err == nil {
		t.Error("another machine is none of this one")
	}
	if _, _, n, err := Target("localhost:18515"); n != 18515 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestASilentListenerIsGivenUp: it has the socket and never answers.
func TestASilentListenerIsGivenUp(t *testing.T) {
	u := need(net.ListenUnix("unix", &net.UnixAddr{Name: ring.room("3"), Net: "unix"}))(t)
	defer u.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := ring.Knock(ctx, "3", Hello{Frames: 64}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
}

// TestAStrangersKnockCostsOneSocket: the listener goes on.
func TestAStrangersKnockCostsOneSocket(t *testing.T) {
	in := house(t, "4")
	hello := func(frames, option uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("testring"), frames), option)
	}
	memory := func(size int64, seal int) int {
		fd := need(unix.MemfdCreate("t", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING))(t)
		t.Cleanup(func() { unix.Close(fd) })
		unix.Ftruncate(fd, size)
		unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seal)
		return fd
	}
	right := memory(64*4096, seals)
	for name, k := range map[string]struct {
		b   []byte
		fds []int
	}{
		"garbage":        {[]byte("GET / HTTP/1.1\r\n"), nil},
		"short":          {[]byte("test"), nil},
		"no memory":      {hello(64, 0), nil},
		"two memories":   {hello(64, 0), []int{right, right}},
		"unsealed":       {hello(64, 0), []int{memory(64*4096, 0)}},
		"may shrink":     {hello(64, 0), []int{memory(64*4096, unix.F_SEAL_GROW|unix.F_SEAL_SEAL)}},
		"too small":      {hello(64, 0), []int{memory(4096, seals)}},
		"odd ring":       {hello(65, 0), []int{right}},
		"small ring":     {hello(8, 0), []int{right}},
		"enormous ring":  {hello(1<<31, 0), []int{right}},
		"another option": {hello(64, 10), []int{right}},
	} {
		t.Run(name, func(t *testing.T) {
			c := need(net.DialUnix("unix", nil, &net.UnixAddr{Name: ring.room("4"), Net: "unix"}))(t)
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Second))
			if _, _, err := c.WriteMsgUnix(k.b, unix.UnixRights(k.fds...), nil); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("it was let in: %d, %v", n, err)
			}
		})
	}
	c, mem, err := ring.Knock(t.Context(), "4", Hello{Frames: 64})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	unix.Munmap(mem)
	<-in
}

func FuzzHello(f *testing.F) {
	f.Add([]byte("testring\x00\x00\x00\x40\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ring.parse(b)
		if err == nil && (h.Frames < 16 || h.Frames > 1024 || h.Frames&(h.Frames-1) != 0 ||
			!bytes.Equal(ring.put(h), b)) {
			t.Errorf("%x: %+v", b, h)
		}
	})
}
