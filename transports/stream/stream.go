package stream

import (
	"context"
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// ErrAgain: nothing can be moved right now (EAGAIN). A bare value, so that an
// empty poll allocates nothing.
var ErrAgain = errors.New("would block")

// MaxVec is the most pieces one Sendv takes (half of IOV_MAX, arbitrary).
const MaxVec = 512

// Buffers are what a connection may hold in bytes, each way; 0 leaves it to the stack.
type Buffers struct {
	Send, Recv int
	// LocalSend and LocalRecv are those of a connection over the loopback device that are left
	// to the stack: there is no delay to fill, and what is on its way stays in the caches. Of
	// kernel sockets only; 0 leaves these to the stack, too.
	LocalSend, LocalRecv int
}

// Stack is a TCP/IP stack: the kernel's, or one in user space.
type Stack interface {
	// Name is the stack as parameters of the layer above it, such as
	// stack=raw,link=shm; empty for the one that is meant where none is named.
	Name() string
	// InPlace tells that Peek shows received octets where the stack keeps them, and that
	// one Send or Sendv of at most MSS bytes makes one segment while the window is open.
	InPlace() bool
	// Dial connects to "host:port". ctx bounds it.
	Dial(ctx context.Context, addr string, b Buffers) (Opening, error)
	// Listen takes connections at "host:port"; port 0 chooses one.
	Listen(ctx context.Context, addr string, b Buffers) (Listener, error)
	NewPoller() (Poller, error)
}

// Listener takes connections of one address.
type Listener interface {
	// Accept blocks until a peer has connected, or Close (net.ErrClosed).
	Accept() (Opening, error)
	// Addr is "host:port" with the real port.
	Addr() string
	Close() error
}

// Opening is a connection in its start-up, where an exchange of a few octets may
// block under a deadline, as on any net.Conn. It reads no further than asked.
type Opening interface {
	net.Conn
	// CloseWrite sends FIN after what was written before.
	CloseWrite() error
	// Stream ends the start-up: the connection goes on as a Conn, and this value is
	// used up, also on error, which closes the connection.
	Stream() (Conn, error)
}

// Conn is a connected byte stream. Nothing in it blocks but Await.
type Conn interface {
	// Recv reads up to len(b) bytes: ErrAgain when there are none yet, io.EOF after
	// the peer's FIN, a syscall.Errno when the connection is lost. b must not be empty.
	Recv(b []byte) (int, error)
	// Recv2 reads into a and then into b with one call; results as Recv.
	Recv2(a, b []byte) (int, error)
	// Peek shows the oldest octets that are here, at least one, where the stack keeps
	// them; errors as Recv. They stay there until Skip. Of a stack that is not InPlace
	// it always answers ErrAgain.
	Peek() ([]byte, error)
	// Skip consumes n octets of what Peek showed last, at most all of it, and reports whether
	// more is known to be here: if not, the next Peek looks at the link.
	Skip(n int) (more bool)
	// Send takes up to len(b) bytes: ErrAgain when there is no room.
	Send(b []byte) (int, error)
	// Sendv takes the pieces of v in order (at most MaxVec) and returns the bytes
	// taken, which may end inside a piece.
	Sendv(v []unix.Iovec) (int, error)
	// MSS is the effective maximum segment size in bytes (EMSS of RFC 5044 §4.5).
	MSS() int
	// Unsent is the number of bytes taken that were not put on the wire yet.
	Unsent() (int, error)
	// Unacked is the number of bytes, of all that Send and Sendv took, that the peer's
	// stack has not acknowledged. Not every stack counts for nothing: it may cost a call.
	Unacked() (int, error)
	// Await blocks until the connection is ready for any of bits, or ms milliseconds
	// have passed. It may return early.
	Await(bits uint32, ms int)
	// Parks prepares for Park; false where the stack or the runtime cannot.
	Parks() bool
	// Park parks its goroutine in the runtime. It calls look at once, and again behind each change of what there is to
	// read, until look returns true; look must have read until ErrAgain where it returns false. Unpark and the
	// end of the connection make Park return, too; nil for all of these. One goroutine at a time may park.
	Park(look func() bool) error
	// Unpark makes a Park in progress, or the next one, return. Parks was called before.
	Unpark()
	// RemoteAddr is "host:port" of the peer.
	RemoteAddr() string
	// CloseWrite sends FIN after what was sent before.
	CloseWrite() error
	// Close frees the connection. Unread bytes may make the stack send RST; callers
	// that have a last message to send to the peer drain first. Idempotent.
	Close() error
	// Abort closes with RST, dropping what was not sent: what the peer of a host that
	// died and came back sees. Idempotent, as Close.
	Abort() error
}

// Readiness bits for Poller, with the values of epoll_ctl(2).
const (
	Readable uint32 = unix.EPOLLIN
	Writable uint32 = unix.EPOLLOUT
	OneShot  uint32 = unix.EPOLLONESHOT
	// Failed is reported, unasked, of a connection that is lost.
	Failed uint32 = unix.EPOLLERR | unix.EPOLLHUP
)

// Event is one ready connection, named by the tag given to Add.
type Event struct {
	Tag  uint64
	Bits uint32
}

// Poller reports which of many connections of its stack are ready, by state and
// not by change, with a wake-up. Add, Modify, Remove, Ready and Wake may be called
// from any goroutine; Wait from one at a time.
type Poller interface {
	// Add watches c for bits under tag (any value but the highest).
	Add(c Conn, tag uint64, bits uint32) error
	// Modify changes the bits, or arms a OneShot connection again.
	Modify(c Conn, tag uint64, bits uint32) error
	// Remove ends watching c.
	Remove(c Conn) error
	// Wait blocks until something is ready, Wake is called, or ms milliseconds have
	// passed (-1: no limit, 0: no wait), and fills dst. Wake-ups are not reported.
	// park says how: in the runtime, or as a thread in the kernel; a stack in user space may not tell the two apart.
	Wait(dst []Event, ms int, park bool) (int, error)
	// Ready is Wait without waiting, from any goroutine: what is ready now, at most 16.
	// A wake-up stays for Wait. An instance that is closed has nothing.
	Ready(dst []Event) int
	// Wake makes a Wait in progress, or the next one, return. After Close it does
	// nothing: who wakes on behalf of a context cannot know that the waiter left.
	Wake()
	// Close frees the instance. No Wait may be in progress.
	Close() error
}
