package stream

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrAgain: nothing can be moved right now (EAGAIN). A bare value, so that an
// empty poll allocates nothing.
var ErrAgain = errors.New("would block")

// MaxVec is the most pieces one Sendv takes (half of IOV_MAX, arbitrary).
const MaxVec = 512

// UserTimeout bounds how long sent bytes may stay unacknowledged before the
// kernel gives the connection up (TCP_USER_TIMEOUT, RFC 5482). Long enough for
// a peer that is stopped in a debugger for a moment; arbitrary.
const UserTimeout = 60 * time.Second

// Conn is a connected TCP socket in non-blocking mode.
type Conn struct {
	fd     int
	rv     [2]unix.Iovec // for Recv2; a field so that it does not escape per call
	msg    unix.Msghdr   // for Sendv
	remote string
	closed bool
}

// New takes over an established connection: the descriptor is duplicated, c is
// closed, and Nagle is off. On error c is closed too.
func New(c *net.TCPConn) (*Conn, error) {
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
	s := &Conn{fd: fd, remote: c.RemoteAddr().String()}
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
	return s, nil
}

// FD is the descriptor, for Poller.
func (c *Conn) FD() int { return c.fd }

// RemoteAddr is "host:port" of the peer.
func (c *Conn) RemoteAddr() string { return c.remote }

// MSS is the effective maximum segment size in bytes (EMSS of RFC 5044 §4.5).
func (c *Conn) MSS() int {
	n, err := unix.GetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	if err != nil || n < 536 { // RFC 9293 §3.7.1: the default MSS
		return 536
	}
	return n
}

// Unsent is the number of bytes accepted by Send that the kernel has not put on
// the wire yet (SIOCOUTQNSD).
func (c *Conn) Unsent() (int, error) { return unix.IoctlGetInt(c.fd, unix.SIOCOUTQNSD) }

// SetBuffers sets SO_SNDBUF and SO_RCVBUF in bytes; 0 leaves autotuning on.
func (c *Conn) SetBuffers(snd, rcv int) error {
	var err error
	if snd > 0 {
		err = errors.Join(err, unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, snd))
	}
	if rcv > 0 {
		err = errors.Join(err, unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, rcv))
	}
	return err
}

// Recv reads up to len(b) bytes: ErrAgain when there are none yet, io.EOF after
// the peer's FIN, a syscall.Errno when the connection is lost. b must not be empty.
func (c *Conn) Recv(b []byte) (int, error) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return received(n, e)
}

// Recv2 reads into a and then into b with one system call; results as Recv.
func (c *Conn) Recv2(a, b []byte) (int, error) {
	c.rv[0] = unix.Iovec{Base: unsafe.SliceData(a), Len: uint64(len(a))}
	c.rv[1] = unix.Iovec{Base: unsafe.SliceData(b), Len: uint64(len(b))}
	n, _, e := syscall.RawSyscall(unix.SYS_READV, uintptr(c.fd), uintptr(unsafe.Pointer(&c.rv[0])), 2)
	return received(n, e)
}

func received(n uintptr, e syscall.Errno) (int, error) {
	if e == 0 {
		if n == 0 {
			return 0, io.EOF
		}
		return int(n), nil
	}
	if e == unix.EAGAIN || e == unix.EINTR {
		return 0, ErrAgain
	}
	return 0, e
}

// Send writes up to len(b) bytes: ErrAgain when the socket buffer is full.
func (c *Conn) Send(b []byte) (int, error) {
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return sent(n, e)
}

// Sendv writes the pieces of v in order (at most MaxVec) and returns the bytes
// taken, which may end inside a piece.
func (c *Conn) Sendv(v []unix.Iovec) (int, error) {
	c.msg.Iov = unsafe.SliceData(v)
	c.msg.Iovlen = uint64(len(v))
	n, _, e := syscall.RawSyscall(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&c.msg)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	c.msg.Iov = nil
	return sent(n, e)
}

func sent(n uintptr, e syscall.Errno) (int, error) {
	if e == 0 {
		return int(n), nil
	}
	if e == unix.EAGAIN || e == unix.EINTR {
		return 0, ErrAgain
	}
	return 0, e
}

// CloseWrite sends FIN after what was sent before.
func (c *Conn) CloseWrite() error {
	return os.NewSyscallError("shutdown", unix.Shutdown(c.fd, unix.SHUT_WR))
}

// Close frees the descriptor. Unread bytes make the kernel send RST; callers
// that owe the peer a last message drain first. Idempotent.
func (c *Conn) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	return os.NewSyscallError("close", unix.Close(c.fd))
}

// Abort closes the socket with RST, dropping what was not sent: what the peer of
// a host that died and came back sees. Idempotent, as Close.
func (c *Conn) Abort() error {
	if !c.closed {
		unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	return c.Close()
}
