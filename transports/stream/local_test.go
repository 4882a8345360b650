package stream

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestBuffersOverTheLoopbackDevice: the local sizes count where nothing else is said, as far as the
// administrator lets it, and the kernel doubles it (socket(7)).
func TestBuffersOverTheLoopbackDevice(t *testing.T) {
	const size = 96 << 10 // below the smallest limit that systems come with
	own, _ := bufferedPair(t, Buffers{})
	kernels := Buffers{Send: buffer(t, own, unix.SO_SNDBUF), Recv: buffer(t, own, unix.SO_RCVBUF)}
	local := kernels
	if limits().Send >= size {
		local.Send = 2 * size
	}
	if limits().Recv >= size {
		local.Recv = 2 * size
	}
	for _, c := range []struct{ b, want Buffers }{
		{Buffers{}, kernels},
		{Buffers{LocalSend: size, LocalRecv: size}, local},
		{Buffers{LocalSend: size, LocalRecv: size, Send: 8 << 10}, Buffers{Send: 16 << 10, Recv: local.Recv}},
		{Buffers{LocalSend: size, LocalRecv: size, Recv: 8 << 10}, Buffers{Send: local.Send, Recv: 16 << 10}},
		{Buffers{LocalSend: limits().Send + 1, LocalRecv: limits().Recv + 1}, kernels},
		{Buffers{LocalSend: size}, Buffers{Send: local.Send, Recv: kernels.Recv}},
		{Buffers{LocalRecv: size}, Buffers{Send: kernels.Send, Recv: local.Recv}},
	} {
		a, b := bufferedPair(t, c.b)
		for _, end := range []Conn{a, b} {
			if got := (Buffers{Send: buffer(t, end, unix.SO_SNDBUF),
				Recv: buffer(t, end, unix.SO_RCVBUF)}); got != c.want {
				t.Errorf("%+v: %+v, want %+v", c.b, got, c.want)
			}
		}
	}
}

func buffer(t *testing.T, c Conn, opt int) int {
	t.Helper()
	return must(unix.GetsockoptInt(c.(*socket).fd, unix.SOL_SOCKET, opt))(t)
}

func TestLocalBuffersAreOfLoopbackAddresses(t *testing.T) {
	const size = 1 << 10
	enough := Buffers{Send: size, Recv: size}
	for addr, want := range map[string]Buffers{
		"127.0.0.1:1":          {size, size, size, size},
		"127.9.0.9:1":          {size, size, size, size},
		"[::1]:1":              {size, size, size, size},
		"[::ffff:127.0.0.1]:1": {size, size, size, size},
		"192.0.2.1:1":          {0, 0, size, size},
		"0.0.0.0:1":            {0, 0, size, size},
		"[::]:1":               {0, 0, size, size},
		"[2001:db8::1]:1":      {0, 0, size, size},
		"no address":           {0, 0, size, size},
	} {
		if got := (Buffers{LocalSend: size, LocalRecv: size}).within(addr, enough); got != want {
			t.Errorf("%s: %+v, want %+v", addr, got, want)
		}
	}
	for _, c := range []struct{ most, want Buffers }{
		{Buffers{}, Buffers{0, 0, size, size}},
		{Buffers{Send: size - 1, Recv: size}, Buffers{0, size, size, size}},
		{Buffers{Send: size, Recv: size - 1}, Buffers{size, 0, size, size}},
	} {
		if got := (Buffers{LocalSend: size, LocalRecv: size}).within("127.0.0.1:1", c.most); got != c.want {
			t.Errorf("at most %+v: %+v, want %+v", c.most, got, c.want)
		}
	}
}
