package ready

import (
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Opening is a connection in its start-up, as a [stream.Opening] over a connection that does not block.
type Opening struct {
	c     stream.Conn
	nudge func()
	at    atomic.Pointer[time.Time]
}

// NewOpening takes over c. nudge wakes whoever sleeps in c.Await.
func NewOpening(c stream.Conn, nudge func()) *Opening { return &Opening{c: c, nudge: nudge} }

// startupSlice bounds one sleep, so that a deadline that moves is seen.
const startupSlice = 100 * time.Millisecond

func (o *Opening) wait(bits uint32) error {
	d := startupSlice
	if at := o.at.Load(); at != nil && !at.IsZero() {
		left := time.Until(*at)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		d = min(d, left)
	}
	o.c.Await(bits, int(max(d/time.Millisecond, 1)))
	return nil
}

func (o *Opening) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, err := o.c.Recv(b)
		if err != stream.ErrAgain {
			return n, err
		}
		if err := o.wait(stream.Readable); err != nil {
			return 0, err
		}
	}
}

func (o *Opening) Write(b []byte) (int, error) {
	for done := 0; ; {
		if done == len(b) {
			return done, nil
		}
		n, err := o.c.Send(b[done:])
		done += n
		if err == stream.ErrAgain {
			err = o.wait(stream.Writable)
		}
		if err != nil {
			return done, err
		}
	}
}

func (o *Opening) SetDeadline(t time.Time) error {
	o.at.Store(&t)
	o.nudge()
	return nil
}

func (o *Opening) SetReadDeadline(t time.Time) error  { return o.SetDeadline(t) }
func (o *Opening) SetWriteDeadline(t time.Time) error { return o.SetDeadline(t) }
func (o *Opening) CloseWrite() error                  { return o.c.CloseWrite() }
func (o *Opening) Close() error                       { return o.c.Close() }
func (o *Opening) LocalAddr() net.Addr                { return address("127.0.0.1:0") }
func (o *Opening) RemoteAddr() net.Addr               { return address(o.c.RemoteAddr()) }
func (o *Opening) Stream() (stream.Conn, error)       { return o.c, nil }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
