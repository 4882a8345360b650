//go:build lwip && cgo

package lwip

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// between makes two network namespaces with a veth pair, and calls f in each. It skips without root.
func between(t *testing.T, f func(side int, addr string)) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces and AF_XDP need root")
	}
	runtime.LockOSThread() // not unlocked where the namespace could not be restored
	home := must(netns.Get())(t)
	defer home.Close()
	one := must(netns.New())(t)
	two := must(netns.New())(t)
	t.Cleanup(func() { one.Close(); two.Close() })
	noError(t, netns.Set(one))
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "side0"}, PeerName: "side1",
		PeerNamespace: netlink.NsFd(two)}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Skipf("no veth: %v", err)
	}
	for i, ns := range []netns.NsHandle{one, two} {
		noError(t, netns.Set(ns))
		l := must(netlink.LinkByName([]string{"side0", "side1"}[i]))(t)
		addr := must(netlink.ParseAddr([]string{"192.0.2.1/24", "192.0.2.2/24"}[i]))(t)
		noError(t, errors.Join(netlink.AddrAdd(l, addr), netlink.LinkSetUp(l)))
	}
	for i, ns := range []netns.NsHandle{one, two} {
		noError(t, netns.Set(ns))
		f(i, []string{"192.0.2.1", "192.0.2.2"}[i])
	}
	noError(t, netns.Set(home))
	runtime.UnlockOSThread()
}

// toKernel is a connection from kernel sockets to a stack of an interface.
func toKernel(t *testing.T, cfg Config) (s *Stack, near stream.Conn, far net.Conn) {
	t.Helper()
	var l stream.Listener
	between(t, func(side int, addr string) {
		if side == 0 {
			cfg.Link, cfg.Iface = LinkXDP, "side0"
			s = openStack(t, cfg)
			l = listenOn(t, s, addr)
			return
		}
		far = must(net.DialTimeout("tcp", l.Addr(), 20*time.Second))(t)
	})
	near = must(must(l.Accept())(t).Stream())(t)
	t.Cleanup(func() {
		near.Close()
		far.Close()
		l.Close()
		CloseInterfaces()
	})
	return s, near, far
}

// listenOn listens at an address, and skips where the kernel has no AF_XDP.
func listenOn(t *testing.T, s *Stack, addr string) stream.Listener {
	t.Helper()
	l, err := s.Listen(t.Context(), addr+":0", stream.Buffers{})
	if errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestStreamsGoThroughInterfaces: exact octets over AF_XDP, beside the host's own traffic.
func TestStreamsGoThroughInterfaces(t *testing.T) {
	for name, cfg := range map[string]Config{
		"one copy":      {Link: LinkXDP},
		"two copies":    {Link: LinkXDP, TwoCopies: true},
		"packet thread": {Link: LinkXDP, Threads: C1},
		"one in 1000":   {Link: LinkXDP, Loss: 0.001, Seed: 7},
	} {
		t.Run(name, func(t *testing.T) {
			var stacks [2]*Stack
			var kernel net.Listener
			between(t, func(side int, addr string) {
				c := cfg
				c.Iface = []string{"side0", "side1"}[side]
				stacks[side] = openStack(t, c)
				if _, _, err := stacks[side].through(addr); err != nil {
					var e *XDPError
					if errors.As(err, &e) && errors.Is(err, syscall.EOPNOTSUPP) {
						t.Skip(err)
					}
					t.Fatal(err)
				}
				if side == 0 {
					kernel = must(net.Listen("tcp", addr+":0"))(t)
				} else { // the host keeps its own traffic, through the same interface
					must(net.DialTimeout("tcp", kernel.Addr().String(), 5*time.Second))(t).Close()
					kernel.Close()
				}
			})
			defer CloseInterfaces()
			l := must(stacks[0].Listen(t.Context(), "192.0.2.1:0", stream.Buffers{}))(t)
			defer l.Close()
			a, b := connect(t, stacks[1], l)
			defer a.Close()
			defer b.Close()
			if ap := netip.MustParseAddrPort(b.RemoteAddr()); ap.Addr() != netip.MustParseAddr("192.0.2.2") {
				t.Errorf("the peer is %v", ap)
			}
			msg := random(9, 1<<20)
			if got := carry(t, a, b, msg, 60*time.Second); !bytes.Equal(got, msg) {
				t.Fatal("not what was sent")
			}
			if n := stacks[0].Counts(); n.RxFrames == 0 || (n.RxCopied >= uint64(len(msg))) != cfg.TwoCopies {
				t.Errorf("%+v", n)
			}
			b.Abort()
			buf := make([]byte, 16)
			if _, err := soon(t, func() (int, error) { return a.Recv(buf) }); err != syscall.ECONNRESET {
				t.Errorf("after RST: %v", err)
			}
			if _, err := stacks[1].Dial(t.Context(), "192.0.2.1:9", stream.Buffers{}); !errors.Is(err,
				syscall.ECONNREFUSED) && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Logf("a port of nobody: %v", err)
			}
		})
	}
}

// TestTimersSendWithoutHelp: the kernel is told of what lwIP's own thread sends again, though nothing arrives and the
// stack's driver stays away.
func TestTimersSendWithoutHelp(t *testing.T) {
	s, near, far := toKernel(t, Config{Loss: 0.02, Seed: 3})
	links := stack.links
	before, buf := s.Counts().Lost, make([]byte, 64)
	sent := 0
	for ; s.Counts().Lost == before; sent += len(buf) {
		if sent == 500*len(buf) {
			t.Fatal("the link loses nothing")
		}
		if n, err := near.Send(buf); n != len(buf) || err != nil {
			t.Fatal(n, err)
		}
	}
	there := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(far, make([]byte, sent))
		there <- err
	}()
	for start := time.Now(); time.Since(start) < 20*time.Second; {
		near.Recv(buf)
		if n := links[0].untold(); n != 0 {
			t.Fatalf("after %v %d frames wait in the ring", time.Since(start), n)
		}
		select {
		case err := <-there:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
	t.Fatal("what was lost is not sent again within 20 s")
}

// TestAKernelIsTheOtherEnd: a peer on kernel sockets, whose segments have no checksums on a veth.
func TestAKernelIsTheOtherEnd(t *testing.T) {
	_, near, far := toKernel(t, Config{})
	msg := random(10, 300_000)
	far.SetDeadline(time.Now().Add(30 * time.Second))
	there := make(chan error, 1)
	go func() {
		_, err := far.Write(msg)
		there <- err
	}()
	got, buf := []byte(nil), make([]byte, 8192)
	for len(got) < len(msg) {
		n, err := soon(t, func() (int, error) { return near.Recv(buf) })
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, buf[:n]...)
	}
	if err := <-there; err != nil || !bytes.Equal(got, msg) {
		t.Fatalf("from the kernel: %d bytes, %v", len(got), err)
	}
	go func() {
		_, err := io.ReadFull(far, got)
		there <- err
	}()
	for sent := 0; sent < len(msg); {
		n, err := soon(t, func() (int, error) { return near.Send(msg[sent:]) })
		if err != nil {
			t.Fatal(err)
		}
		sent += n
	}
	for done := false; !done; {
		select {
		case err := <-there:
			if err != nil || !bytes.Equal(got, msg) {
				t.Errorf("to the kernel: %v", err)
			}
			done = true
		default:
			near.Recv(buf) // it drives
		}
	}
}

// TestAPortIsUsedAgainAtOnce: a peer may dial from the port of a connection just ended (RFC 9293 §3.6.1).
func TestAPortIsUsedAgainAtOnce(t *testing.T) {
	var l stream.Listener
	between(t, func(side int, addr string) {
		if side == 0 {
			l = listenOn(t, openStack(t, Config{Link: LinkXDP, Iface: "side0"}), addr)
			return
		}
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr), Port: 40123}, Timeout: 20 * time.Second}
		for i := range 3 {
			begin := time.Now()
			var far net.Conn
			var err error
			// which is ours again when lwIP has acknowledged our FIN
			within(t, 20*time.Second, "the port", func() bool {
				far, err = from.Dial("tcp", l.Addr())
				return !errors.Is(err, syscall.EADDRINUSE)
			})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("connection %d: %v", i, took)
			}
			near := must(must(l.Accept())(t).Stream())(t)
			near.Close() // first, so that this side has to wait
			far.SetDeadline(time.Now().Add(10 * time.Second))
			if n, err := far.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("connection %d: %d, %v", i, n, err)
			}
			far.Close()
		}
	})
	l.Close()
	CloseInterfaces()
}

// TestAnInterfaceGoesFromStackToStack at once, as serve has it between two sessions.
func TestAnInterfaceGoesFromStackToStack(t *testing.T) {
	between(t, func(side int, addr string) {
		defer CloseInterfaces()
		for i := range 10 {
			s := openStack(t, Config{Link: LinkXDP, Iface: []string{"side0", "side1"}[side], Seed: uint64(i)})
			if _, _, err := s.through(addr); err != nil {
				t.Fatalf("stack %d: %v", i, err)
			}
		}
	})
}

// TestAPortStaysForWhatWasSent: the reader has no room until the port would be the kernel's, which resets.
func TestAPortStaysForWhatWasSent(t *testing.T) {
	defer func(d time.Duration) { lingerPort = d }(lingerPort)
	lingerPort = 100 * time.Millisecond
	var stacks [2]*Stack
	var l stream.Listener
	between(t, func(side int, addr string) {
		stacks[side] = openStack(t, Config{Link: LinkXDP, Iface: []string{"side0", "side1"}[side]})
		if side == 0 {
			l = listenOn(t, stacks[side], addr)
		} else if _, _, err := stacks[side].through(addr); err != nil {
			t.Fatal(err)
		}
	})
	defer CloseInterfaces()
	defer l.Close()
	a, b := connect(t, stacks[1], l)
	defer b.Close()
	endsFull(t, a, b, stream.Conn.Close, 5*lingerPort)
	port := netip.MustParseAddrPort(b.RemoteAddr()).Port()
	x := stacks[1].core.ifaces["side1"]
	within(t, 5*time.Second, "the port is the kernel's behind the last octet", func() bool {
		var ours uint32
		noError(t, x.ports.Lookup(uint32(port), &ours))
		return ours == 0
	})
}
