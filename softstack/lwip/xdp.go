//go:build lwip && cgo

package lwip

// #include "lw.h"
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	xlink "github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// xdp is an interface shared with the host: what is for our ports goes to an AF_XDP socket, ARP to the kernel.
type xdp struct {
	name  string
	addr  netip.Addr
	index int
	nl    *netlink.Handle // of the network namespace that the interface is in
	ports *ebpf.Map
	socks *ebpf.Map
	prog  *ebpf.Program
	at    xlink.Link
	zero  bool // no copy between the driver and us
	link  *link
	wake  chan struct{}
	done  chan struct{}
	group sync.WaitGroup
}

// ethPorts is where our connections begin, above the kernel's (ip_local_port_range: 32768 to 60999).
const ethPorts = 61000

// queueWithin is how long a queue may be busy with a closed socket: it takes milliseconds.
const queueWithin = time.Second

// XDPError says what of the way to an interface failed, and whether that is for want of rights or of a kernel.
type XDPError struct {
	Op, Iface string
	Err       error
}

func (e *XDPError) Error() string { return fmt.Sprintf("%s on %s: %v", e.Op, e.Iface, e.Err) }
func (e *XDPError) Unwrap() error { return e.Err }

// openXDP attaches to an interface. The program goes with the process.
func openXDP(s *Stack, name string) (x *xdp, err error) {
	x = &xdp{name: name, wake: make(chan struct{}, 1), done: make(chan struct{})}
	fail := func(op string, err error) (*xdp, error) {
		x.release()
		return nil, &XDPError{op, name, err}
	}
	if x.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fail("open netlink", err)
	}
	l, err := x.nl.LinkByName(name)
	if err != nil {
		return fail("look for the interface", err)
	}
	x.index = l.Attrs().Index
	addrs, err := x.nl.AddrList(l, netlink.FAMILY_V4)
	if err != nil || len(addrs) == 0 {
		return fail("look for an address", errors.Join(errors.New("no IPv4 address"), err))
	}
	x.addr, _ = netip.AddrFromSlice(addrs[0].IP.To4())
	if len(l.Attrs().HardwareAddr) != 6 {
		return fail("look for a hardware address", errors.New("it is no Ethernet"))
	}
	if err := x.load(); err != nil {
		return fail("load the XDP program", err)
	}
	for _, flags := range []xlink.XDPAttachFlags{xlink.XDPDriverMode, xlink.XDPGenericMode} {
		if x.at, err = xlink.AttachXDP(xlink.XDPOptions{Program: x.prog, Interface: x.index,
			Flags: flags}); err == nil {
			break
		}
	}
	if err != nil {
		return fail("attach the XDP program", err)
	}
	var ip [4]byte = x.addr.As4()
	var e C.int
	var sock *C.struct_lw_xsk
	unsummed := C.int(0)
	if l.Type() == "veth" {
		unsummed = 1
	}
	// The kernel takes a queue back from the socket before ours some time after it was closed.
	for late := time.Now().Add(queueWithin); ; time.Sleep(time.Millisecond) {
		for copied := C.int(0); copied <= 1 && sock == nil; copied++ {
			sock = C.lw_xsk_open(C.uint32_t(x.index), 0, C.uint32_t(s.cfg.Ring),
				C.uint32_t(binary.NativeEndian.Uint32(ip[:])),
				(*C.uint8_t)(unsafe.Pointer(&l.Attrs().HardwareAddr[0])), copied, unsummed, &e)
			x.zero = copied == 0
		}
		if sock != nil || unix.Errno(-e) != unix.EBUSY || time.Now().After(late) {
			break
		}
	}
	if sock == nil {
		return fail("open AF_XDP", unix.Errno(-e))
	}
	fd := int(C.lw_xsk_fd(sock))
	if err := x.socks.Put(uint32(0), uint32(fd)); err != nil {
		C.lw_xsk_abandon(sock)
		return fail("register the socket", err)
	}
	x.link, err = newXDPLink(s, x, sock)
	if err != nil {
		return fail("make a link", err)
	}
	x.group.Add(1)
	go x.sleep(fd)
	return x, nil
}

// load makes the maps and the program: TCP over IPv4 without options to our address and ports goes to queue 0.
func (x *xdp) load() (err error) {
	if x.ports, err = ebpf.NewMap(&ebpf.MapSpec{Name: "ports", Type: ebpf.Array, KeySize: 4, ValueSize: 4,
		MaxEntries: 1 << 16}); err != nil {
		return err
	}
	if x.socks, err = ebpf.NewMap(&ebpf.MapSpec{Name: "sockets", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4,
		MaxEntries: 64}); err != nil {
		return err
	}
	const pass = "pass"
	ip := x.addr.As4()
	ins := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), // xdp_md.data
		asm.LoadMem(asm.R3, asm.R1, 4, asm.Word), // data_end
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, 38), // Ethernet, IPv4 and the ports
		asm.JGT.Reg(asm.R4, asm.R3, pass),
		asm.LoadMem(asm.R4, asm.R2, 12, asm.Half),
		asm.JNE.Imm(asm.R4, int32(binary.NativeEndian.Uint16([]byte{8, 0})), pass),
		asm.LoadMem(asm.R4, asm.R2, 14, asm.Byte),
		asm.JNE.Imm(asm.R4, 0x45, pass),
		asm.LoadMem(asm.R4, asm.R2, 23, asm.Byte),
		asm.JNE.Imm(asm.R4, unix.IPPROTO_TCP, pass),
		asm.LoadMem(asm.R4, asm.R2, 30, asm.Word),
		asm.LoadImm(asm.R5, int64(binary.NativeEndian.Uint32(ip[:])), asm.DWord),
		asm.JNE.Reg(asm.R4, asm.R5, pass),
		asm.LoadMem(asm.R4, asm.R2, 36, asm.Half), // destination port
		asm.HostTo(asm.BE, asm.R4, asm.Half),
		asm.StoreMem(asm.RFP, -4, asm.R4, asm.Word),
		asm.LoadMapPtr(asm.R1, x.ports.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, pass),
		asm.LoadMem(asm.R0, asm.R0, 0, asm.Word),
		asm.JEq.Imm(asm.R0, 0, pass),
		asm.LoadMem(asm.R2, asm.R6, 16, asm.Word), // rx_queue_index
		asm.LoadMapPtr(asm.R1, x.socks.FD()),
		asm.Mov.Imm(asm.R3, 2), // XDP_PASS where the queue has no socket
		asm.FnRedirectMap.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 2).WithSymbol(pass),
		asm.Return(),
	}
	x.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "rdmaperf", Type: ebpf.XDP, License: "Dual BSD/GPL",
		Instructions: ins})
	return err
}

// open and shut say whether a port is ours.
func (x *xdp) open(port uint16) error { return x.ports.Put(uint32(port), uint32(1)) }
func (x *xdp) shut(port uint16)       { x.ports.Put(uint32(port), uint32(0)) }

// neighbour is the hardware address of the next hop to ip, by the kernel's table, which is asked to fill itself.
func (x *xdp) neighbour(ctx context.Context, ip netip.Addr) (net.HardwareAddr, error) {
	hop := net.IP(ip.AsSlice())
	routes, err := x.nl.RouteGetWithOptions(hop, &netlink.RouteGetOptions{OifIndex: x.index})
	if err != nil {
		return nil, &XDPError{"route to " + ip.String(), x.name, err}
	}
	if len(routes) > 0 && routes[0].Gw != nil {
		hop = routes[0].Gw
	}
	for {
		list, err := x.nl.NeighList(x.index, netlink.FAMILY_V4)
		if err != nil {
			return nil, &XDPError{"read neighbours", x.name, err}
		}
		for _, n := range list {
			if n.IP.Equal(hop) && len(n.HardwareAddr) == 6 &&
				n.State&(netlink.NUD_REACHABLE|netlink.NUD_STALE|netlink.NUD_DELAY|netlink.NUD_PROBE|
					netlink.NUD_PERMANENT) != 0 {
				return n.HardwareAddr, nil
			}
		}
		// NUD_PROBE with NTF_USE has the kernel resolve it (rtnetlink(7), neigh_add in net/core/neighbour.c).
		if err := x.nl.NeighSet(&netlink.Neigh{LinkIndex: x.index, Family: netlink.FAMILY_V4, IP: hop,
			Flags: netlink.NTF_USE, State: netlink.NUD_NONE}); err != nil {
			return nil, &XDPError{"resolve " + hop.String(), x.name, err}
		}
		select {
		case <-ctx.Done():
			return nil, &XDPError{"resolve " + hop.String(), x.name, errors.New("nobody has that address")}
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (x *xdp) connect(ctx context.Context, s *Stack, ip netip.Addr, port uint16) (*conn, error) {
	mac, err := x.neighbour(ctx, ip)
	if err != nil {
		return nil, err
	}
	raw := ip.As4()
	peer := C.lw_peer(x.link.c, C.uint32_t(binary.NativeEndian.Uint32(raw[:])), (*C.uint8_t)(unsafe.Pointer(&mac[0])))
	if peer < 0 {
		return nil, &XDPError{"remember " + ip.String(), x.name, errors.New("too many hosts")}
	}
	for range 64 { // a free port is found at once
		local := ethPorts + uint16(rand.N(math.MaxUint16-ethPorts))
		if err := x.open(local); err != nil {
			return nil, err
		}
		c, err := s.dialLink(ctx, x.link, int(peer), false, local, port)
		if err == nil {
			c.onEnd = func() { x.linger(local, time.Now().Add(orphanGrace)) }
			return c, nil
		}
		x.shut(local)
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, err
		}
	}
	return nil, unix.EADDRINUSE
}

// lingerPort is how long a port stays ours behind its connection, for FIN and its answer.
var lingerPort = 5 * time.Second

// linger keeps a port for that long, and until all is acknowledged: the kernel would reset what comes for it.
func (x *xdp) linger(port uint16, end time.Time) {
	time.AfterFunc(lingerPort, func() {
		if time.Now().Before(end) && x.unacknowledged(port) {
			x.linger(port, end)
			return
		}
		x.shut(port)
	})
}

// unacknowledged reports whether something that was sent from a port waits for its acknowledgement.
func (x *xdp) unacknowledged(port uint16) bool {
	c := x.link.stack.core
	c.ifMu.Lock() // the link is there until the interface is given back
	defer c.ifMu.Unlock()
	return c.ifaces[x.name] == x && C.lw_link_unacknowledged(x.link.c, C.uint16_t(port)) != 0
}

// sleep waits for the socket when the driver asks to.
func (x *xdp) sleep(fd int) {
	defer x.group.Done()
	for {
		select {
		case <-x.done:
			return
		case <-x.wake:
		}
		for C.lw_xsk_wait(C.int(fd), 100) == 0 {
			select {
			case <-x.done:
				return
			default:
			}
		}
		x.link.stack.core.WakeDriver()
		x.link.stack.core.wakeHelper()
	}
}

func (x *xdp) askToSleep() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// close ends the socket's sleeper; the link is closed by the stack.
func (x *xdp) close() {
	close(x.done)
	x.group.Wait()
	x.release()
}

func (x *xdp) release() {
	if x.at != nil {
		x.at.Close()
	}
	x.prog.Close() // as the maps, which may be nil
	x.socks.Close()
	x.ports.Close()
	if x.nl != nil {
		x.nl.Close()
	}
}

// newXDPLink takes over the socket, also on error.
func newXDPLink(s *Stack, x *xdp, sock *C.struct_lw_xsk) (*link, error) {
	imp := s.impairment()
	l := &link{stack: s, x: x, port: x.name}
	if l.c = C.lw_link_xdp(sock, s.twoCopies(), s.mode(), &imp); l.c == nil {
		return nil, fmt.Errorf("more than %d links", C.LW_MAX_LINKS)
	}
	s.core.enter(l)
	return l, nil
}

// ifaceOf is the interface with ip, or the one through which ip is reached.
func ifaceOf(ip netip.Addr) (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(net.IP(ip.AsSlice())) {
				return i.Name, nil
			}
		}
	}
	routes, err := netlink.RouteGet(net.IP(ip.AsSlice()))
	if err != nil || len(routes) == 0 {
		return "", fmt.Errorf("no route to %s: %w", ip, errors.Join(err, unix.ENETUNREACH))
	}
	i, err := net.InterfaceByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", err
	}
	return i.Name, nil
}

// through is the stack's hold of an interface, opened when it is first needed.
func (s *Stack) through(host string) (*xdp, netip.Addr, error) {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		ips, e := net.LookupIP(host)
		if e != nil {
			return nil, ip, e
		}
		for _, one := range ips {
			if v4 := one.To4(); v4 != nil {
				ip, _ = netip.AddrFromSlice(v4)
			}
		}
	}
	if ip = ip.Unmap(); !ip.Is4() {
		return nil, ip, fmt.Errorf("%s: link=xdp carries IPv4", host)
	}
	name := s.cfg.Iface
	if name == "" {
		if name, err = ifaceOf(ip); err != nil {
			return nil, ip, err
		}
	}
	c := s.core
	c.ifMu.Lock()
	defer c.ifMu.Unlock()
	if x := c.ifaces[name]; x != nil {
		if x.link.stack == s {
			return x, ip, nil
		}
		// An interface has one socket, and that the parameters of one stack.
		if atomic.LoadInt32((*int32)(unsafe.Pointer(&x.link.c.conns))) > 0 {
			return nil, ip, &XDPError{"share the interface", name,
				errors.New("another stack of this process has connections there")}
		}
		c.giveBack(x)
	}
	x, err := openXDP(s, name)
	if err != nil {
		return nil, ip, err
	}
	c.ifaces[name] = x
	return x, ip, nil
}

// giveBack ends the hold of an interface and its connections. ifMu is held.
func (s *core) giveBack(x *xdp) {
	delete(s.ifaces, x.name)
	x.close()
	s.mu.Lock()
	s.links = slices.DeleteFunc(s.links, func(l *link) bool { return l == x.link })
	s.publish()
	s.mu.Unlock()
	x.link.end()
}

// CloseInterfaces gives the process's interfaces back, which lose their connections.
func CloseInterfaces() {
	if stack == nil {
		return
	}
	stack.ifMu.Lock()
	defer stack.ifMu.Unlock()
	for _, x := range stack.ifaces {
		stack.giveBack(x)
	}
}
