package memdev

import (
	"context"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestRequestsRefusedAtOnce(t *testing.T) {
	a, b, _ := newPair(t, Config{})
	inline := func(op rdma.Opcode, n int) rdma.SendWR {
		w := b.at(0, wr(op, 1, a.sge(0, n)))
		w.Flags |= rdma.Inline
		return w
	}
	long := a.sge(0, 0)
	long.Len = 1 << 31
	five := wr(rdma.OpSend, 1)
	five.NumSGE = rdma.MaxSGE + 1
	flag := wr(rdma.OpSend, 1)
	flag.Flags |= 1 << 7
	unmapped := inline(rdma.OpSend, 8)
	unmapped.SGE[0].Addr = 8
	tests := map[string]rdma.SendWR{
		"unknown opcode":                  wr(rdma.Opcode(rdma.NumOpcodes), 1),
		"unknown flag":                    flag,
		"five elements":                   five,
		"longer than MaxMsg":              wr(rdma.OpSend, 1, long, a.sge(0, 1)),
		"inline longer than the QP's":     inline(rdma.OpSend, 65),
		"inline read":                     inline(rdma.OpRead, 8),
		"inline atomic":                   inline(rdma.OpFetchAdd, 8),
		"inline data at no address":       unmapped,
		"atomic with a 4-byte sink":       b.at(0, wr(rdma.OpFetchAdd, 1, a.sge(0, 4))),
		"atomic with a 16-byte sink":      b.at(0, wr(rdma.OpCmpSwap, 1, a.sge(0, 16))),
		"atomic with a sink in two parts": b.at(0, wr(rdma.OpCmpSwap, 1, a.sge(0, 4), a.sge(4, 4))),
		"atomic without sink":             b.at(0, wr(rdma.OpFetchAdd, 1)),
		"local_inv with data":             wr(rdma.OpLocalInv, 1, a.sge(0, 1)),
	}
	good1 := b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 1)))
	for name, bad := range tests {
		t.Run(name, func(t *testing.T) {
			takes(t, "PostSend", 1, rdma.ErrInvalid)(a.qp.PostSend([]rdma.SendWR{good1, bad, good1}))
			same(t, "the first stands, the third was not taken", outcomes(t, a.sq), good(1))
			same(t, "state", a.qp.State(), rdma.QPRTS)
		})
	}
	takes(t, "PostRecv with five elements", 1, rdma.ErrInvalid)(a.qp.PostRecv([]rdma.RecvWR{{}, {NumSGE: 5}}))
}

func TestObjectsRefuseWhatTheyCannotBe(t *testing.T) {
	f := NewFabric(Config{})
	d, other := must(f.Open("d"))(t), must(f.Open("other"))(t)
	cq := must(d.NewCQ(1))(t)
	foreign := must(other.NewCQ(1))(t)
	foreignSRQ := must(other.NewSRQ(rdma.SRQConfig{Depth: 1}))(t)
	closed := must(d.NewCQ(1))(t)
	ok(t, closed.Close())
	buf := must(rdma.Alloc(64))(t)
	freed := must(rdma.Alloc(64))(t)
	ok(t, freed.Free())
	defer buf.Free()

	qp := func(edit func(c *rdma.QPConfig)) error {
		c := rdma.QPConfig{SendCQ: cq, RecvCQ: cq}
		edit(&c)
		q, err := d.NewQP(c)
		if err == nil {
			q.Close()
		}
		return err
	}
	newCQ := func(n int) error { return errOf(d.NewCQ(n)) }
	newSRQ := func(n int) error { return errOf(d.NewSRQ(rdma.SRQConfig{Depth: n})) }
	regMR := func(pd rdma.PD, b rdma.Buffer, x rdma.Access) error {
		m, err := d.RegMR(pd, b, x)
		if err == nil {
			m.Close()
		}
		return err
	}
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"cq of 0", newCQ(0), rdma.ErrInvalid},
		{"cq of -1", newCQ(-1), rdma.ErrInvalid},
		{"cq over the limit", newCQ(1<<20 + 1), rdma.ErrInvalid},
		{"srq of 0", newSRQ(0), rdma.ErrInvalid},
		{"srq over the limit", newSRQ(16385), rdma.ErrInvalid},
		{"qp with zero depths", qp(func(c *rdma.QPConfig) {}), nil},
		{"qp at the limits", qp(func(c *rdma.QPConfig) {
			c.SendDepth, c.RecvDepth, c.MaxInline = 16384, 16384, 512
		}), nil},
		{"qp with a send queue over the limit", qp(func(c *rdma.QPConfig) { c.SendDepth = 16385 }), rdma.ErrInvalid},
		{"qp with a receive queue over the limit", qp(func(c *rdma.QPConfig) { c.RecvDepth = 16385 }), rdma.ErrInvalid},
		{"qp with a negative depth", qp(func(c *rdma.QPConfig) { c.SendDepth = -1 }), rdma.ErrInvalid},
		{"qp with too much inline", qp(func(c *rdma.QPConfig) { c.MaxInline = 513 }), rdma.ErrInvalid},
		{"qp without a cq", qp(func(c *rdma.QPConfig) { c.SendCQ = nil }), rdma.ErrInvalid},
		{"qp with the cq of another device", qp(func(c *rdma.QPConfig) { c.RecvCQ = foreign }), rdma.ErrInvalid},
		{"qp with a closed cq", qp(func(c *rdma.QPConfig) { c.RecvCQ = closed }), rdma.ErrClosed},
		{"qp with the srq of another device", qp(func(c *rdma.QPConfig) { c.SRQ = foreignSRQ }), rdma.ErrInvalid},
		{"qp in no domain", qp(func(c *rdma.QPConfig) { c.PD = 9 }), rdma.ErrInvalid},
		{"qp with unknown rights", qp(func(c *rdma.QPConfig) { c.Access = 1 << 7 }), rdma.ErrInvalid},
		{"mr of nothing", regMR(0, rdma.Buffer{}, 0), rdma.ErrInvalid},
		{"mr of freed memory", regMR(0, freed, 0), rdma.ErrInvalid},
		{"mr in no domain", regMR(9, buf, 0), rdma.ErrInvalid},
		{"mr with remote write and no local write", regMR(0, buf, rdma.RemoteWrite), rdma.ErrInvalid},
		{"mr with remote atomic and no local write", regMR(0, buf, rdma.RemoteAtomic), rdma.ErrInvalid},
		{"mr with remote read only", regMR(0, buf, rdma.RemoteRead), nil},
		{"free of domain 0", d.FreePD(0), rdma.ErrInvalid},
		{"free of no domain", d.FreePD(9), rdma.ErrInvalid},
	}
	for _, tc := range tests {
		if !errors.Is(tc.err, tc.want) || (tc.want == nil) != (tc.err == nil) {
			t.Errorf("%s: %v, want %v", tc.name, tc.err, tc.want)
		}
	}
	ok(t, cq.Close())
	if d.open != 0 {
		t.Errorf("%d objects leaked", d.open)
	}
	ok(t, d.Close())
}

func TestParentsOutliveTheirChildren(t *testing.T) {
	f := NewFabric(Config{})
	d := must(f.Open("d"))(t)
	pd := must(d.AllocPD())(t)
	cq := must(d.NewCQ(4))(t)
	srq := must(d.NewSRQ(rdma.SRQConfig{PD: pd, Depth: 1}))(t)
	q := must(d.NewQP(rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SRQ: srq}))(t)
	buf := must(rdma.Alloc(64))(t)
	defer buf.Free()
	m := must(d.RegMR(pd, buf, 0))(t)
	l := must(d.Listen(soon(t), "", 1))(t)
	fails(t, "FreePD with everything in it", d.FreePD(pd), rdma.ErrBusy)
	fails(t, "CQ.Close under a QP", cq.Close(), rdma.ErrBusy)
	fails(t, "SRQ.Close under a QP", srq.Close(), rdma.ErrBusy)
	fails(t, "Device.Close", d.Close(), rdma.ErrBusy)
	ok(t, q.Close())
	ok(t, cq.Close())
	fails(t, "FreePD with an SRQ", d.FreePD(pd), rdma.ErrBusy)
	ok(t, srq.Close())
	fails(t, "FreePD with an MR", d.FreePD(pd), rdma.ErrBusy)
	fails(t, "Device.Close with an MR", d.Close(), rdma.ErrBusy)
	ok(t, m.Close())
	ok(t, d.FreePD(pd))
	fails(t, "Device.Close with a listener", d.Close(), rdma.ErrBusy)
	ok(t, l.Close())
	for range 2 { // every Close may be called again
		for _, c := range []interface{ Close() error }{d, q, cq, srq, m, l} {
			ok(t, c.Close())
		}
	}
	closedErrs := map[string]error{"Arm": cq.Arm(false), "Wait": cq.Wait(soon(t)), "Drain": q.Drain(), "Fail": q.Fail(),
		"Disconnect": q.Disconnect(soon(t)), "SRQ.Arm": srq.Arm(0), "FreePD": d.FreePD(pd),
		"Poll": errOf(cq.Poll(make([]rdma.WC, 1))), "Listen": errOf(d.Listen(context.Background(), "", 1)),
		"NewCQ": errOf(d.NewCQ(1)), "AllocPD": errOf(d.AllocPD()), "RegMR": errOf(d.RegMR(0, buf, 0)),
		"Connect": errOf(q.Connect(soon(t), "x", rdma.ConnParam{}))}
	for name, err := range closedErrs {
		fails(t, name+" after Close", err, rdma.ErrClosed)
	}
}

func TestNamesAreUniqueAmongOpenDevices(t *testing.T) {
	f := NewFabric(Config{})
	d := must(f.Open("x"))(t)
	fails(t, "second x", errOf(f.Open("x")), rdma.ErrAddrInUse)
	ok(t, d.Close())
	must(f.Open("x"))(t)
	if a, b := must(f.Open(""))(t), must(f.Open(""))(t); a.Host() == b.Host() {
		t.Errorf("two devices named %s", a.Host())
	}
}

func TestDataPathAllocatesNothing(t *testing.T) {
	a, b, _ := newPair(t, Config{}, func(a, _ *setup) { a.param.RNRRetry = rnrForever })
	inline := wr(rdma.OpSend, 1, a.sge(0, 32))
	inline.Flags |= rdma.Inline
	inv := wr(rdma.OpSendImm, 1, a.sge(0, 8), a.sge(16, 8))
	loads := map[string][]rdma.SendWR{
		"send":      {wr(rdma.OpSend, 1, a.sge(0, 64))},
		"inline":    {inline},
		"send_imm":  {inv},
		"write":     {b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 64)))},
		"write_imm": {b.at(0, wr(rdma.OpWriteImm, 1, a.sge(0, 64)))},
		"read":      {b.at(0, wr(rdma.OpRead, 1, a.sge(0, 64), a.sge(128, 64)))},
		"fetch_add": {b.at(0, wr(rdma.OpFetchAdd, 1, a.sge(0, 8)))},
		"cmp_swap":  {b.at(0, wr(rdma.OpCmpSwap, 1, a.sge(0, 8)))},
		"batch of 3": {b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 64))), wr(rdma.OpSend, 2),
			b.at(0, wr(rdma.OpRead, 3, a.sge(0, 64)))},
	}
	recv := []rdma.RecvWR{{NumSGE: 1, SGE: [rdma.MaxSGE]rdma.SGE{b.sge(0, 256)}}}
	empty := []rdma.SendWR{wr(rdma.OpSend, 9)}
	wcs := make([]rdma.WC, 16)
	for name, wrs := range loads {
		for _, first := range []string{"receive first", "send first"} {
			got := testing.AllocsPerRun(100, func() {
				if first == "receive first" {
					b.qp.PostRecv(recv)
				}
				b.rq.Arm(false)
				if n, err := a.qp.PostSend(wrs); n != len(wrs) || err != nil {
					t.Fatalf("%s: PostSend = %d, %v", name, n, err)
				}
				if first == "send first" {
					b.qp.PostRecv(recv)
				}
				a.sq.Poll(wcs)
				b.rq.Poll(wcs)
				b.rq.Poll(wcs)
				if wrs[0].Op.Responds() || wrs[0].Op == rdma.OpWrite && len(wrs) == 1 {
					// The receive was not consumed: take it with an empty send.
					a.qp.PostSend(empty)
					a.sq.Poll(wcs)
					b.rq.Poll(wcs)
				}
			})
			if got != 0 {
				t.Errorf("%s, %s: %v allocations, want 0", name, first, got)
			}
		}
	}
}
