package impair

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// gate stops an end as SIGSTOP stops its process, while the kernel goes on acknowledging.
type gate struct {
	mu     sync.RWMutex // held for writing while the end is stopped
	giveUp time.Duration
}

// Stop stops an end, which has to go on before it is stopped again.
func (p *Path) Stop(end int) { p.gates[end].mu.Lock() }

// Continue ends a Stop.
func (p *Path) Continue(end int) { p.gates[end].mu.Unlock() }

// Set changes what becomes of packets from now on; the seed stays.
func (p *Path) Set(c Config) {
	for _, w := range p.ways {
		w.set(c)
	}
}

// Stack is the kernel's TCP/IP at an end of the path, and must end before that. Octets unacknowledged for giveUp end
// their connection (TCP_USER_TIMEOUT, RFC 5482).
func (p *Path) Stack(end int, giveUp time.Duration) stream.Stack {
	p.gates[end].giveUp = giveUp
	return endStack{Stack: stream.Kernel, p: p, end: end}
}

type endStack struct {
	stream.Stack
	p   *Path
	end int
}

// done is closed: the thread in the namespace need not outlive the call.
var done = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (s endStack) Dial(ctx context.Context, addr string, b stream.Buffers) (o stream.Opening, err error) {
	err = s.p.In(s.end, done, func() error {
		in, e := s.Stack.Dial(ctx, addr, b)
		if e == nil {
			o = endOpening{in, &s.p.gates[s.end]}
		}
		return e
	})
	return o, err
}

func (s endStack) Listen(ctx context.Context, addr string, b stream.Buffers) (l stream.Listener, err error) {
	err = s.p.In(s.end, done, func() error {
		in, e := s.Stack.Listen(ctx, addr, b)
		if e == nil {
			l = endListener{in, &s.p.gates[s.end]}
		}
		return e
	})
	return l, err
}

func (s endStack) NewPoller() (stream.Poller, error) {
	p, err := s.Stack.NewPoller()
	if err != nil {
		return nil, err
	}
	return endPoller{p}, nil
}

type endListener struct {
	stream.Listener
	g *gate
}

func (l endListener) Accept() (stream.Opening, error) {
	o, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return endOpening{o, l.g}, nil
}

type endOpening struct {
	stream.Opening
	g *gate
}

func (o endOpening) Stream() (stream.Conn, error) {
	c, err := o.Opening.Stream()
	if err != nil {
		return nil, err
	}
	if s, ok := c.(interface{ FD() int }); ok && o.g.giveUp > 0 {
		if err := unix.SetsockoptInt(s.FD(), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT,
			int(o.g.giveUp.Milliseconds())); err != nil {
			c.Close()
			return nil, err
		}
	}
	return &endConn{c, o.g}, nil
}

// endConn waits at the gate before it moves octets.
type endConn struct {
	stream.Conn
	g *gate
}

func (c *endConn) pass() func() {
	c.g.mu.RLock()
	return c.g.mu.RUnlock
}

func (c *endConn) Recv(b []byte) (int, error) {
	defer c.pass()()
	return c.Conn.Recv(b)
}

func (c *endConn) Recv2(a, b []byte) (int, error) {
	defer c.pass()()
	return c.Conn.Recv2(a, b)
}

func (c *endConn) Send(b []byte) (int, error) {
	defer c.pass()()
	return c.Conn.Send(b)
}

func (c *endConn) Sendv(v []unix.Iovec) (int, error) {
	defer c.pass()()
	return c.Conn.Sendv(v)
}

type endPoller struct{ stream.Poller }

func (p endPoller) Add(c stream.Conn, tag uint64, bits uint32) error {
	return p.Poller.Add(c.(*endConn).Conn, tag, bits)
}

func (p endPoller) Modify(c stream.Conn, tag uint64, bits uint32) error {
	return p.Poller.Modify(c.(*endConn).Conn, tag, bits)
}

func (p endPoller) Remove(c stream.Conn) error { return p.Poller.Remove(c.(*endConn).Conn) }
