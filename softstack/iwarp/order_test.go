package iwarp

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// answer makes the scripted peer answer a read request.
func answer(t *testing.T, p *wiretest.Peer, f *wiretest.FPDU, fill byte) {
	t.Helper()
	if f.Op() != rdmap.OpReadReq {
		t.Fatalf("got %v, want a read request", f)
	}
	r := rdmap.GetReadRequest(f.Payload())
	must(t, p.Send(wiretest.ReadResponse(r.SinkSTag, r.SinkTO, bytes.Repeat([]byte{fill}, int(r.Size)))))
}

// expect reads an FPDU of the given opcode.
func expect(t *testing.T, p *wiretest.Peer, op rdmap.Opcode) *wiretest.FPDU {
	t.Helper()
	f, err := p.Next()
	must(t, err)
	if f.Op() != op {
		t.Fatalf("got %v, want %v", f, op)
	}
	return f
}

// scripted connects e as initiator to a scripted peer with the given depths.
func scripted(t *testing.T, e *end, ird, ord uint16) *wiretest.Peer {
	t.Helper()
	p, _ := e.connectTo(t, rdma.ConnParam{IRD: 16, ORD: 16}, func(s *wiretest.Startup) {
		s.Private = wiretest.EnhancedWords(ird, ord)
	})
	p.FullOperation(true, false, false)
	p.Check.ORD = int(ird)
	t.Cleanup(func() {
		for _, f := range p.Check.Faults() {
			t.Errorf("on the wire: %s", f)
		}
	})
	return p
}

// TestReadsStayWithinORD: RFC 5040 §6.1, seen from the wire; the held read does
// not stop what came before it, and holds what comes behind it.
func TestReadsStayWithinORD(t *testing.T) {
	for _, ord := range []uint16{1, 2, 5} {
		e := newEnd(t, Config{}, rdma.QPConfig{})
		p := scripted(t, e, ord, 4)
		const n = 12
		for i := range n {
			e.post(rdma.SendWR{ID: uint64(i), Op: rdma.OpRead, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(i*64, 64)}, RKey: 3})
		}
		e.post(rdma.SendWR{ID: n, Op: rdma.OpWrite})
		var waiting []*wiretest.FPDU
		for answered := 0; answered < n; {
			for len(waiting) < int(ord) && answered+len(waiting) < n {
				waiting = append(waiting, expect(t, p, rdmap.OpReadReq))
			}
			if answered+len(waiting) < n {
				must(t, p.Quiet(5*time.Millisecond))
			}
			answer(t, p, waiting[0], byte(answered))
			e.want(nil, rdma.WCRead, uint64(answered), rdma.StatusSuccess)
			if b := e.bytes(answered*64, 64); b[0] != byte(answered) || b[63] != byte(answered) {
				t.Errorf("read %d fetched %x", answered, b[0])
			}
			waiting = waiting[1:]
			answered++
		}
		expect(t, p, rdmap.OpWrite)
		e.want(nil, rdma.WCWrite, n, rdma.StatusSuccess)
	}
}

// TestFence: a fenced request waits for the reads before it, an unfenced one
// does not; completions keep the order of the posts either way.
func TestFence(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		e := newEnd(t, Config{}, rdma.QPConfig{})
		p := scripted(t, e, 4, 4)
		e.post(rdma.SendWR{ID: 1, Op: rdma.OpRead, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, 8)}})
		wr := rdma.SendWR{ID: 2, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, 8)}}
		if fenced {
			wr.Flags = rdma.Fence
		}
		e.post(wr)
		e.post(rdma.SendWR{ID: 3, Op: rdma.OpWrite})
		req := expect(t, p, rdmap.OpReadReq)
		if fenced {
			must(t, p.Quiet(10*time.Millisecond))
		} else {
			expect(t, p, rdmap.OpSend)
			expect(t, p, rdmap.OpWrite)
		}
		if k, _ := e.cq.Poll(e.wcs); k != 0 {
			t.Errorf("fenced %t: %+v before the read was answered", fenced, e.wcs[:k])
		}
		answer(t, p, req, 0x5a)
		if fenced {
			// It carries what the read fetched.
			if f := expect(t, p, rdmap.OpSend); f.Payload()[0] != 0x5a {
				t.Errorf("the fenced send carries %x", f.Payload())
			}
			expect(t, p, rdmap.OpWrite)
		}
		e.want(nil, rdma.WCRead, 1, rdma.StatusSuccess)
		e.want(nil, rdma.WCSend, 2, rdma.StatusSuccess)
		e.want(nil, rdma.WCWrite, 3, rdma.StatusSuccess)
	}
}

// TestInline: the octets are taken during the post, without a key, and the
// limits hold.
func TestInline(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{MaxInline: 64, SendDepth: 8, RecvDepth: 8})
	b.postRecv(1, b.sge(0, 64))
	a.fill(1, 0, 100)
	want := bytes.Clone(append(a.bytes(0, 30), a.bytes(50, 34)...))
	a.fill(1, 0, 100)
	wr := rdma.SendWR{ID: 1, Op: rdma.OpSend, Flags: rdma.Inline | rdma.Signaled, NumSGE: 2}
	wr.SGE[0] = rdma.SGE{Addr: a.buf.Addr(), Len: 30} // no key
	wr.SGE[1] = rdma.SGE{Addr: a.buf.Addr() + 50, Len: 34}
	must(t, a.qp.(*qp).Drain()) // held, so that only the post can have taken them
	_, err := a.qp.PostSend([]rdma.SendWR{wr})
	must(t, err)
	clear(a.bytes(0, 100))
	must(t, a.qp.Resume())
	a.want(b, rdma.WCSend, 1, rdma.StatusSuccess)
	b.want(a, rdma.WCRecv, 1, rdma.StatusSuccess)
	equal(t, "inline", b.bytes(0, 64), want)

	wr.Op, wr.RKey, wr.RemoteAddr = rdma.OpWrite, b.mr.RKey(), b.mr.Addr()+128
	copy(a.bytes(0, 100), want)
	_, err = a.qp.PostSend([]rdma.SendWR{wr})
	must(t, err)
	a.want(b, rdma.WCWrite, 1, rdma.StatusSuccess)
	a.post(rdma.SendWR{ID: 2, Op: rdma.OpRead, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()})
	a.want(b, rdma.WCRead, 2, rdma.StatusSuccess)
	equal(t, "inline write", b.bytes(128, 30), want[:30])

	for name, bend := range map[string]func(w *rdma.SendWR){
		"one octet too many": func(w *rdma.SendWR) { w.SGE[1].Len++ },
		"read":               func(w *rdma.SendWR) { w.Op, w.NumSGE = rdma.OpRead, 1 },
		"no such memory":     func(w *rdma.SendWR) { w.SGE[0].Addr = 16 },
	} {
		bad := wr
		bend(&bad)
		if n, err := a.qp.PostSend([]rdma.SendWR{bad}); n != 0 || !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

// TestPostRefusals: what the device does not declare is refused at the post.
func TestPostRefusals(t *testing.T) {
	a, _ := pair(t, Config{Extensions: ExtNone}, rdma.QPConfig{})
	for _, c := range []struct {
		wr   rdma.SendWR
		want error
	}{
		{rdma.SendWR{Op: rdma.OpSendImm}, rdma.ErrNotSupported},
		{rdma.SendWR{Op: rdma.OpWriteImm}, rdma.ErrNotSupported},
		{rdma.SendWR{Op: rdma.OpFetchAdd}, rdma.ErrNotSupported},
		{rdma.SendWR{Op: rdma.OpCmpSwap}, rdma.ErrNotSupported},
		{rdma.SendWR{Op: 200}, rdma.ErrNotSupported},
		{rdma.SendWR{Op: rdma.OpSend, NumSGE: 5}, rdma.ErrInvalid},
		{rdma.SendWR{Op: rdma.OpRead, NumSGE: 2}, rdma.ErrInvalid},
		{rdma.SendWR{Op: rdma.OpSend, NumSGE: 2, SGE: [4]rdma.SGE{{Len: 1 << 31}, {Len: 1 << 31}}}, rdma.ErrInvalid},
	} {
		if n, err := a.qp.PostSend([]rdma.SendWR{{ID: 1, Op: rdma.OpWrite}, c.wr, {ID: 2, Op: rdma.OpWrite}}); n != 1 ||
			!errors.Is(err, c.want) {
			t.Errorf("post %v: %d, %v, want 1 and %v", c.wr.Op, n, err, c.want)
		}
	}
	if n, err := a.qp.PostRecv([]rdma.RecvWR{{}, {NumSGE: 5}}); n != 1 || !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("post receive with five SGEs: %d, %v", n, err)
	}
	idle := newEnd(t, Config{}, rdma.QPConfig{})
	if n, err := idle.qp.PostSend([]rdma.SendWR{{}}); n != 0 || err != rdma.ErrState {
		t.Errorf("post in INIT: %d, %v", n, err)
	}
}

// TestDrain: SQD finishes what was begun, holds the rest, keeps receiving and
// answering, and says once that it is done.
func TestDrain(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	must(t, a.qp.Drain())
	if s := a.qp.State(); s != rdma.QPSQD {
		t.Errorf("state %v", s)
	}
	if ev, ok := a.dev.Event(); !ok || ev.Type != rdma.EventSQDrained || ev.QPNum != a.qp.Num() {
		t.Errorf("event %+v %t", ev, ok)
	}
	b.postRecv(1, b.sge(0, 8))
	a.postRecv(2, a.sge(64, 8))
	a.post(rdma.SendWR{ID: 1, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}})
	// The passive side waits for an FPDU, which a cannot send: let it in by hand.
	must(t, a.qp.Resume())
	b.want(a, rdma.WCRecv, 1, rdma.StatusSuccess)
	a.want(b, rdma.WCSend, 1, rdma.StatusSuccess)

	must(t, a.qp.Drain())
	a.post(rdma.SendWR{ID: 3, Op: rdma.OpWrite, RKey: 1})
	b.post(rdma.SendWR{ID: 2, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{b.sge(0, 8)}})
	b.post(rdma.SendWR{ID: 4, Op: rdma.OpRead, NumSGE: 1, SGE: [4]rdma.SGE{b.sge(0, 8)}, RKey: a.mr.RKey(),
		RemoteAddr: a.mr.Addr()})
	b.want(a, rdma.WCSend, 2, rdma.StatusSuccess)
	b.want(a, rdma.WCRead, 4, rdma.StatusSuccess)
	a.want(b, rdma.WCRecv, 2, rdma.StatusSuccess)
	for range 200 {
		if k, _ := a.cq.Poll(a.wcs); k != 0 {
			t.Fatalf("a held request completed: %+v", a.wcs[0])
		}
	}
	must(t, a.qp.Resume())
	a.want(b, rdma.WCWrite, 3, rdma.StatusSuccess)
	if err := a.qp.Resume(); !errors.Is(err, rdma.ErrState) {
		t.Errorf("resume twice: %v", err)
	}

	must(t, a.qp.Drain())
	a.post(rdma.SendWR{ID: 5, Op: rdma.OpWrite})
	must(t, a.qp.Fail())
	a.want(b, 0, 5, rdma.StatusWRFlushErr)
}

// TestDrainWaitsForWhatBegan: the event comes when the message under way has
// left, and reads that were begun are answered.
func TestDrainWaitsForWhatBegan(t *testing.T) {
	e := newEnd(t, Config{SendBuffer: 64 << 10}, rdma.QPConfig{})
	p := scripted(t, e, 4, 4)
	e.post(rdma.SendWR{ID: 1, Op: rdma.OpRead, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, 8)}})
	req := expect(t, p, rdmap.OpReadReq)
	must(t, e.qp.Drain())
	for range 50 {
		e.cq.Poll(e.wcs)
	}
	if ev, ok := e.dev.Event(); ok {
		t.Errorf("%v with a read outstanding", ev.Type)
	}
	answer(t, p, req, 1)
	e.want(nil, rdma.WCRead, 1, rdma.StatusSuccess)
	drained := func() bool {
		ev, ok := e.dev.Event()
		return ok && ev.Type == rdma.EventSQDrained
	}
	eventually(t, "drained after the read", drained)
	must(t, e.qp.Resume())

	// Messages longer than the sockets hold; Drain comes in the middle of one.
	for id := uint64(2); id < 7; id++ {
		e.post(rdma.SendWR{ID: id, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, window)}, RKey: 1})
	}
	q := e.qp.(*qp)
	middle := func() bool { return q.tx.blocked && q.tx.src == srcSQ && q.tx.off > 0 }
	eventually(t, "a full socket in the middle of a message", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return middle()
	})
	must(t, e.qp.Drain())
	q.mu.Lock()
	messages := int(q.sqNext) // place 0 was the read, place sqNext is under way
	if !middle() {
		t.Fatal("the message ended though nobody read")
	}
	q.mu.Unlock()
	e.cq.Poll(nil)
	if ev, ok := e.dev.Event(); ok {
		t.Errorf("%v in the middle of a message", ev.Type)
	}
	for n := 0; n < messages*window; {
		n += len(expect(t, p, rdmap.OpWrite).Payload())
	}
	eventually(t, "drained after the message", drained)
	must(t, p.Quiet(10*time.Millisecond))
	for i := range messages {
		e.want(nil, rdma.WCWrite, uint64(i+2), rdma.StatusSuccess)
	}
	if k, _ := e.cq.Poll(e.wcs); k != 0 {
		t.Errorf("held requests completed: %+v", e.wcs[:k])
	}
}

// TestPassiveFirst: FeatPassiveFirst is declared and holds with the peer-to-peer
// model, and only with it.
func TestPassiveFirst(t *testing.T) {
	for _, p2p := range []bool{false, true} {
		a, b := pair(t, Config{PeerToPeer: p2p}, rdma.QPConfig{})
		if got := a.dev.Caps().Features.Has(rdma.FeatPassiveFirst); got != p2p {
			t.Errorf("p2p %t: declared %t", p2p, got)
		}
		a.postRecv(1, a.sge(0, 8))
		b.post(rdma.SendWR{ID: 1, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{b.sge(0, 8)}})
		if !p2p {
			for range 300 {
				a.cq.Poll(nil)
				if k, _ := b.cq.Poll(b.wcs); k != 0 {
					t.Fatal("the passive side sent first")
				}
			}
			a.post(rdma.SendWR{ID: 2, Op: rdma.OpWrite})
			a.want(b, rdma.WCWrite, 2, rdma.StatusSuccess)
		}
		b.want(a, rdma.WCSend, 1, rdma.StatusSuccess)
		a.want(b, rdma.WCRecv, 1, rdma.StatusSuccess)
	}
}

// TestOnTheWire: every configuration through a proxy that checks each FPDU of
// both sides.
func TestOnTheWire(t *testing.T) {
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			a, b := newEnd(t, cfg, rdma.QPConfig{}), newEnd(t, cfg, rdma.QPConfig{})
			l, err := b.dev.Listen(t.Context(), "127.0.0.1:0", 1)
			must(t, err)
			defer l.Close()
			proxy, err := wiretest.NewProxy(l.Addr(), max(cfg.MaxULPDU, 0), testTimeout)
			must(t, err)
			done := b.accept(l, rdma.ConnParam{IRD: 2, ORD: 3})
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			_, err = a.qp.Connect(ctx, proxy.Addr(), rdma.ConnParam{IRD: 3, ORD: 8})
			must(t, err)
			must(t, <-done)
			const n = 30
			for i := range n {
				a.postRecv(uint64(recvIDs+i), a.sge(3<<20, 1<<20))
				b.postRecv(uint64(recvIDs+i), b.sge(3<<20, 1<<20))
			}
			// Rev 1 has no depths on the wire: the side with less must be known.
			reads := name != "rev1"
			for i := range n {
				for _, e := range [][2]*end{{a, b}, {b, a}} {
					wr := rdma.SendWR{ID: uint64(i), Op: []rdma.Opcode{rdma.OpSend, rdma.OpWrite, rdma.OpRead}[i%3],
						NumSGE: 1, RKey: e[1].mr.RKey(), RemoteAddr: e[1].mr.Addr()}
					if wr.Op == rdma.OpRead && !reads {
						wr.Op = rdma.OpWrite
					}
					wr.SGE[0] = e[0].sge(1<<20, sizes[i%len(sizes)]/4)
					if wr.Op == rdma.OpRead {
						wr.SGE[0] = e[0].sge(2<<20, sizes[i%len(sizes)]/4)
					}
					if i%7 == 0 {
						wr.Flags = rdma.Solicited
					}
					e[0].post(wr)
				}
			}
			sends := (n + 2) / 3
			for _, e := range []*end{a, b} {
				for range n + sends {
					if wc := e.next(nil); wc.Status != rdma.StatusSuccess {
						t.Fatalf("request %d: %v", wc.ID, wc.Status)
					}
				}
			}
			must(t, a.qp.Disconnect(ctx))
			eventually(t, "the peer to notice", func() bool { return b.qp.State() == rdma.QPErr })
			x, y := proxy.FPDUs()
			if x < n || y < n {
				t.Errorf("the proxy saw %d and %d FPDUs", x, y)
			}
			for _, f := range proxy.Close() {
				t.Errorf("on the wire: %s", f)
			}
		})
	}
}

// TestMULPDU: RFC 5044 §4.5, no segment that is not the last is shorter than 128
// octets, and the configured bound holds.
func TestMULPDU(t *testing.T) {
	for _, bound := range []int{mpa.MinMULPDU, 129, 1442, mpa.MaxULPDU} {
		e := newEnd(t, Config{MaxULPDU: bound}, rdma.QPConfig{})
		p := scripted(t, e, 1, 1)
		p.Check.MULPDU = bound
		e.fill(1, 0, 10000)
		e.post(rdma.SendWR{ID: 1, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, 10000)}})
		var got []byte
		for len(got) < 10000 {
			got = append(got, expect(t, p, rdmap.OpSend).Payload()...)
		}
		equal(t, "message", got, e.bytes(0, 10000))
	}
}
