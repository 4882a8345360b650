//go:build netstack

package netstack

import (
	"io"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/rdmaperf/rdmaperf/softstack/ready"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

const (
	// offerLooks is how many looks in a row find nothing before a thread offers its CPU to
	// netstack's. Arbitrary: their work is what it waits for.
	offerLooks = 2
	// lingerWithin is how long a link waits for the peer to acknowledge the end, and
	// lingerLook how often it looks.
	lingerWithin = 5 * time.Second
	lingerLook   = 2 * time.Millisecond
	// headers are what TCP over IPv4 takes of a packet with timestamps (RFC 7323 §3.2), and
	// longer is by how much more IPv6 does.
	headers = 20 + 20 + 12
	longer  = 20
)

// conn is one connection, and all that its link carries.
type conn struct {
	l      *link
	ns     *stack.Stack
	ep     tcpip.Endpoint // nil before attach
	wq     *waiter.Queue
	entry  waiter.Entry
	remote string
	six    bool // IPv6 carries it

	recv  into // of Recv: one goroutine receives at a time, and one sends
	send  from
	taken atomic.Uint64
	idle  int

	mu      sync.Mutex
	pollers []*ready.Poller
	wake    chan struct{}
	closed  atomic.Bool
}

func newConn(l *link, ns *stack.Stack) *conn {
	c := &conn{l: l, ns: ns, wake: make(chan struct{}, 1)}
	l.moved = c.notify
	return c
}

// peerIs says who is at the other end: a process of this machine, by the version of IP that
// its address inside the link is of.
func (c *conn) peerIs(addr tcpip.Address, port uint16) {
	host := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if addr.To4().Len() != 4 { // an address of IPv4 may come mapped into one of IPv6
		host, c.six = netip.IPv6Loopback(), true
	}
	c.remote = netip.AddrPortFrom(host, port).String()
}

// attach gives it its endpoint.
func (c *conn) attach(e tcpip.Endpoint, q *waiter.Queue, b stream.Buffers) {
	c.ep, c.wq = e, q
	c.entry = waiter.NewFunctionEntry(waiter.EventIn|waiter.EventOut|waiter.EventHUp|waiter.EventErr|waiter.EventRdHUp, func(waiter.EventMask) { c.notify() })
	q.EventRegister(&c.entry)
	o := e.SocketOptions()
	o.SetDelayOption(false) // no Nagle
	if b.Send > 0 {
		o.SetSendBufferSize(int64(b.Send), true)
	}
	if b.Recv > 0 {
		o.SetReceiveBufferSize(int64(b.Recv), true)
	}
	t := tcpip.TCPUserTimeoutOption(userTimeout)
	e.SetSockOpt(&t)
}

// into is where Recv writes: two pieces of memory in a row.
type into struct{ a, b []byte }

func (w *into) Write(p []byte) (n int, err error) {
	n = copy(w.a, p)
	w.a = w.a[n:]
	if k := copy(w.b, p[n:]); k > 0 {
		w.b = w.b[k:]
		n += k
	}
	if n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// from is what Send and Sendv read.
type from struct {
	one    []byte
	v      []unix.Iovec
	n      int
	copied int
}

func (r *from) Len() int { return r.n }

func (r *from) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(r.one) == 0 {
			if len(r.v) == 0 {
				break
			}
			r.one = unsafe.Slice(r.v[0].Base, r.v[0].Len)
			r.v = r.v[1:]
			continue
		}
		k := copy(b[n:], r.one)
		r.one = r.one[k:]
		n += k
	}
	r.copied += n
	if r.n -= n; n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *conn) Recv(b []byte) (int, error) { return c.Recv2(b, nil) }

func (c *conn) Recv2(a, b []byte) (int, error) {
	if c.closed.Load() {
		return 0, syscall.EBADF
	}
	gone := c.l.gone.Load() // before the last look
	c.l.look()
	c.recv = into{a, b}
	r, err := c.ep.Read(&c.recv, tcpip.ReadOptions{})
	c.recv = into{}
	if r.Count > 0 || err == nil {
		c.idle = 0
		return r.Count, nil
	}
	switch err.(type) {
	case *tcpip.ErrWouldBlock:
		if gone {
			return 0, unix.ECONNRESET
		}
		c.await()
		return 0, stream.ErrAgain
	case *tcpip.ErrClosedForReceive:
		return 0, io.EOF
	}
	return 0, errnoOf(err)
}

// await is what a thread does that finds nothing.
func (c *conn) await() {
	if c.idle++; c.idle%offerLooks == 0 {
		yields.Add(1)
		syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// Peek shows nothing: the stack is not InPlace.
func (c *conn) Peek() ([]byte, error) { return nil, stream.ErrAgain }

// Skip is never called.
func (c *conn) Skip(int) bool { return false }

func (c *conn) Send(b []byte) (int, error) {
	c.send = from{one: b, n: len(b)}
	return c.write()
}

func (c *conn) Sendv(v []unix.Iovec) (int, error) {
	c.send = from{v: v}
	for i := range v {
		c.send.n += int(v[i].Len)
	}
	return c.write()
}

func (c *conn) write() (int, error) {
	defer func() { c.send = from{} }()
	if c.closed.Load() {
		return 0, syscall.EBADF
	}
	if c.l.gone.Load() {
		return 0, unix.ECONNRESET
	}
	n, err := c.ep.Write(&c.send, tcpip.WriteOptions{})
	c.l.copied.Add(uint64(c.send.copied))
	if n > 0 || err == nil {
		c.taken.Add(uint64(n))
		return int(n), nil
	}
	if _, again := err.(*tcpip.ErrWouldBlock); again {
		c.l.look() // acknowledgements make room
		c.await()
		return 0, stream.ErrAgain
	}
	return 0, errnoOf(err)
}

func (c *conn) MSS() int {
	if c.six {
		return c.l.mtu - headers - longer
	}
	return c.l.mtu - headers
}

func (c *conn) Unsent() (int, error) {
	return int(c.taken.Load() - min(c.l.flow.sent.Load(), c.taken.Load())), nil
}

func (c *conn) Unacked() (int, error) {
	c.l.look()
	acked := c.l.flow.acked.Load() // first: more may be taken meanwhile
	return int(c.taken.Load() - min(acked, c.taken.Load())), nil
}

func (c *conn) RemoteAddr() string { return c.remote }

// Bits is what the connection is ready for.
func (c *conn) Bits() (b uint32) {
	if c.closed.Load() {
		return 0
	}
	gone := c.l.gone.Load()
	c.l.look()
	m := c.ep.Readiness(waiter.EventIn | waiter.EventOut | waiter.EventHUp | waiter.EventErr | waiter.EventRdHUp)
	if m&(waiter.EventIn|waiter.EventRdHUp|waiter.EventHUp|waiter.EventErr) != 0 {
		b |= stream.Readable
	}
	if m&waiter.EventOut != 0 {
		b |= stream.Writable
	}
	if s := c.ep.State(); gone || s == uint32(tcp.StateError) {
		b |= stream.Readable | stream.Writable | stream.Failed
	}
	return b
}

// Watched needs no count: netstack tells of everything.
func (c *conn) Watched(int32) {}

// Join has p poked when the connection moves.
func (c *conn) Join(p *ready.Poller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollers = append(c.pollers, p)
}

// Part ends that.
func (c *conn) Part(p *ready.Poller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.pollers, p); i >= 0 {
		c.pollers = slices.Delete(c.pollers, i, i+1)
	}
}

// nudge wakes a sleeper in Await.
func (c *conn) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *conn) notify() {
	c.nudge()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pollers {
		p.Poke()
	}
}

// Await sleeps; the link's goroutine looks meanwhile.
func (c *conn) Await(bits uint32, ms int) {
	if c.closed.Load() || c.Bits()&(bits|stream.Failed) != 0 || ms <= 0 {
		return
	}
	c.l.ring()
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-c.wake:
	case <-t.C:
	}
}

func (c *conn) CloseWrite() error {
	if c.closed.Load() {
		return nil
	}
	if e := c.ep.Shutdown(tcpip.ShutdownWrite); e != nil {
		return errnoOf(e)
	}
	return nil
}

func (c *conn) Close() error { return c.finish(false) }

func (c *conn) Abort() error { return c.finish(true) }

func (c *conn) finish(abort bool) error {
	if c.closed.Swap(true) {
		return nil
	}
	c.mu.Lock()
	pollers := slices.Clone(c.pollers)
	c.mu.Unlock()
	for _, p := range pollers {
		p.Remove(c)
	}
	c.nudge()
	if abort {
		c.ep.Abort()
		c.drop()
		return nil
	}
	c.ep.Close()
	ending.Add(1)
	go c.linger()
	return nil
}

// ending counts links whose peer has not acknowledged the end.
var ending sync.WaitGroup

// linger keeps netstack until the peer has everything, or is gone.
func (c *conn) linger() {
	defer ending.Done()
	t := time.NewTicker(lingerLook)
	defer t.Stop()
	for stop := time.Now().Add(lingerWithin); !c.l.gone.Load() && time.Now().Before(stop); <-t.C {
		c.l.drive()
		switch tcp.EndpointState(c.ep.State()) {
		case tcp.StateFinWait2, tcp.StateTimeWait, tcp.StateClose, tcp.StateError:
			c.drop()
			return
		}
	}
	c.drop()
}

// drop ends netstack and the link.
func (c *conn) drop() {
	c.ns.Destroy()
	c.l.end()
}
