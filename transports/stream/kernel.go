package stream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Kernel is the kernel's TCP/IP, through sockets. It holds nothing.
var Kernel Stack = kernel{}

// KernelTOS is Kernel, with a type of service from 0 to 255 in every packet of its
// connections: IP_TOS (ip(7)) or IPV6_TCLASS (ipv6(7)), whose upper six bits are the DSCP
// (RFC 2474). The two lowest are the kernel's where ECN is on, as it may be for TCP.
func KernelTOS(tos int) Stack { return kernel{tos} }

type kernel struct{ tos int }

func (k kernel) Name() string {
	if k.tos == 0 {
		return ""
	}
	return "tos=" + strconv.Itoa(k.tos)
}

// InPlace is false: the kernel's packets are its own.
func (kernel) InPlace() bool { return false }

func (k kernel) Dial(ctx context.Context, addr string, b Buffers) (Opening, error) {
	c, err := (&net.Dialer{Control: k.control(b)}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return opening{c.(*net.TCPConn)}, nil
}

func (k kernel) Listen(ctx context.Context, addr string, b Buffers) (Listener, error) {
	l, err := (&net.ListenConfig{Control: k.control(b)}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return listener{l.(*net.TCPListener)}, nil
}

func (kernel) NewPoller() (Poller, error) { return newEpoll() }

// control runs before connect and listen: the window scale is fixed with the SYN
// (RFC 7323 §2.2), and accepted sockets inherit the sizes and the type of service.
func (k kernel) control(b Buffers) func(network, addr string, c syscall.RawConn) error {
	if b == (Buffers{}) && k.tos == 0 {
		return nil
	}
	return func(network, addr string, c syscall.RawConn) error {
		b := b
		if b.LocalSend > 0 || b.LocalRecv > 0 {
			b = b.within(addr, limits())
		}
		var err error
		set := func(fd uintptr, level, opt, v int) {
			if v > 0 {
				err = errors.Join(err, os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), level, opt, v)))
			}
		}
		cerr := c.Control(func(fd uintptr) {
			set(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, b.Send)
			set(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, b.Recv)
			if network == "tcp6" {
				set(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, k.tos)
			}
			// Also of an IPv6 socket, whose peer may have an IPv4 address.
			set(fd, unix.IPPROTO_IP, unix.IP_TOS, k.tos)
		})
		return errors.Join(cerr, err)
	}
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

// within is b for an address: of one of the loopback device, both ends are in this machine.
// The buffers have to be there before the handshake: set later, a receive buffer was measured
// to change nothing. Where the administrator's limit is lower (socket(7), 208 KiB unless he
// says so) they stay the kernel's: cut to it they would be worse than none.
func (b Buffers) within(addr string, most Buffers) Buffers {
	if at, err := netip.ParseAddrPort(addr); err != nil || !at.Addr().Unmap().IsLoopback() {
		return b
	}
	if b.Send == 0 && b.LocalSend <= most.Send {
		b.Send = b.LocalSend
	}
	if b.Recv == 0 && b.LocalRecv <= most.Recv {
		b.Recv = b.LocalRecv
	}
	return b
}

// limits are net.core.wmem_max and rmem_max in bytes, 0 where they cannot be read. They are
// read once, not for each connection.
var limits = sync.OnceValue(func() Buffers {
	var n [2]int
	for i, name := range [2]string{"wmem_max", "rmem_max"} {
		if b, err := os.ReadFile("/proc/sys/net/core/" + name); err == nil {
			n[i], _ = strconv.Atoi(strings.TrimSpace(string(b)))
		}
	}
	return Buffers{Send: n[0], Recv: n[1]}
})
