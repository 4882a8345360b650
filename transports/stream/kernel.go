package stream

import (
	"context"
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Kernel is the kernel's TCP/IP, through sockets. It holds nothing.
var Kernel Stack = kernel{}

type kernel struct{}

func (kernel) Name() string { return "" }

// InPlace is false: the kernel's packets are its own.
func (kernel) InPlace() bool { return false }

func (kernel) Dial(ctx context.Context, addr string, b Buffers) (Opening, error) {
	c, err := (&net.Dialer{Control: b.control}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return opening{c.(*net.TCPConn)}, nil
}

func (kernel) Listen(ctx context.Context, addr string, b Buffers) (Listener, error) {
	l, err := (&net.ListenConfig{Control: b.control}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return listener{l.(*net.TCPListener)}, nil
}

func (kernel) NewPoller() (Poller, error) { return newEpoll() }

func (kernel) NewParkingPoller() (Poller, error) { return newParkingEpoll() }

// control runs before connect and listen: the window scale is fixed with the SYN
// (RFC 7323 §2.2), and accepted sockets inherit the sizes.
func (b Buffers) control(_, _ string, c syscall.RawConn) error {
	if b == (Buffers{}) {
		return nil
	}
	var err error
	cerr := c.Control(func(fd uintptr) {
		for _, o := range []struct{ opt, size int }{{unix.SO_SNDBUF, b.Send}, {unix.SO_RCVBUF, b.Recv}} {
			if o.size > 0 {
				err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o.opt, o.size))
			}
		}
	})
	return errors.Join(cerr, err)
}

type listener struct{ l *net.TCPListener }

func (l listener) Accept() (Opening, error) {
	c, err := l.l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return opening{c}, nil
}

func (l listener) Addr() string { return l.l.Addr().String() }
func (l listener) Close() error { return l.l.Close() }

// Adopt makes a connection of the kernel's, made elsewhere, an Opening.
func Adopt(c *net.TCPConn) Opening { return opening{c} }

// opening waits in Go's own network poller, so that many silent peers block no thread.
type opening struct{ *net.TCPConn }

func (o opening) Stream() (Conn, error) {
	s, err := newSocket(o.TCPConn)
	if err != nil {
		return nil, err
	}
	return s, nil
}
