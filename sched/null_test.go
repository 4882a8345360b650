package sched_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// nullDevice carries out nothing: every send completes at the next poll.
type nullDevice struct {
	caps   rdma.Caps
	qps    uint32
	bytes  uint64        // posted
	onPoll func(*nullCQ) // before a poll, if not nil
}

func newNull() *nullDevice {
	return &nullDevice{caps: rdma.Caps{
		Label: rdma.LabelModel,
		Ops: rdma.Ops(rdma.OpSend, rdma.OpSendInv, rdma.OpWrite, rdma.OpWriteImm, rdma.OpSendImm, rdma.OpRead,
			rdma.OpFetchAdd, rdma.OpCmpSwap, rdma.OpLocalInv),
		Features: rdma.FeatInline | rdma.FeatFence | rdma.FeatEmptyRead | rdma.FeatImmPayload,
		MaxQPWR:  16384, MaxCQE: 1 << 20, MaxSGE: rdma.MaxSGE, MaxReadSGE: rdma.MaxSGE, MaxInline: 512, MaxRDAtom: 128,
		MaxPrivate: 512, MaxMsg: 1 << 31,
	}}
}

func (d *nullDevice) Name() string                            { return "null" }
func (d *nullDevice) Caps() rdma.Caps                         { return d.caps }
func (d *nullDevice) AllocPD() (rdma.PD, error)               { return 0, rdma.ErrNotSupported }
func (d *nullDevice) FreePD(rdma.PD) error                    { return rdma.ErrNotSupported }
func (d *nullDevice) NewSRQ(rdma.SRQConfig) (rdma.SRQ, error) { return nil, rdma.ErrNotSupported }
func (d *nullDevice) NewCQ(depth int) (rdma.CQ, error) {
	return &nullCQ{wcs: make([]rdma.WC, depth), onPoll: d.onPoll}, nil
}
func (d *nullDevice) Event() (rdma.Event, bool) { return rdma.Event{}, false }
func (d *nullDevice) Close() error              { return nil }
func (d *nullDevice) Listen(context.Context, string, int) (rdma.Listener, error) {
	return nil, rdma.ErrNotSupported
}
func (d *nullDevice) RegMR(rdma.PD, rdma.Buffer, rdma.Access) (rdma.MR, error) {
	return nil, rdma.ErrNotSupported
}

func (d *nullDevice) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	d.qps++
	return &nullQP{dev: d, num: d.qps, cq: cfg.SendCQ.(*nullCQ), depth: cfg.SendDepth}, nil
}

// nullCQ is a ring of what was posted.
type nullCQ struct {
	wcs         []rdma.WC
	first, many int
	onPoll      func(*nullCQ)
	polls       atomic.Int64
	last        time.Time // for onPoll
}

func (c *nullCQ) Poll(dst []rdma.WC) (n int, err error) {
	if c.onPoll != nil {
		c.onPoll(c)
	}
	for n < len(dst) && c.many > 0 {
		dst[n] = c.wcs[c.first]
		if c.first++; c.first == len(c.wcs) {
			c.first = 0
		}
		c.many--
		n++
	}
	return n, nil
}
func (c *nullCQ) Arm(bool) error             { return rdma.ErrNotSupported }
func (c *nullCQ) Wait(context.Context) error { return rdma.ErrNotSupported }
func (c *nullCQ) Close() error               { return nil }

type nullQP struct {
	dev   *nullDevice
	num   uint32
	cq    *nullCQ
	depth int
}

func (q *nullQP) PostSend(wrs []rdma.SendWR) (int, error) {
	for i := range wrs {
		q.dev.bytes += wrs[i].Len()
		if wrs[i].Flags&rdma.Signaled != 0 {
			q.cq.push(rdma.WC{ID: wrs[i].ID, QPNum: q.num, Opcode: wrs[i].Op.Completes()})
		}
	}
	return len(wrs), nil
}

func (q *nullQP) Num() uint32                             { return q.num }
func (q *nullQP) PostRecv(wrs []rdma.RecvWR) (int, error) { return len(wrs), nil }
func (q *nullQP) PingPong([]rdma.PingPongStep, []rdma.WC) (int, error) {
	return 0, rdma.ErrNotSupported
}
func (q *nullQP) Drain() error                     { return rdma.ErrNotSupported }
func (q *nullQP) Resume() error                    { return rdma.ErrNotSupported }
func (q *nullQP) Fail() error                      { return nil }
func (q *nullQP) Disconnect(context.Context) error { return nil }
func (q *nullQP) State() rdma.QPState              { return rdma.QPRTS }
func (q *nullQP) Close() error                     { return nil }
func (q *nullQP) Connect(_ context.Context, _ string, p rdma.ConnParam) (rdma.ConnParam, error) {
	return p, nil
}

// bareQueue is a QP of dev with its CQ, connected.
func bareQueue(tb testing.TB, dev rdma.Device, depth int) (rdma.QP, rdma.CQ) {
	tb.Helper()
	cq := need(dev.NewCQ(2 * depth))(tb)
	qp := need(dev.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: depth}))(tb)
	need(qp.Connect(context.Background(), "", rdma.ConnParam{IRD: 16, ORD: 16}))(tb)
	return qp, cq
}

func wrapped(tb testing.TB, dev rdma.Device, cfg sched.Config) rdma.Device {
	tb.Helper()
	d := need(sched.Wrap(dev, cfg))(tb)
	tb.Cleanup(func() {
		must(tb, d.Close())
	})
	return d
}

// rounds posts n requests of a batch and polls their completions.
func rounds(tb testing.TB, qp rdma.QP, cq rdma.CQ, wrs []rdma.SendWR, wcs []rdma.WC, n int) {
	for done := 0; done < n; done += len(wrs) {
		if k, err := qp.PostSend(wrs); k != len(wrs) {
			tb.Fatalf("post: %d, %v", k, err)
		}
		for got, empty := 0, 0; got < len(wrs); {
			k, err := cq.Poll(wcs)
			if empty++; k > 0 {
				empty = 0
			}
			if err != nil || empty > 1<<10 {
				tb.Fatalf("poll: %d, %v, %d in a row without any", k, err, empty)
			}
			got += k
		}
	}
}

func requests(n int, size uint32) []rdma.SendWR {
	wrs := make([]rdma.SendWR, n)
	for i := range wrs {
		wrs[i] = rdma.SendWR{ID: uint64(i), Op: rdma.OpWrite, Flags: rdma.Signaled, NumSGE: 1}
		wrs[i].SGE[0] = rdma.SGE{Addr: 1 << 20, Len: size}
	}
	return wrs
}

// Nothing is allocated per request, cut or not, whatever the policy.
func TestRequestsAllocateNothing(t *testing.T) {
	for _, p := range sched.Policies() {
		for _, size := range []uint32{64, 256 << 10} {
			dev := wrapped(t, newNull(), sched.Config{Policy: p, Slice: 16 << 10, Window: 64 << 10})
			qp, cq := bareQueue(t, sched.WithoutKeeper(dev), 64)
			wrs, wcs := requests(16, size), make([]rdma.WC, 32)
			for i := range wrs {
				wrs[i].Priority = uint8(i % sched.Priorities)
			}
			rounds(t, qp, cq, wrs, wcs, 64)
			if n := testing.AllocsPerRun(100, func() { rounds(t, qp, cq, wrs, wcs, 16) }); n != 0 {
				t.Errorf("%s, %d bytes: %v allocations for 16 requests", p, size, n)
			}
		}
	}
}
