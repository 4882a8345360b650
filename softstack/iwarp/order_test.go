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
	f := need(p.Next())(t)
	if f.Op() != op {
		t.Fatalf("got %v, want %v", f, op)
	}
	return f
}

// takeWrites reads n octets of writes.
func takeWrites(t *testing.T, p *wiretest.Peer, n int) {
	t.Helper()
	for n > 0 {
		n -= len(expect(t, p, rdmap.OpWrite).Payload())
	}
}

// clean wants nothing wrong of what the peer has read.
func clean(t *testing.T, p *wiretest.Peer) {
	t.Helper()
	for _, f := range p.Check.Faults() {
		t.Errorf("on the wire: %s", f)
	}
}

// scripted connects e as initiator to a scripted peer with the given depths, which asks for a CRC if e does.
func scripted(t *testing.T, e *end, ird, ord uint16) *wiretest.Peer {
	t.Helper()
	crc := !e.dev.cfg.NoCRC
	p, _ := e.connectTo(t, rdma.ConnParam{IRD: 16, ORD: 16}, func(s *wiretest.Startup) {
		if s.Private = wiretest.EnhancedWords(ird, ord); !crc {
			s.Flags = wiretest.FlagS
		}
	})
	p.FullOperation(crc, false, false)
	p.Check.ORD = int(ird)
	t.Cleanup(func() { clean(t, p) })
	return p
}

// TestReadsStayWithinORD: RFC 5040 §6.1; a held read holds what comes behind it, and nothing before it.
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

// TestFence: a fenced request waits for the reads before it; completions keep the order of the posts.
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

// TestRefusedPosts: lengths, inline octets and depths that are wrong, and closed queue pairs.
func TestRefusedPosts(t *testing.T) {
	a, _ := pair(t, Config{}, rdma.QPConfig{})
	for name, wr := range map[string]rdma.SendWR{
		"4 GiB together": {Op: rdma.OpSend, NumSGE: 2, SGE: [4]rdma.SGE{{Len: 1 << 31}, {Len: 1 << 31}}},
		"no such memory": {Op: rdma.OpSend, Flags: rdma.Inline, NumSGE: 1, SGE: [4]rdma.SGE{{Addr: 16, Len: 8}}},
	} {
		if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 0 || !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	q := need(a.dev.NewQP(rdma.QPConfig{SendCQ: a.cq, RecvCQ: a.cq, RecvDepth: 3}))(t)
	if n, err := q.PostRecv(make([]rdma.RecvWR, 5)); n != 3 || err != rdma.ErrQueueFull {
		t.Errorf("five receives in a queue of three: %d, %v", n, err)
	}
	must(t, q.Close())
	_, err := q.PostRecv(make([]rdma.RecvWR, 1))
	for what, err := range map[string]error{"receive": err, "fail": q.Fail(), "disconnect": q.Disconnect(t.Context())} {
		if err != rdma.ErrClosed {
			t.Errorf("%s of a closed queue pair: %v", what, err)
		}
	}
}

// TestDrainWaitsForWhatBegan: the event comes behind the message under way and the reads that were begun.
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
	q.soon(t, "a full socket in the middle of a message", middle)
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
	takeWrites(t, p, messages*window)
	eventually(t, "drained after the message", drained)
	must(t, p.Quiet(10*time.Millisecond))
	for i := range messages {
		e.want(nil, rdma.WCWrite, uint64(i+2), rdma.StatusSuccess)
	}
	if k, _ := e.cq.Poll(e.wcs); k != 0 {
		t.Errorf("held requests completed: %+v", e.wcs[:k])
	}
}

// TestOnTheWire: every configuration through a proxy that checks each FPDU of both sides.
func TestOnTheWire(t *testing.T) {
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			a, b := newEnd(t, cfg, rdma.QPConfig{}), newEnd(t, cfg, rdma.QPConfig{})
			l := need(b.dev.Listen(t.Context(), "127.0.0.1:0", 1))(t)
			defer l.Close()
			proxy := need(wiretest.NewProxy(l.Addr(), max(cfg.MaxULPDU, 0), testTimeout))(t)
			done := b.accept(l, rdma.ConnParam{IRD: 2, ORD: 3})
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			need(a.qp.Connect(ctx, proxy.Addr(), rdma.ConnParam{IRD: 3, ORD: 8}))(t)
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

// TestMULPDU: RFC 5044 §4.5, segments but the last have 128 octets at least, and the bound holds.
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
