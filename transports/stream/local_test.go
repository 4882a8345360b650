package stream

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestBuffersOverTheLoopbackDevice: Local counts where nothing else is said, as far as the
// administrator lets it, and the kernel doubles it (socket(7)).
func TestBuffersOverTheLoopbackDevice(t *testing.T) {
	const size = 96 << 10 // below the smallest limit that systems come with
	if size > min(limit("wmem_max"), limit("rmem_max")) {
		t.Skip("net.core.wmem_max or rmem_max is below 96 KiB")
	}
	own, _ := bufferedPair(t, Buffers{})
	send, recv := buffer(t, own, unix.SO_SNDBUF), buffer(t, own, unix.SO_RCVBUF)
	for _, c := range []struct {
		b          Buffers
		send, recv int
	}{
		{Buffers{}, send, recv},
		{Buffers{Local: size}, 2 * size, 2 * size},
		{Buffers{Local: size, Send: 64 << 10}, 128 << 10, 2 * size},
		{Buffers{Local: size, Recv: 64 << 10}, 2 * size, 128 << 10},
		{Buffers{Local: max(limit("wmem_max"), limit("rmem_max")) + 1}, send, recv},
	} {
		a, b := bufferedPair(t, c.b)
		for _, end := range []Conn{a, b} {
			if s, r := buffer(t, end, unix.SO_SNDBUF), buffer(t, end, unix.SO_RCVBUF); s != c.send || r != c.recv {
				t.Errorf("%+v: %d to send and %d to receive, want %d and %d", c.b, s, r, c.send, c.recv)
			}
		}
	}
}

func buffer(t *testing.T, c Conn, opt int) int {
	t.Helper()
	n, err := unix.GetsockoptInt(c.(*socket).fd, unix.SOL_SOCKET, opt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLocalBuffersAreOfLoopbackAddresses(t *testing.T) {
	const size = 1 << 10
	for addr, want := range map[string]Buffers{
		"127.0.0.1:1":          {size, size, size},
		"127.9.0.9:1":          {size, size, size},
		"[::1]:1":              {size, size, size},
		"[::ffff:127.0.0.1]:1": {size, size, size},
		"192.0.2.1:1":          {0, 0, size},
		"0.0.0.0:1":            {0, 0, size},
		"[::]:1":               {0, 0, size},
		"[2001:db8::1]:1":      {0, 0, size},
		"no address":           {0, 0, size},
	} {
		if got := (Buffers{Local: size}).within(addr); got != want {
			t.Errorf("%s: %+v, want %+v", addr, got, want)
		}
	}
}
