//go:build netstack

package netstack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/rdmaperf/rdmaperf/softstack/ready"
	"github.com/rdmaperf/rdmaperf/softstack/shm"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Stack makes connections over links of one kind.
type Stack struct{ cfg Config }

var _ stream.Stack = (*Stack)(nil)

// Open makes a stack. It holds nothing until it dials or listens. Error: what is wrong
// with cfg.
func Open(cfg Config) (*Stack, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Stack{cfg}, nil
}

// Name is netstack, and what departs from the default.
func (s *Stack) Name() string { return "stack=netstack," + s.cfg.Params() }

// InPlace is false: netstack's packets are its own.
func (s *Stack) InPlace() bool { return false }

// NewPoller makes a poller; both kinds are the same, as nothing here blocks a thread.
func (s *Stack) NewPoller() (stream.Poller, error) { return ready.New(alone{}), nil }

// NewParkingPoller is NewPoller.
func (s *Stack) NewParkingPoller() (stream.Poller, error) { return ready.New(alone{}), nil }

// alone: a connection here drives itself whenever it is looked at.
type alone struct{}

func (alone) Drive()      {}
func (alone) Settle()     {}
func (alone) WakeDriver() {}

// most is the memory that a link may have each way. Arbitrary.
const most = 128 << 20

// family is how two processes meet. The option is the MTU. From then on an octet either
// way on their socket is a bell.
var family = &shm.Family{
	Name: "netstack", Magic: "rdmpnets", MinFrames: MinRing, MaxFrames: MaxRing,
	Size: func(h shm.Hello) int { return 2 * ringSize(h.Frames, int(h.Option)) },
	Check: func(h shm.Hello) error {
		if h.Option < MinMTU || h.Option > MaxMTU || ringSize(h.Frames, int(h.Option)) > most {
			return fmt.Errorf("%d frames of %d octets", h.Frames, h.Option)
		}
		return nil
	},
}

const nic tcpip.NICID = 1

// sides are the addresses of the process that dialed and of the one that listens, which
// nobody else sees: private ones, of IPv4 and of IPv6 (RFC 4193).
var sides = [2][2]tcpip.ProtocolAddress{side(1), side(2)}

func side(n byte) [2]tcpip.ProtocolAddress {
	return [2]tcpip.ProtocolAddress{
		{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4([4]byte{10, 0, 0, n}), PrefixLen: 24}},
		{Protocol: ipv6.ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom16([16]byte{0: 0xfd, 15: n}), PrefixLen: 64}},
	}
}

// userTimeout is how long what was sent may go unacknowledged (RFC 5482), as over the
// other stacks.
const userTimeout = time.Minute

// newStack is netstack at one side of a link.
func newStack(l *link, side int) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	fail := func(e tcpip.Error) (*stack.Stack, error) {
		s.Destroy()
		return nil, errors.New(e.String())
	}
	if e := s.CreateNIC(nic, l); e != nil {
		return fail(e)
	}
	for _, a := range sides[side] {
		if e := s.AddProtocolAddress(nic, a, stack.AddressProperties{}); e != nil {
			return fail(e)
		}
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic}})
	sack := tcpip.TCPSACKEnabled(true)
	if e := s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); e != nil {
		return fail(e)
	}
	return s, nil
}

// connectWithin bounds a dial whose context has no deadline, and how long a process that
// was let in may take to connect. Arbitrary.
const connectWithin = 10 * time.Second

// Dial connects to the process that listens at addr.
func (s *Stack) Dial(ctx context.Context, addr string, b stream.Buffers) (stream.Opening, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	host, port, n, err := shm.Target(addr)
	if err != nil {
		return nil, err
	}
	if ringSize(s.cfg.Ring, s.cfg.MTU) > most {
		return nil, fmt.Errorf("ring=%d,mtu=%d: at most %d MiB a direction", s.cfg.Ring, s.cfg.MTU, most>>20)
	}
	sock, mem, err := family.Knock(ctx, port, shm.Hello{Frames: s.cfg.Ring, Option: uint32(s.cfg.MTU)})
	if err != nil {
		return nil, err
	}
	l := newLink(&s.cfg, sock, mem, s.cfg.Ring, s.cfg.MTU, 0)
	ns, err := newStack(l, 0)
	if err != nil {
		l.end()
		return nil, err
	}
	c := newConn(l, ns)
	to := sides[1][0]
	if shm.Six(host) {
		to = sides[1][1]
	}
	c.peerIs(to.AddressWithPrefix.Address, n)
	e, q := tcpip.Endpoint(nil), &waiter.Queue{}
	e, terr := ns.NewEndpoint(tcp.ProtocolNumber, to.Protocol, q)
	if terr != nil {
		c.drop()
		return nil, errors.New(terr.String())
	}
	c.attach(e, q, b)
	l.start()
	terr = e.Connect(tcpip.FullAddress{NIC: nic, Addr: to.AddressWithPrefix.Address, Port: n})
	if _, started := terr.(*tcpip.ErrConnectStarted); terr != nil && !started {
		c.Abort()
		return nil, os.NewSyscallError("connect", errnoOf(terr))
	}
	for e.State() != uint32(tcp.StateEstablished) {
		if terr := e.LastError(); terr != nil {
			c.Abort()
			return nil, os.NewSyscallError("connect", errnoOf(terr))
		}
		if l.gone.Load() {
			c.Abort()
			return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
		}
		if err := ctx.Err(); err != nil {
			c.Abort()
			return nil, err
		}
		c.Await(stream.Writable, 20)
	}
	return ready.NewOpening(c, c.nudge), nil
}

// Listen takes connections of processes on this machine, whatever host they name.
func (s *Stack) Listen(_ context.Context, addr string, b stream.Buffers) (stream.Listener, error) {
	host, port, n, err := shm.Target(addr)
	if err != nil {
		return nil, err
	}
	for range 64 { // arbitrary: a free port is found at once
		if n != 0 {
			return s.listen(host, port, n, b)
		}
		free := 1024 + rand.N(uint16(64000)) // nobody else's: not the kernel's ports
		l, err := s.listen(host, strconv.Itoa(int(free)), free, b)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	return nil, syscall.EADDRINUSE
}

func (s *Stack) listen(host, port string, n uint16, b stream.Buffers) (stream.Listener, error) {
	door, err := family.Listen(port)
	if err != nil {
		return nil, err
	}
	l := &listener{s: s, door: door, port: n, buf: b, addr: net.JoinHostPort(host, port), queue: make(chan *conn, listenQueue), done: make(chan struct{})}
	door.Serve(l.admit)
	return l, nil
}

// listenQueue bounds connections that wait for Accept. Arbitrary.
const listenQueue = 128

type listener struct {
	s     *Stack
	door  *shm.Listener
	port  uint16
	buf   stream.Buffers
	addr  string
	queue chan *conn
	done  chan struct{}
	once  sync.Once
}

// admit waits for the connection of a process that was let in.
func (l *listener) admit(sock *net.UnixConn, mem []byte, h shm.Hello) {
	k := newLink(&l.s.cfg, sock, mem, h.Frames, int(h.Option), 1)
	ns, err := newStack(k, 1)
	if err != nil {
		k.end()
		return
	}
	c := newConn(k, ns)
	q := &waiter.Queue{}
	e, terr := ns.NewEndpoint(tcp.ProtocolNumber, ipv6.ProtocolNumber, q) // it takes IPv4 too
	if terr == nil {
		defer e.Close()
		if terr = e.Bind(tcpip.FullAddress{NIC: nic, Port: l.port}); terr == nil {
			terr = e.Listen(1)
		}
	}
	if terr != nil {
		c.drop()
		return
	}
	entry, came := waiter.NewChannelEntry(waiter.EventIn)
	q.EventRegister(&entry)
	defer q.EventUnregister(&entry)
	k.start()
	late := time.NewTimer(connectWithin)
	defer late.Stop()
	for {
		var from tcpip.FullAddress
		ce, cq, terr := e.Accept(&from)
		if terr == nil {
			c.peerIs(from.Addr, from.Port)
			c.attach(ce, cq, l.buf)
			break
		}
		if _, again := terr.(*tcpip.ErrWouldBlock); !again || k.gone.Load() {
			c.drop()
			return
		}
		select {
		case <-came:
		case <-l.done:
			c.drop()
			return
		case <-late.C:
			c.drop()
			return
		}
	}
	select {
	case <-l.done:
		c.Abort()
	case l.queue <- c:
	default:
		c.Abort()
	}
}

func (l *listener) Accept() (stream.Opening, error) {
	select {
	case c := <-l.queue:
		return ready.NewOpening(c, c.nudge), nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Addr() string { return l.addr }

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.door.Close()
		for {
			select {
			case c := <-l.queue:
				c.Abort()
				continue
			default:
			}
			break
		}
	})
	return nil
}

// errnoOf is what the kernel would say.
func errnoOf(e tcpip.Error) syscall.Errno {
	switch e.(type) {
	case *tcpip.ErrConnectionReset:
		return unix.ECONNRESET
	case *tcpip.ErrConnectionRefused:
		return unix.ECONNREFUSED
	case *tcpip.ErrTimeout:
		return unix.ETIMEDOUT
	case *tcpip.ErrClosedForSend:
		return unix.EPIPE
	case *tcpip.ErrNotConnected:
		return unix.ENOTCONN
	case *tcpip.ErrNoBufferSpace:
		return unix.ENOBUFS
	case *tcpip.ErrHostUnreachable, *tcpip.ErrNetworkUnreachable:
		return unix.EHOSTUNREACH
	}
	return unix.ECONNABORTED
}
