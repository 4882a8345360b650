//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Device is one context of a kernel device. Several of them on one device are independent of each other.
type Device struct {
	cfg   Config
	caps  rdma.Caps
	found findings
	dev   string // "rxe0"
	iwarp bool
	port  portAttr

	ctx   *C.struct_va_context
	table *C.struct_vb_table

	mu     sync.Mutex
	closed bool
	pds    map[rdma.PD]*domain
	nextPD rdma.PD
	qps    map[uint32]*qp
	cqs    map[unsafe.Pointer]*cq // by the address that asynchronous events name
	others int                    // shared receive queues, registrations and listeners

	events rdma.EventRing

	async *watcher
	cm    *manager       // nil without CM
	group sync.WaitGroup // connection attempts that outlive their call
}

type domain struct {
	pd    *C.struct_va_pd
	users int
}

type portAttr struct {
	num      int
	mtu      int // active, bytes
	lid      uint16
	ethernet bool
	maxMsg   uint64
}

var _ rdma.Device = (*Device)(nil)

// Open makes a device of the kernel's. rdma.ErrNoDevice when this build or machine
// has none, rdma.ErrInvalid for a Config that cannot be. Close frees it.
func Open(cfg Config) (rdma.Device, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	d := &Device{cfg: cfg, pds: map[rdma.PD]*domain{}, nextPD: 1, qps: map[uint32]*qp{}, cqs: map[unsafe.Pointer]*cq{}}
	if err := d.open(); err != nil {
		d.free()
		return nil, err
	}
	return d, nil
}

func (d *Device) open() error {
	if err := d.openDevice(); err != nil {
		return err
	}
	d.cfg.Device = d.dev
	d.cfg.CM = d.cfg.CM || d.iwarp // iWARP has no other way
	if d.cfg.TOS != 0 && !d.cfg.CM && !d.port.ethernet && d.cfg.GIDIndex < 0 {
		return &rdma.OpError{Op: opOpen, Object: d.dev,
			Err: fmt.Errorf("traffic class %d is in the GRH, which InfiniBand has with a GID index only: %w",
				d.cfg.TOS, rdma.ErrInvalid)}
	}
	if !d.cfg.CM && d.port.ethernet {
		if _, err := d.gid(unspecified); err != nil {
			return err
		}
	}
	if d.table = C.vb_new_table(); d.table == nil {
		return failed(opOpen, d.dev, syscall.ENOMEM)
	}
	if _, err := d.newPD(0); err != nil {
		return err
	}
	if err := d.findCaps(); err != nil {
		return err
	}
	if d.cfg.CM {
		if err := loadCM(); err != nil {
			return err
		}
		var err error
		if d.cm, err = newManager(d); err != nil {
			return err
		}
	}
	if rc := C.vb_nonblock(d.ctx.async_fd); rc != 0 {
		return failed(opOpen, d.dev, errno(rc))
	}
	var err error
	d.async, err = watch(int(d.ctx.async_fd), d.readAsync)
	if err != nil {
		return failed(opOpen, d.dev, err)
	}
	return nil
}

func (d *Device) openDevice() error {
	var there []string
	err := eachDevice(func(dev *C.struct_va_device) error {
		name := C.GoString(&dev.name[0])
		there = append(there, name)
		if d.ctx != nil || d.cfg.Device != "" && d.cfg.Device != name {
			return nil
		}
		ctx, err := openContext(dev)
		if err != nil {
			return err
		}
		port, err := findPort(ctx, name, d.cfg.Port)
		if err != nil {
			C.vb_close(ctx)
			if d.cfg.Device == "" && len(there) > 0 {
				return nil // perhaps the next one
			}
			return err
		}
		d.ctx, d.dev, d.port = ctx, name, port
		d.iwarp = dev.transport_type == C.VA_TRANSPORT_IWARP
		return nil
	})
	switch {
	case err != nil:
		return err
	case d.ctx == nil && d.cfg.Device != "":
		return deviceMissing(d.cfg.Device, there)
	case d.ctx == nil:
		return portDown(list(there), max(d.cfg.Port, 1), "down")
	}
	return nil
}

func findPort(ctx *C.struct_va_context, name string, want int) (portAttr, error) {
	var attr C.struct_va_device_attr
	if rc := C.vb_query_device(ctx, &attr); rc != 0 {
		return portAttr{}, &rdma.OpError{Op: "query", Object: name, Err: errno(rc)}
	}
	ports := int(attr.phys_port_cnt)
	if want > ports {
		return portAttr{}, portMissing(name, want, ports)
	}
	state := "missing"
	for p := 1; p <= ports; p++ {
		if want != 0 && want != p {
			continue
		}
		var port C.struct_va_port_attr
		if rc := C.vb_query_port(ctx, C.int(p), &port); rc != 0 {
			return portAttr{}, &rdma.OpError{Op: "query", Object: fmt.Sprintf("%s port %d", name, p), Err: errno(rc)}
		}
		if state = portState(int(port.state)); port.state == C.VA_PORT_ACTIVE {
			return portAttr{num: p, mtu: mtuBytes(port.active_mtu), lid: uint16(port.lid),
				ethernet: port.link_layer == C.VA_LINK_ETHERNET, maxMsg: uint64(port.max_msg_sz)}, nil
		}
	}
	return portAttr{}, portDown(name, max(want, 1), state)
}

func portState(s int) string {
	names := [...]string{"in no state", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}
	if s >= 0 && s < len(names) {
		return names[s]
	}
	return fmt.Sprintf("in state %d", s)
}

// Name is the stack name with parameters: "verbs(cm):siw0".
func (d *Device) Name() string { return d.cfg.name() }

// Caps are the abilities; constant.
func (d *Device) Caps() rdma.Caps { return d.caps }

// AllocPD makes a protection domain.
func (d *Device) AllocPD() (rdma.PD, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, &rdma.OpError{Op: "alloc pd", Err: rdma.ErrClosed}
	}
	pd := d.nextPD
	d.nextPD++
	return d.newPD(pd)
}

func (d *Device) newPD(pd rdma.PD) (rdma.PD, error) {
	var rc C.int
	p := C.vb_alloc_pd(d.ctx, &rc)
	if p == nil {
		return 0, failed("alloc pd", d.dev, errno(rc))
	}
	d.pds[pd] = &domain{pd: p}
	return pd, nil
}

// FreePD ends a domain that nothing uses.
func (d *Device) FreePD(pd rdma.PD) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pds[pd]
	err := rdma.ErrBusy
	switch {
	case p == nil || pd == 0:
		err = rdma.ErrInvalid
	case p.users == 0:
		if err = errno(C.vb_dealloc_pd(p.pd)); err == nil {
			delete(d.pds, pd)
			return nil
		}
	}
	return failed("free pd", fmt.Sprint(pd), err)
}

func (d *Device) usePD(pd rdma.PD) (*domain, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, rdma.ErrClosed
	}
	p := d.pds[pd]
	if p == nil {
		return nil, fmt.Errorf("protection domain %d: %w", pd, rdma.ErrInvalid)
	}
	p.users++
	return p, nil
}

func (d *Device) leavePD(p *domain) {
	d.mu.Lock()
	p.users--
	d.mu.Unlock()
}

func (d *Device) count(by int) {
	d.mu.Lock()
	d.others += by
	d.mu.Unlock()
}

// Event takes the oldest asynchronous event.
func (d *Device) Event() (rdma.Event, bool) { return d.events.Event() }

func (d *Device) raise(t rdma.EventType, qpn, detail uint32) {
	d.events.Put(rdma.Event{Type: t, QPNum: qpn, Detail: detail})
}

// Close ends the device. ErrBusy while queues, registrations or listeners are open.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	if n := len(d.qps) + len(d.cqs) + d.others; n > 0 {
		d.mu.Unlock()
		return &rdma.OpError{Op: "close", Object: d.Name(), Err: fmt.Errorf("%d objects open: %w", n, rdma.ErrBusy)}
	}
	d.closed = true
	d.mu.Unlock()
	d.group.Wait()
	return d.free()
}

func (d *Device) free() error {
	if d.async != nil {
		d.async.stop()
	}
	if d.cm != nil {
		d.cm.close()
	}
	var first error
	for pd, p := range d.pds {
		if rc := C.vb_dealloc_pd(p.pd); rc != 0 && first == nil {
			first = failed("free pd", fmt.Sprint(pd), errno(rc))
		}
	}
	if d.ctx != nil {
		if rc := C.vb_close(d.ctx); rc != 0 && first == nil {
			first = failed("close", d.dev, errno(rc))
		}
	}
	C.vb_free_table(d.table)
	return first
}
