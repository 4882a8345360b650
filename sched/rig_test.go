package sched_test

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// rig is a tier over a script device, whose requests the test carries out.
type rig struct {
	t    testing.TB
	dev  *scriptDevice
	tier rdma.Device
	far  *scriptQP
	qp   rdma.QP
	cq   rdma.CQ
	in   rdma.CQ // of receives: cq, or one of their own
	mem  rdma.Buffer
	seen []rdma.SendWR // what reached the device, without marks
}

// home is where the peer's half of mem begins.
const home = 1 << 20

func newRig(t testing.TB, cfg sched.Config, depth int, ord int) *rig {
	t.Helper()
	return newRigOn(t, newScript(false), cfg, depth, ord)
}

func newRigOn(t testing.TB, dev *scriptDevice, cfg sched.Config, depth int, ord int) *rig {
	t.Helper()
	return newRigOver(t, dev, sched.WithoutKeeper(wrapped(t, dev, cfg)), depth, ord)
}

// newRigOver is a rig on a tier over the script device, or over one that passes on to it.
func newRigOver(t testing.TB, dev *scriptDevice, tier rdma.Device, depth int, ord int) *rig {
	t.Helper()
	r := &rig{t: t, dev: dev, tier: tier}
	r.mem = need(rdma.Alloc(2 * home))(t)
	t.Cleanup(func() { r.mem.Free() })
	r.cq = need(tier.NewCQ(4 * depth))(t)
	if r.in = r.cq; dev.apart {
		r.in = need(tier.NewCQ(4 * depth))(t)
	}
	r.connect("", rdma.QPConfig{SendCQ: r.cq, RecvCQ: r.in, SendDepth: depth, MaxInline: 64}, ord)
	return r
}

// connect makes the rig's queue pair, connected to addr.
func (r *rig) connect(addr string, cfg rdma.QPConfig, ord int) {
	r.t.Helper()
	r.qp = need(r.tier.NewQP(cfg))(r.t)
	need(r.qp.Connect(r.t.Context(), addr, rdma.ConnParam{IRD: ord, ORD: ord}))(r.t)
	r.far = r.dev.qps[len(r.dev.qps)-1]
	r.far.failAfter = -1
	r.far.onPost = func(wr *rdma.SendWR) {
		if wr.RKey != 0 {
			r.seen = append(r.seen, *wr)
		}
	}
}

// wr is a signalled request of n bytes. Its ID is also its key, so that its parts can be told at the device.
func (r *rig) wr(id int, op rdma.Opcode, priority, n int) rdma.SendWR {
	w := rdma.SendWR{ID: uint64(id), Op: op, Priority: uint8(priority), Flags: rdma.Signaled, RKey: uint32(id),
		RemoteAddr: r.mem.Addr() + home}
	if n > 0 {
		w.NumSGE, w.SGE[0] = 1, rdma.SGE{Addr: r.mem.Addr(), Len: uint32(n)}
	}
	return w
}

func (r *rig) post(wrs ...rdma.SendWR) {
	r.t.Helper()
	if n, err := r.qp.PostSend(wrs); err != nil {
		r.t.Fatalf("post: %d taken, then %v", n, err)
	}
}

// takes posts requests of which so many are taken.
func (r *rig) takes(taken int, why error, wrs ...rdma.SendWR) {
	r.t.Helper()
	if n, err := r.qp.PostSend(wrs); n != taken || err != why {
		r.t.Errorf("post: %d, %v, want %d, %v", n, err, taken, why)
	}
}

// poll returns all completions that are there.
func (r *rig) poll() (all []rdma.WC) {
	r.t.Helper()
	var wcs [7]rdma.WC
	for {
		n := need(r.cq.Poll(wcs[:]))(r.t)
		if n == 0 {
			return all
		}
		all = append(all, wcs[:n]...)
	}
}

// end carries everything out.
func (r *rig) end() (all []rdma.WC) {
	r.t.Helper()
	for idle := 0; idle < 2; {
		idle++
		if r.far.carryOut(1<<20) > 0 {
			idle = 0
		}
		all = append(all, r.poll()...)
	}
	return all
}

// narrowed carries all out that is at the device, and reports whether slices are shorter then than the first one.
func (r *rig) narrowed() bool {
	r.t.Helper()
	before := len(r.seen)
	r.far.carryOut(len(r.far.queue))
	r.poll()
	if len(r.seen) == before {
		r.t.Fatal("nothing followed")
	}
	return r.seen[len(r.seen)-1].Len() < r.seen[0].Len()
}

// keys are the requests whose parts reached the device, in order.
func (r *rig) keys() (ids []uint32) {
	for _, w := range r.seen {
		ids = append(ids, w.RKey)
	}
	return ids
}

// reached compares the keys with those that are wanted.
func (r *rig) reached(want ...uint32) {
	r.t.Helper()
	if got := r.keys(); !slices.Equal(got, want) {
		r.t.Errorf("at the device %v, want %v", got, want)
	}
}

// tells compares the IDs of completions and, where any is named, their statuses: one stands for all.
func tells(t testing.TB, wcs []rdma.WC, ids []uint64, st ...rdma.Status) {
	t.Helper()
	if len(st) == 1 {
		st = slices.Repeat(st, len(ids))
	}
	if got, status := told(wcs); !slices.Equal(got, ids) || len(st) > 0 && !slices.Equal(status, st) {
		t.Fatalf("completions %v %v, want %v %v", got, status, ids, st)
	}
}

// told are the IDs and statuses of completions.
func told(wcs []rdma.WC) (ids []uint64, st []rdma.Status) {
	for _, wc := range wcs {
		ids, st = append(ids, wc.ID), append(st, wc.Status)
	}
	return ids, st
}

// tester is a test, or a check of package rapid.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// must ends the test with an error.
func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need is the value of a call that must not fail.
func need[T any](v T, err error) func(tester) T {
	return func(t tester) T {
		t.Helper()
		must(t, err)
		return v
	}
}
