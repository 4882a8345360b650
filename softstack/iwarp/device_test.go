package iwarp

import (
	"context"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestConfigs(t *testing.T) {
	for name, cfg := range map[string]Config{
		"iwarp(crc)":                          {},
		"iwarp(nocrc)":                        {NoCRC: true},
		"iwarp(crc,markers,rev1)":             {Markers: true, Revision: 1},
		"iwarp(nocrc,p2p,checked)":            {NoCRC: true, PeerToPeer: true, StoreAndForward: true, Revision: 2},
		"iwarp(crc,markers,p2p,checked)":      {Markers: true, PeerToPeer: true, StoreAndForward: true},
		"iwarp(nocrc,sndbuf=262144,rcvbuf=1)": {NoCRC: true, SendBuffer: 256 << 10, RecvBuffer: 1},
		"iwarp(crc,local=0)":                  {LocalBuffer: -1},
		"iwarp(crc,local=65536)":              {LocalBuffer: 64 << 10},
		"iwarp(crc,rev1,checked,sndbuf=1048576,mulpdu=128)": {Revision: 1, StoreAndForward: true, SendBuffer: 1 << 20,
			MaxULPDU: 128},
	} {
		d := need(Open(cfg))(t)
		if d.Name() != name {
			t.Errorf("%+v is %s, want %s", cfg, d.Name(), name)
		}
		must(t, d.Close())
		must(t, d.Close())
	}
	for _, cfg := range []Config{{Revision: 3}, {Revision: 1, PeerToPeer: true}, {MaxULPDU: 127}, {MaxULPDU: 65536},
		{MaxULPDU: -1}, {SendBuffer: -1}, {RecvBuffer: -1}} {
		if d, err := Open(cfg); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("open with %+v: %v, %v", cfg, d, err)
		}
	}
}

// TestClosedDevice: nothing can be made on it, and no attempt leaves a trace.
func TestClosedDevice(t *testing.T) {
	d := need(Open(Config{}))(t)
	live := need(Open(Config{}))(t)
	c := need(live.NewCQ(1))(t)
	buf := need(rdma.Alloc(1))(t)
	must(t, d.Close())
	fds := openFDs(t)
	for name, create := range map[string]func() error{
		"pd":     func() error { _, err := d.AllocPD(); return err },
		"cq":     func() error { _, err := d.NewCQ(1); return err },
		"srq":    func() error { _, err := d.NewSRQ(rdma.SRQConfig{Depth: 1}); return err },
		"mr":     func() error { _, err := d.RegMR(0, buf, 0); return err },
		"listen": func() error { _, err := d.Listen(context.Background(), "127.0.0.1:0", 1); return err },
	} {
		if err := create(); !errors.Is(err, rdma.ErrClosed) {
			t.Errorf("%s on a closed device: %v", name, err)
		}
	}
	if _, err := d.NewQP(rdma.QPConfig{SendCQ: c, RecvCQ: c}); !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("qp with the CQ of another device: %v", err)
	}
	if n := openFDs(t); n != fds {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	must(t, c.Close())
	must(t, live.Close())
	buf.Free()
}

// TestSendOpcodes: each kind of send has its opcode and its Invalidate STag.
func TestSendOpcodes(t *testing.T) {
	e := newEnd(t, Config{}, rdma.QPConfig{})
	p := scripted(t, e, 1, 1)
	for i, c := range []struct {
		op    rdma.Opcode
		flags rdma.SendFlags
		want  rdmap.Opcode
	}{
		{rdma.OpSend, 0, rdmap.OpSend},
		{rdma.OpSend, rdma.Solicited, rdmap.OpSendSE},
		{rdma.OpSendInv, 0, rdmap.OpSendInv},
		{rdma.OpSendInv, rdma.Solicited, rdmap.OpSendSEInv},
	} {
		e.post(rdma.SendWR{ID: uint64(i), Op: c.op, Flags: c.flags, InvKey: 0xabcd})
		stag := uint32(0)
		if c.op == rdma.OpSendInv {
			stag = 0xabcd
		}
		if h := expect(t, p, c.want).UntaggedHeader(); h.InvSTag != stag || h.MSN != uint32(i+1) {
			t.Errorf("%v: header %+v", c.want, h)
		}
	}
}

// TestUnansweredRequest: a request that nobody answers is refused, and a late answer is an error.
func TestUnansweredRequest(t *testing.T) {
	e, l := host(t, Config{})
	for _, taken := range []bool{true, false} {
		p := dial(t, l)
		must(t, p.WriteStartup(request(nil)))
		queue := l.(*listener)
		eventually(t, "the request", func() bool { return queue.Waiting() == 1 })
		r := need(queue.Next(t.Context()))(t)
		if !taken {
			must(t, queue.Offer(r))
		}
		r.expire.Reset(0) // as after answerTimeout
		f := need(p.ReadStartup())(t)
		if !f.Reject {
			t.Errorf("answered by %+v", f)
		}
		if taken {
			if _, err := r.Accept(t.Context(), e.qp, rdma.ConnParam{}); !errors.Is(err, rdma.ErrState) {
				t.Errorf("late accept: %v", err)
			}
			if err := r.Reject(t.Context(), nil); !errors.Is(err, rdma.ErrState) {
				t.Errorf("late reject: %v", err)
			}
		}
	}
	// Accept passes over the one that expired in the queue.
	done := e.accept(l, rdma.ConnParam{})
	a := newEnd(t, Config{}, rdma.QPConfig{})
	need(a.qp.Connect(t.Context(), l.Addr(), rdma.ConnParam{}))(t)
	must(t, <-done)
}

// A QP whose reader panics ends alone: its peer sees the end, and another QP of the device works.
func TestAPanicEndsOneQueuePairAlone(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	c, d := newEnd(t, Config{}, rdma.QPConfig{}), newEndOn(t, b.dev, rdma.QPConfig{})
	defer d.free()
	join(t, c, d)
	q := b.qp.(*qp)
	q.mu.Lock()
	q.irq = fifo{} // without room for a read
	q.mu.Unlock()
	a.post(a.remote(rdma.OpRead, 2, 0, 8, b))
	eventually(t, "the end of the QP", func() bool {
		a.cq.Poll(a.wcs)
		b.cq.Poll(b.wcs)
		return q.State() == rdma.QPErr
	})
	d.postRecv(3, d.sge(0, 8))
	c.post(rdma.SendWR{ID: 4, Op: rdma.OpSend, Flags: rdma.Signaled, SGE: [4]rdma.SGE{c.sge(0, 8)}, NumSGE: 1})
	d.want(c, rdma.WCRecv, 3, rdma.StatusSuccess)
}
