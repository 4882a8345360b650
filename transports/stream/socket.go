package stream

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// UserTimeout bounds how long sent bytes may stay unacknowledged before the
// kernel gives the connection up (TCP_USER_TIMEOUT, RFC 5482). Long enough for
// a peer that is stopped in a debugger for a moment.
const UserTimeout = 60 * time.Second

// socket is a connected TCP socket in non-blocking mode; [Conn] says what its methods do.
type socket struct {
	fd     int
	rv     [2]unix.Iovec // for Recv2; a field so that it does not escape per call
	msg    unix.Msghdr   // for Sendv
	remote string
	closed atomic.Bool
	calls  calls
	park   parking
}

// newSocket takes over an established connection: the descriptor is duplicated, c is
// closed, and Nagle is off. On error c is closed too.
func newSocket(c *net.TCPConn) (*socket, error) {
	defer c.Close()
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var dupErr error
	if err := raw.Control(func(p uintptr) {
		fd, dupErr = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, os.NewSyscallError("dup", dupErr)
	}
	s := &socket{fd: fd, remote: c.RemoteAddr().String()}
	// The duplicate shares the open file description, so O_NONBLOCK is set
	// already; setting it again guards against a caller's File().
	err = errors.Join(
		unix.SetNonblock(fd, true),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(UserTimeout/time.Millisecond)),
	)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("setsockopt", err)
	}
	s.enter()
	return s, nil
}

// FD is the descriptor, for tests that look behind the contract.
func (c *socket) FD() int { return c.fd }

func (c *socket) RemoteAddr() string { return c.remote }

func (c *socket) MSS() int {
	n, err := unix.GetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	if err != nil || n < 536 { // RFC 9293 §3.7.1: the default MSS
		return 536
	}
	return n
}

// Unsent is the number of bytes accepted by Send that the kernel has not put on
// the wire yet (SIOCOUTQNSD).
func (c *socket) Unsent() (int, error) { return c.queue(unix.SIOCOUTQNSD) }

// Unacked is what the kernel's send queue holds (SIOCOUTQ, tcp(7)).
func (c *socket) Unacked() (int, error) { return c.queue(unix.SIOCOUTQ) }

func (c *socket) queue(request uint) (int, error) {
	c.calls.queue.Add(1)
	return unix.IoctlGetInt(c.fd, request)
}

func (c *socket) Recv(b []byte) (int, error) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return c.received(n, e)
}

func (c *socket) Recv2(a, b []byte) (int, error) {
	c.rv[0] = unix.Iovec{Base: unsafe.SliceData(a), Len: uint64(len(a))}
	c.rv[1] = unix.Iovec{Base: unsafe.SliceData(b), Len: uint64(len(b))}
	n, _, e := syscall.RawSyscall(unix.SYS_READV, uintptr(c.fd), uintptr(unsafe.Pointer(&c.rv[0])), 2)
	return c.received(n, e)
}

func (c *socket) received(n uintptr, e syscall.Errno) (int, error) {
	if e != 0 {
		c.calls.received(0)
		return 0, failed(e)
	}
	c.calls.received(int(n))
	if n == 0 {
		return 0, io.EOF
	}
	return int(n), nil
}

// failed is the error of a transfer: a bare one, so that it allocates nothing.
func failed(e syscall.Errno) error {
	if e == unix.EAGAIN || e == unix.EINTR {
		return ErrAgain
	}
	return e
}

// The kernel shows nothing of what it keeps.
func (c *socket) Peek() ([]byte, error) { return nil, ErrAgain }
func (c *socket) Skip(int) bool         { return false }

func (c *socket) Send(b []byte) (int, error) {
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return c.sent(n, e)
}

func (c *socket) Sendv(v []unix.Iovec) (int, error) {
	c.msg.Iov = unsafe.SliceData(v)
	c.msg.Iovlen = uint64(len(v))
	n, _, e := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&c.msg)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	c.msg.Iov = nil
	return c.sent(n, e)
}

func (c *socket) sent(n uintptr, e syscall.Errno) (int, error) {
	if e != 0 {
		c.calls.sent(0)
		return 0, failed(e)
	}
	c.calls.sent(int(n))
	return int(n), nil
}

func (c *socket) CloseWrite() error {
	return os.NewSyscallError("shutdown", unix.Shutdown(c.fd, unix.SHUT_WR))
}

func (c *socket) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.leave()
	if c.park.file != nil {
		return c.park.close()
	}
	return os.NewSyscallError("close", unix.Close(c.fd))
}

func (c *socket) Abort() error {
	if !c.closed.Load() {
		unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	return c.Close()
}
