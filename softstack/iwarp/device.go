package iwarp

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Device is one iWARP device with one background goroutine, bound to no network interface.
type Device struct {
	cfg   Config
	caps  rdma.Caps
	stack stream.Stack
	byRef bool // it sends by reference

	mu        sync.Mutex
	closed    bool
	pds       map[rdma.PD]int // users of each domain
	nextPD    rdma.PD
	qps       map[uint32]*qp
	nextQP    uint32
	cqs, srqs int
	ended     Counts // of closed QPs
	listeners map[*listener]struct{}

	keys keyTable

	events rdma.EventRing

	bg       reactor
	receiver *receiver // with Config.ReceiveThread
}

var _ rdma.Device = (*Device)(nil)

// Open makes a device. Close frees it and joins its goroutine.
func Open(cfg Config) (*Device, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	d := &Device{
		cfg: cfg, caps: cfg.caps(), stack: cfg.Stack,
		pds:    map[rdma.PD]int{0: 0},
		qps:    map[uint32]*qp{},
		nextQP: 1, nextPD: 1,
		listeners: map[*listener]struct{}{},
	}
	if d.stack == nil {
		d.stack = stream.Kernel
	}
	if d.byRef = stream.References(d.stack); d.byRef {
		d.cfg.OnAck = true // until then the stack reads a request's memory
	}
	d.keys.init()
	if err := d.bg.start(d.stack); err != nil {
		return nil, &rdma.OpError{Op: "open iwarp", Err: err}
	}
	if cfg.ReceiveThread {
		var err error
		if d.receiver, err = newReceiver(d.stack); err != nil {
			d.bg.stop()
			return nil, &rdma.OpError{Op: "open iwarp", Err: err}
		}
	}
	d.enterProcess()
	return d, nil
}

// Name is the stack name with parameters.
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
	d.pds[pd] = 0
	return pd, nil
}

// FreePD ends a domain that nothing uses.
func (d *Device) FreePD(pd rdma.PD) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	users, ok := d.pds[pd]
	switch {
	case !ok || pd == 0:
		return &rdma.OpError{Op: "free pd", Object: fmt.Sprint(pd), Err: rdma.ErrInvalid}
	case users > 0:
		return &rdma.OpError{Op: "free pd", Object: fmt.Sprint(pd), Err: rdma.ErrBusy}
	}
	delete(d.pds, pd)
	return nil
}

// usePD counts a user of the domain in or out. It fails when the device is closed or the domain unknown.
func (d *Device) usePD(pd rdma.PD, by int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if by > 0 {
		if d.closed {
			return rdma.ErrClosed
		}
		if _, ok := d.pds[pd]; !ok {
			return fmt.Errorf("protection domain %d: %w", pd, rdma.ErrInvalid)
		}
	}
	d.pds[pd] += by
	return nil
}

// Event takes the oldest asynchronous event.
func (d *Device) Event() (rdma.Event, bool) { return d.events.Event() }

func (d *Device) raise(t rdma.EventType, qpn, detail uint32) {
	d.events.Put(rdma.Event{Type: t, QPNum: qpn, Detail: detail})
}

// everyQP calls f on a snapshot of the open QPs.
func (d *Device) everyQP(f func(*qp)) {
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.qps))
	d.mu.Unlock()
	for _, q := range all {
		f(q)
	}
}

// Kill resets every connection without Terminate or FIN, as a machine that dies, for conformance and fault tests.
// Objects still have to be closed.
func (d *Device) Kill() {
	d.everyQP(func(q *qp) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.conn != nil && q.phase != phaseClosed {
			q.dev.raise(rdma.EventQPFatal, q.num, vendor(rdmap.TermMPATCPLost))
			q.drop(true)
		}
		q.setState(rdma.QPErr)
	})
}

// Close ends the device. ErrBusy while queues, registrations or listeners are open.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	if n := len(d.qps) + d.cqs + d.srqs + len(d.listeners) + d.keys.open(); n > 0 {
		d.mu.Unlock()
		return &rdma.OpError{Op: "close", Object: d.Name(), Err: fmt.Errorf("%d objects open: %w", n, rdma.ErrBusy)}
	}
	d.closed = true
	d.mu.Unlock()
	if d.receiver != nil {
		d.receiver.stop()
	}
	d.bg.stop()
	d.leaveProcess()
	return nil
}

var process struct {
	mu    sync.Mutex
	open  map[*Device]struct{}
	ended Counts
}

// Totals adds up what all devices of this process have copied, the closed ones too.
func Totals() Counts {
	process.mu.Lock()
	defer process.mu.Unlock()
	sum := process.ended
	for d := range process.open {
		sum.add(d.Counts())
	}
	return sum
}

func (d *Device) enterProcess() {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.open == nil {
		process.open = map[*Device]struct{}{}
	}
	process.open[d] = struct{}{}
}

func (d *Device) leaveProcess() {
	process.mu.Lock()
	defer process.mu.Unlock()
	delete(process.open, d)
	process.ended.add(d.Counts())
}

// Counts are the octets that were copied, added where they are. What the stack below copies it counts itself.
type Counts struct {
	Staged uint64 // octets of the stream, headers too, that passed a staging buffer
	Placed uint64 // payload copied into registered memory, from a staging buffer or a packet
	Direct uint64 // payload that the stack below put there itself
	Yields uint64 // system calls by which a receive thread and the application offer each other a CPU
	Framed uint64 // payload copied beside its headers before it is sent
	Thread uint64 // nanoseconds of CPU of the thread that receives (Config.ReceiveThread)
}

func (c *Counts) add(n Counts) {
	c.Staged += n.Staged
	c.Placed += n.Placed
	c.Direct += n.Direct
	c.Framed += n.Framed
	c.Yields += n.Yields
	c.Thread += n.Thread
}

// Counts adds up what the device's QPs have copied, the closed ones too.
func (d *Device) Counts() Counts {
	var sum Counts
	d.everyQP(func(q *qp) {
		q.mu.Lock()
		sum.add(q.counts)
		sum.Framed += q.tx.moved
		q.mu.Unlock()
	})
	if d.receiver != nil {
		sum.Yields, sum.Thread = d.receiver.Yields.Load(), d.receiver.CPU.Load()
	}
	d.mu.Lock()
	sum.add(d.ended)
	d.mu.Unlock()
	return sum
}
