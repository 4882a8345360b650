//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// manager is an event channel of rdma_cm and the IDs on it. One goroutine takes the events and hands them to who waits.
type manager struct {
	dev  *Device
	ch   *C.struct_va_cm_channel
	loop *watcher

	// passive is held while an ID of the accepting side is destroyed, one at a time:
	// siw counts references wrong when a listener ends beside its requests.
	passive sync.Mutex

	mu   sync.Mutex
	next uint64
	ids  map[uint64]*cmID // by the context that the ID carries
}

type cmEvent struct {
	kind, status int
	ird, ord     int // as seen from this side
	rnr          int
	private      []byte
}

// cmID is one rdma_cm_id. Once made it is closed by its owner.
type cmID struct {
	m      *manager
	key    uint64
	events chan cmEvent // answers to what the owner asked for; never blocks the loop
	listen *cmListener  // set on listening IDs
	gone   func(orderly bool)

	mu      sync.Mutex
	id      *C.struct_va_cm_id // nil once destroyed
	left    chan struct{}      // closed when the connection has ended
	hasLeft bool
}

func newManager(d *Device) (*manager, error) {
	m := &manager{dev: d, ids: map[uint64]*cmID{}}
	var rc C.int
	if m.ch = C.vb_cm_channel(&rc); m.ch == nil {
		return nil, failed(opCMOpen, "", errno(rc))
	}
	err := errno(C.vb_nonblock(m.ch.fd))
	if err == nil {
		m.loop, err = watch(int(m.ch.fd), m.read)
	}
	if err != nil {
		C.vb_cm_free_channel(m.ch)
		return nil, failed(opCMOpen, "", err)
	}
	return m, nil
}

func (m *manager) close() {
	m.loop.stop()
	m.mu.Lock()
	left := slices.Collect(maps.Values(m.ids))
	m.mu.Unlock()
	for _, id := range left { // requests that nobody answered
		id.closePassive()
	}
	C.vb_cm_free_channel(m.ch)
}

// add lists an ID. id is nil for one that is still to be made.
func (m *manager) add(id *C.struct_va_cm_id) *cmID {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	c := &cmID{m: m, key: m.next, id: id, events: make(chan cmEvent, 8), left: make(chan struct{})}
	m.ids[c.key] = c
	return c
}

func (m *manager) newID() (*cmID, error) {
	c := m.add(nil)
	var rc C.int
	if c.id = C.vb_cm_id(m.ch, C.uint64_t(c.key), &rc); c.id == nil {
		c.close()
		return nil, failed("create rdma_cm id", "", errno(rc))
	}
	if tos := m.dev.cfg.TOS; tos != 0 { // of both sides: IDs of requests have their listener's
		if rc := C.vb_cm_set_tos(c.id, C.uint8_t(tos)); rc != 0 {
			c.close()
			return nil, failed("set the type of service of rdma_cm", fmt.Sprint(tos), errno(rc))
		}
	}
	return c, nil
}

// close is idempotent. The loop acknowledges events before it takes any lock, so this cannot wait for itself.
func (c *cmID) close() {
	c.m.mu.Lock()
	delete(c.m.ids, c.key)
	c.m.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id != nil {
		C.vb_cm_destroy(c.id)
		c.id = nil
	}
}

func (c *cmID) closePassive() {
	c.m.passive.Lock()
	defer c.m.passive.Unlock()
	c.close()
}

func (c *cmID) do(f func(id *C.struct_va_cm_id) C.int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id == nil {
		return rdma.ErrClosed
	}
	return errno(f(c.id))
}

func (m *manager) read() {
	var ev C.struct_vb_cm_event
	for C.vb_cm_event(m.ch, &ev) == 0 {
		m.mu.Lock()
		c := m.ids[uint64(ev.id_context)]
		m.mu.Unlock()
		e := cmEvent{kind: int(ev._type), status: int(ev.status), ird: int(ev.ird), ord: int(ev.ord), rnr: int(ev.rnr),
			private: C.GoBytes(unsafe.Pointer(&ev.private_data[0]), ev.private_len)}
		if ev._type == C.VA_CM_CONNECT_REQUEST {
			m.requested(c, &ev, e)
			continue
		}
		if c == nil {
			continue // of an ID that its owner has given up
		}
		switch ev._type {
		case C.VA_CM_DISCONNECTED, C.VA_CM_DEVICE_REMOVAL:
			c.departed(ev._type == C.VA_CM_DISCONNECTED)
		default:
			select {
			case c.events <- e:
			default: // nobody asked
			}
		}
	}
}

func (c *cmID) departed(orderly bool) {
	c.mu.Lock()
	first, gone := !c.hasLeft, c.gone
	c.hasLeft = true
	if first {
		close(c.left)
	}
	c.mu.Unlock()
	if !first {
		return
	}
	if orderly {
		c.do(func(id *C.struct_va_cm_id) C.int { return C.vb_cm_disconnect(id) })
	}
	if gone != nil {
		gone(orderly)
	}
}

// follow has gone called when the connection ends, at once if it has.
func (c *cmID) follow(gone func(orderly bool)) {
	c.mu.Lock()
	c.gone = gone
	late := c.hasLeft
	c.mu.Unlock()
	if late {
		gone(true)
	}
}

func (c *cmID) await(ctx context.Context, want int) (cmEvent, error) {
	select {
	case e := <-c.events:
		if e.kind == want {
			return e, nil
		}
		return e, c.refusal(e)
	case <-c.left:
		return cmEvent{}, fmt.Errorf("%w: it ended the connection", rdma.ErrUnreachable)
	case <-ctx.Done():
		return cmEvent{}, fmt.Errorf("%w: no answer in time: %w", rdma.ErrUnreachable, ctx.Err())
	}
}

// noListener is the InfiniBand CM's reason for a service that nobody offers (IBTA 12.6.7.2, reason 8).
const noListener = 8

// refusal says what an event that was not hoped for means (rdma_get_cm_event(3)).
func (c *cmID) refusal(e cmEvent) error {
	switch e.kind {
	case C.VA_CM_REJECTED:
		if !c.m.dev.iwarp && e.status == noListener {
			return fmt.Errorf("%w: nothing listens there", rdma.ErrUnreachable)
		}
		return &rdma.RejectError{PrivateData: e.private}
	case C.VA_CM_ADDR_ERROR, C.VA_CM_ROUTE_ERROR:
		return failed(opResolve, "", statusError(e.status))
	case C.VA_CM_UNREACHABLE, C.VA_CM_CONNECT_ERROR:
		return fmt.Errorf("%w: %w", rdma.ErrUnreachable, statusError(e.status))
	}
	return fmt.Errorf("%w: rdma_cm event %d, status %d", rdma.ErrProtocol, e.kind, e.status)
}

func statusError(status int) error {
	if status < 0 {
		status = -status
	}
	return syscall.Errno(status)
}

// disconnect waits a little for the other side's goodbye, so that destroying the ID does not cut it off.
func (c *cmID) disconnect(ctx context.Context) {
	if c.do(func(id *C.struct_va_cm_id) C.int { return C.vb_cm_disconnect(id) }) != nil {
		return
	}
	select {
	case <-c.left:
	case <-ctx.Done():
	case <-time.After(goodbyeTimeout):
	}
}

type cmLink struct{ c *cmID }

func (l cmLink) bye(ctx context.Context) { l.c.disconnect(ctx) }
func (l cmLink) close()                  { l.c.close() }

func sockaddr(a netip.AddrPort) []byte {
	var b [28]byte // struct sockaddr_in6
	port := [2]byte{byte(a.Port() >> 8), byte(a.Port())}
	copy(b[2:], port[:])
	addr := a.Addr()
	if addr.Is4() || addr.Is4In6() {
		*(*uint16)(unsafe.Pointer(&b)) = syscall.AF_INET
		ip := addr.As4()
		copy(b[4:], ip[:])
		return b[:]
	}
	*(*uint16)(unsafe.Pointer(&b)) = syscall.AF_INET6
	ip := addr.As16()
	copy(b[8:], ip[:])
	if z := addr.Zone(); z != "" {
		if nic, err := net.InterfaceByName(z); err == nil {
			*(*uint32)(unsafe.Pointer(&b[24])) = uint32(nic.Index)
		}
	}
	return b[:]
}

func sockaddrAt(s *C.struct_sockaddr_storage) netip.AddrPort {
	b := (*[28]byte)(unsafe.Pointer(s))
	port := uint16(b[2])<<8 | uint16(b[3])
	if *(*uint16)(unsafe.Pointer(b)) == syscall.AF_INET6 {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port)
}

func resolve(ctx context.Context, addr string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: %w", rdma.ErrInvalid, err)
	}
	n, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: %w", rdma.ErrInvalid, err)
	}
	if host == "" {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(n)), nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: %w", rdma.ErrUnreachable, err)
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(n)), nil
}
