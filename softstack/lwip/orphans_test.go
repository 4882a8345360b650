//go:build lwip && cgo

package lwip

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// TestWhatWasSentBeforeTheEndArrivesLater: the reader has no room, and begins when the link has
// had no connection of the sender's for longer than it stays without one. The last octets wait
// behind a window that has room for a part of them.
func TestWhatWasSentBeforeTheEndArrivesLater(t *testing.T) {
	for name, end := range map[string]func(stream.Conn) error{
		"close": stream.Conn.Close,
		"half":  stream.Conn.CloseWrite,
	} {
		for _, cfg := range []Config{{}, {Sequential: true}, {Threads: C1}, {Threads: C3}} {
			t.Run(fmt.Sprintf("%s/sequential=%v,threads=%v", name, cfg.Sequential, cfg.Threads), func(t *testing.T) {
				t.Parallel()
				endsWithAFullWindow(t, cfg, end)
			})
		}
	}
}

func endsWithAFullWindow(t *testing.T, cfg Config, end func(stream.Conn) error) {
	s := openStack(t, cfg)
	a, b := pair(t, s)
	endsFull(t, a, b, end, linkGrace+500*time.Millisecond)
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
	if err := end(a); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	var got []byte
	buf := make([]byte, 32<<10)
	for stop := time.Now().Add(20 * time.Second); len(got) < sent; {
		n, err := b.Recv(buf)
		if err != nil && err != stream.ErrAgain {
			t.Fatalf("%v behind %d of %d octets", err, len(got), sent)
		}
		got = append(got, buf[:n]...)
		if time.Now().After(stop) {
			t.Fatalf("%d of %d octets arrived", len(got), sent)
		}
	}
	if !bytes.Equal(got, msg[:sent]) {
		t.Fatal("not what was sent")
	}
	within(t, 10*time.Second, "the end arrives behind it", func() bool {
		n, err := b.Recv(buf)
		if n > 0 || err != nil && err != stream.ErrAgain && err != io.EOF {
			t.Fatalf("%d octets too many, or %v", n, err)
		}
		return err == io.EOF
	})
}
