//go:build lwip && cgo

package lwip

import (
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// opening is a connection in its start-up.
type opening struct {
	c  *conn
	at atomic.Pointer[time.Time]
}

// startupSlice bounds one sleep, so that a deadline that moves is seen. Arbitrary.
const startupSlice = 100 * time.Millisecond

func (o *opening) wait(bits uint32) error {
	d := startupSlice
	if at := o.at.Load(); at != nil && !at.IsZero() {
		left := time.Until(*at)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		d = min(d, left)
	}
	o.c.sleep(bits, d)
	return nil
}

func (o *opening) Read(b []byte) (int, error) {
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

func (o *opening) Write(b []byte) (int, error) {
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

func (o *opening) SetDeadline(t time.Time) error {
	o.at.Store(&t)
	select {
	case o.c.wake <- struct{}{}:
	default:
	}
	return nil
}

func (o *opening) SetReadDeadline(t time.Time) error  { return o.SetDeadline(t) }
func (o *opening) SetWriteDeadline(t time.Time) error { return o.SetDeadline(t) }
func (o *opening) CloseWrite() error                  { return o.c.CloseWrite() }
func (o *opening) Close() error                       { return o.c.Close() }
func (o *opening) LocalAddr() net.Addr                { return address("127.0.0.1:0") }
func (o *opening) RemoteAddr() net.Addr               { return address(o.c.remote) }
func (o *opening) Stream() (stream.Conn, error)       { return o.c, nil }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
