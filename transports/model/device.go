package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// world is what both ends of a connection share: a request takes time at two NICs.
var world struct {
	sync.Mutex
	last uint32
	qps  map[uint32]*qp // by the number that they tell each other
}

type device struct {
	rdma.Device
	caps  rdma.Caps
	cfg   Config
	clock rdma.Clock
	ids   uint64 // where the IDs of sends begin below: a failed completion has nothing else

	// Under world's lock.
	nic    *nic
	cqs    []*cq
	qps    map[uint32]*qp // by the number below
	lkeys  map[uint32]*mr
	rkeys  map[uint32]*mr
	lastMR uint64
	lastQP uint64
	order  uint64 // of completions, for those of one time
}

const sends = 1 << 48

var _ rdma.Device = (*device)(nil)

// Wrap puts a NIC over below, which it owns when it succeeds. Fails with rdma.ErrInvalid for what cfg cannot be, and
// rdma.ErrNotSupported over a device that is no memory: other devices take time of their own.
func Wrap(below rdma.Device, cfg Config) (rdma.Device, error) {
	cfg, err := cfg.Normal()
	if err != nil {
		return nil, &rdma.OpError{Op: "open model", Err: err}
	}
	d := &device{Device: below, cfg: cfg, caps: below.Caps(), nic: newNIC(cfg), qps: map[uint32]*qp{},
		lkeys: map[uint32]*mr{}, rkeys: map[uint32]*mr{}}
	if d.caps.Label != rdma.LabelMem || d.caps.Completion != rdma.CompletionAck || d.caps.MaxPrivate < tagLen {
		return nil, &rdma.OpError{Op: "open model", Object: "over " + below.Name(),
			Err: fmt.Errorf("it is for mem only: %w", rdma.ErrNotSupported)}
	}
	d.ids = rand.Uint64() // away from those of the user's receives, most likely
	d.caps.Label = rdma.LabelModel
	d.caps.MaxPrivate -= tagLen
	d.caps.Clock = &d.clock
	d.caps.PingPongClock, d.caps.PingPongNS = "the model's", 0
	return d, nil
}

func (d *device) Name() string { return d.cfg.String() + "+" + d.Device.Name() }

// Caps are those of the device below, with the label and the clock of the model.
func (d *device) Caps() rdma.Caps { return d.caps }

// Kill is the sudden death of the device below, where that can die.
func (d *device) Kill() {
	if k, ok := d.Device.(interface{ Kill() }); ok {
		k.Kill()
	}
}

// mr is a registration with its number: keys are random, and a cache must not be.
type mr struct {
	rdma.MR
	dev  *device
	num  uint64
	page uint64
	lkey uint32
	rkey uint32
}

// RegMR registers below. Its translations cover the pages that the memory was made of.
func (d *device) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	below, err := d.Device.RegMR(pd, buf, access)
	if err != nil {
		return nil, err
	}
	m := &mr{MR: below, dev: d, page: uint64(max(d.cfg.Page, buf.PageSize())), lkey: below.LKey(), rkey: below.RKey()}
	world.Lock()
	defer world.Unlock()
	d.lastMR++
	m.num = d.lastMR
	d.lkeys[m.lkey], d.rkeys[m.rkey] = m, m
	return m, nil
}

func (m *mr) Close() error {
	err := m.MR.Close()
	world.Lock()
	defer world.Unlock()
	if m.dev.lkeys[m.lkey] == m {
		delete(m.dev.lkeys, m.lkey)
		delete(m.dev.rkeys, m.rkey)
	}
	return err
}

func (m *mr) touched(addr, n uint64) needs {
	if m == nil || addr < m.Addr() || n > m.Len() || addr-m.Addr() > m.Len()-n {
		return needs{unmapped: true}
	}
	b := needs{region: m.num, first: addr/m.page - m.Addr()/m.page}
	if n > 0 {
		b.pages = (addr+n-1)/m.page - addr/m.page + 1
	}
	return b
}

func (d *device) NewCQ(depth int) (rdma.CQ, error) {
	below, err := d.Device.NewCQ(depth)
	if err != nil {
		return nil, err
	}
	c := &cq{below: below, dev: d}
	world.Lock()
	d.cqs = append(d.cqs, c)
	world.Unlock()
	return c, nil
}

func (d *device) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := d.Device.Listen(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	return &listener{l, d}, nil
}
