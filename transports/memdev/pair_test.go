package memdev

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// every right there is, for tests about something else.
const allAccess = rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead | rdma.RemoteAtomic | rdma.RemoteInvalidate

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

type side struct {
	t      testing.TB
	dev    *Device
	qp     rdma.QP
	sq, rq rdma.CQ
	buf    rdma.Buffer
	mr     rdma.MR
	param  rdma.ConnParam
}

// setup says how a side differs from the ordinary.
type setup struct {
	qp    rdma.QPConfig // CQs are filled in
	cq    int           // depth, default 64
	size  int           // of the buffer, default 4096
	param rdma.ConnParam
	mr    rdma.Access // default allAccess
	srq   int         // depth of an SRQ of its own; 0 none
}

func ordinary() setup {
	return setup{cq: 64, size: 4096, mr: allAccess, param: rdma.ConnParam{IRD: 16, ORD: 16},
		qp: rdma.QPConfig{SendDepth: 16, RecvDepth: 16, MaxInline: 64}}
}

func newSide(t testing.TB, f *Fabric, name string, s setup) *side {
	t.Helper()
	d := must(f.Open(name))(t)
	e := &side{t: t, dev: d, param: s.param}
	e.sq = must(d.NewCQ(s.cq))(t)
	e.rq = must(d.NewCQ(s.cq))(t)
	cfg := s.qp
	cfg.SendCQ, cfg.RecvCQ = e.sq, e.rq
	if s.srq > 0 {
		cfg.SRQ = must(d.NewSRQ(rdma.SRQConfig{Depth: s.srq}))(t)
	}
	e.qp = must(d.NewQP(cfg))(t)
	e.buf = must(rdma.Alloc(s.size))(t)
	e.mr = must(d.RegMR(0, e.buf, s.mr))(t)
	t.Cleanup(func() {
		ok(t, e.qp.Close())
		ok(t, e.sq.Close())
		ok(t, e.rq.Close())
		if cfg.SRQ != nil {
			ok(t, cfg.SRQ.Close())
		}
		ok(t, e.mr.Close())
		ok(t, d.Close())
		ok(t, e.buf.Free())
	})
	return e
}

func newPair(t testing.TB, cfg Config, edits ...func(a, b *setup)) (a, b *side, f *Fabric) {
	t.Helper()
	f = NewFabric(cfg)
	sa, sb := ordinary(), ordinary()
	for _, e := range edits {
		e(&sa, &sb)
	}
	a, b = newSide(t, f, "a", sa), newSide(t, f, "b", sb)
	connect(t, a, b)
	return a, b, f
}

func connect(t testing.TB, a, b *side) {
	t.Helper()
	ctx := soon(t)
	l := must(b.dev.Listen(ctx, "", 1))(t)
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			b.param, err = r.Accept(ctx, b.qp, b.param)
		}
		accepted <- err
	}()
	a.param = must(a.qp.Connect(ctx, l.Addr(), a.param))(t)
	ok(t, <-accepted)
	ok(t, l.Close())
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fails(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
}

func errOf[T any](_ T, err error) error { return err }

// takes wants what a post or a poll answers: how many, and the error itself.
func takes(t testing.TB, what string, want int, wantErr error) func(int, error) {
	t.Helper()
	return func(n int, err error) {
		t.Helper()
		if n != want || err != wantErr {
			t.Errorf("%s = %d, %v, want %d, %v", what, n, err, want, wantErr)
		}
	}
}

func (e *side) sge(off, n int) rdma.SGE {
	return rdma.SGE{Addr: e.mr.Addr() + uint64(off), Len: uint32(n), LKey: e.mr.LKey()}
}

func wr(op rdma.Opcode, id uint64, sges ...rdma.SGE) rdma.SendWR {
	w := rdma.SendWR{ID: id, Op: op, Flags: rdma.Signaled, NumSGE: uint8(len(sges))}
	copy(w.SGE[:], sges)
	return w
}

func (e *side) at(off int, w rdma.SendWR) rdma.SendWR {
	w.RemoteAddr, w.RKey = e.mr.Addr()+uint64(off), e.mr.RKey()
	return w
}

func (e *side) post(wrs ...rdma.SendWR) {
	e.t.Helper()
	if n, err := e.qp.PostSend(wrs); n != len(wrs) || err != nil {
		e.t.Fatalf("PostSend(%d requests) = %d, %v", len(wrs), n, err)
	}
}

func (e *side) recv(id uint64, sges ...rdma.SGE) {
	e.t.Helper()
	w := rdma.RecvWR{ID: id, NumSGE: uint8(len(sges))}
	copy(w.SGE[:], sges)
	if n, err := e.qp.PostRecv([]rdma.RecvWR{w}); n != 1 || err != nil {
		e.t.Fatalf("PostRecv(id %d) = %d, %v", id, n, err)
	}
}

func drain(t testing.TB, c rdma.CQ) []rdma.WC {
	t.Helper()
	var all []rdma.WC
	for {
		var wcs [16]rdma.WC
		n, err := c.Poll(wcs[:])
		ok(t, err)
		if n == 0 {
			return all
		}
		all = append(all, wcs[:n]...)
	}
}

type outcome struct {
	ID     uint64
	Status rdma.Status
}

func outcomes(t testing.TB, c rdma.CQ) (out []outcome) {
	t.Helper()
	for _, wc := range drain(t, c) {
		out = append(out, outcome{wc.ID, wc.Status})
	}
	return out
}

func good(ids ...uint64) []outcome    { return all(rdma.StatusSuccess, ids...) }
func flushed(ids ...uint64) []outcome { return all(rdma.StatusWRFlushErr, ids...) }

func all(st rdma.Status, ids ...uint64) (out []outcome) {
	for _, id := range ids {
		out = append(out, outcome{id, st})
	}
	return out
}

func (e *side) events() (out []rdma.EventType) {
	for ev, ok := e.dev.Event(); ok; ev, ok = e.dev.Event() {
		out = append(out, ev.Type)
	}
	return out
}
