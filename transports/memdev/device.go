package memdev

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// caps have the limits of a large adapter, so that what runs here is not helped by generous numbers.
var caps = rdma.Caps{
	Label:      rdma.LabelMem,
	Completion: rdma.CompletionAck,
	Ops: rdma.Ops(rdma.OpSend, rdma.OpSendInv, rdma.OpSendImm, rdma.OpWrite, rdma.OpWriteImm,
		rdma.OpRead, rdma.OpFetchAdd, rdma.OpCmpSwap, rdma.OpLocalInv),
	Features: rdma.FeatSRQ | rdma.FeatEvents | rdma.FeatSolicited | rdma.FeatInline | rdma.FeatFence |
		rdma.FeatLastByteLast | rdma.FeatRNRRetry | rdma.FeatReadMultiSGE | rdma.FeatPassiveFirst |
		rdma.FeatSQD | rdma.FeatAsyncEvents | rdma.FeatEmptyRead | rdma.FeatPingPong | rdma.FeatImmPayload,
	Unaided:    true,
	RawQP:      true,
	MaxQPWR:    16384,
	MaxCQE:     1 << 20,
	MaxSGE:     rdma.MaxSGE,
	MaxReadSGE: rdma.MaxSGE,
	MaxInline:  512,
	MaxRDAtom:  128,
	MaxSRQWR:   16384,
	MaxPrivate: 512,
	MaxMsg:     1 << 31, // IBTA 9.4.3: the longest message
}

// Device is one end of a fabric. It implements rdma.Device.
type Device struct {
	fab  *Fabric
	host string
	name string

	// Guarded by fab.mu.
	closed, dead bool
	open         int // objects that must be closed first
	qps          []*qp
	pds          map[rdma.PD]int // users of each domain
	lastPD       rdma.PD
	lkeys, rkeys map[uint32]*mr
	stale        map[uint32]*mr // revoked rkeys that FaultAcceptOldKey honours
	events       rdma.EventRing
}

var _ rdma.Device = (*Device)(nil)

func deviceName(cfg Config) string {
	var params []string
	if cfg.ReadDelay > 0 {
		params = append(params, fmt.Sprintf("read_delay=%v", cfg.ReadDelay))
	}
	if len(cfg.Faults) > 0 {
		p := newPlan(cfg.Seed, cfg.Faults)
		params = append(params, p.String())
	}
	if params == nil {
		return "mem"
	}
	return "mem(" + strings.Join(params, ",") + ")"
}

// Name is "mem", with the delay, seed and faults the fabric started with, if any.
func (d *Device) Name() string { return d.name }

// Host is the name given to Open: the host part of the device's addresses.
func (d *Device) Host() string { return d.host }

// Caps are constant.
func (d *Device) Caps() rdma.Caps {
	c := caps
	c.OnDemand = d.fab.cfg.OnDemand
	return c
}

func (d *Device) alive() error {
	switch {
	case d.closed:
		return rdma.ErrClosed
	case d.dead:
		return rdma.ErrState
	}
	return nil
}

// AllocPD makes a protection domain.
func (d *Device) AllocPD() (rdma.PD, error) {
	d.fab.lock()
	defer d.fab.unlock()
	if err := d.alive(); err != nil {
		return 0, &rdma.OpError{Op: "allocate pd", Object: d.host, Err: err}
	}
	d.lastPD++
	d.pds[d.lastPD] = 0
	return d.lastPD, nil
}

// FreePD ends a protection domain; ErrBusy while it is used. Domain 0 stays.
func (d *Device) FreePD(pd rdma.PD) error {
	d.fab.lock()
	defer d.fab.unlock()
	users, ok := d.pds[pd]
	err := rdma.ErrBusy
	switch {
	case d.closed:
		err = rdma.ErrClosed
	case !ok || pd == 0:
		err = rdma.ErrInvalid
	case users == 0:
		delete(d.pds, pd)
		return nil
	}
	return &rdma.OpError{Op: "free pd", Object: fmt.Sprint(pd), Err: err}
}

func (d *Device) use(pd rdma.PD) bool {
	if _, ok := d.pds[pd]; !ok {
		return false
	}
	d.pds[pd]++
	d.open++
	return true
}

func (d *Device) release(pd rdma.PD) {
	d.pds[pd]--
	d.open--
}

func (d *Device) raise(t rdma.EventType, qpn uint32) {
	if d.fab.faults.hit(FaultLoseAsync, d) {
		return
	}
	d.events.Put(rdma.Event{Type: t, QPNum: qpn})
}

// Event takes the oldest unread asynchronous event.
func (d *Device) Event() (rdma.Event, bool) {
	d.fab.lock()
	defer d.fab.unlock()
	d.fab.drive()
	return d.events.Event()
}

// Kill is the sudden death of the device: on every QP the oldest request completes with StatusFatalErr, the rest
// flushed. Peers learn of it by silence. Only Close of the objects and Poll work afterwards.
func (d *Device) Kill() {
	d.fab.lock()
	defer d.fab.unlock()
	d.kill()
}

func (d *Device) kill() {
	d.dead = true
	for _, q := range slices.Clone(d.qps) {
		if q.state != rdma.QPErr {
			d.raise(rdma.EventQPFatal, q.num)
			q.hangUp(rdma.ErrState)
			q.abort(rdma.StatusFatalErr)
		}
	}
}

// Close ends the device; ErrBusy while a QP, CQ, SRQ, MR or listener is open.
func (d *Device) Close() error {
	d.fab.lock()
	defer d.fab.unlock()
	if d.closed {
		return nil
	}
	if d.open > 0 {
		return &rdma.OpError{Op: "close device", Object: d.host, Err: rdma.ErrBusy}
	}
	d.closed = true
	delete(d.fab.devices, d.host)
	return nil
}
