package disturbance

import (
	"net"
	"testing"
	"time"
)

// A peer that reads nothing closes its window: the time is counted, with the segments that
// went before. Once it reads, no more is added.
func TestSocketsCountTheTimeAtAClosedWindow(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.(*net.TCPConn).SetReadBuffer(16 << 10)
	before := Sockets()
	if before.Sockets < 2 {
		t.Fatalf("%+v, want both ends", before)
	}
	c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := c.Write(make([]byte, 64<<20)); err == nil {
		t.Skip("64 MiB fit the buffers of this machine's sockets")
	}
	d := Between(before, Sockets())
	if d.Sockets < 2 || d.Segments == 0 || d.WindowLimitedNs < int64(100*time.Millisecond) ||
		d.WindowLimitedNs > int64(10*time.Second) {
		t.Errorf("%+v, want most of 300 ms behind a closed window", d)
	}
}

func TestSocketsAreOfReadingsApart(t *testing.T) {
	was, is := Sockets(), Sockets()
	if d := Between(was, is); d.Retransmits < 0 || d.Segments < 0 {
		t.Errorf("%+v", d)
	}
}
