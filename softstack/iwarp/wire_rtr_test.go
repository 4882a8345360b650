package iwarp

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestWireResponderWaits: W-09, a responder's send waits for the first good FPDU, whatever it is.
func TestWireResponderWaits(t *testing.T) {
	for name, first := range map[string]*wiretest.Segment{
		"send":         wiretest.Send(1, []byte("x")),
		"write":        wiretest.Write(0, 0, nil),
		"read request": wiretest.ReadRequest(1, rdmap.ReadRequest{}),
	} {
		t.Run(name, func(t *testing.T) {
			e, l := host(t, Config{})
			e.postRecv(1, e.sge(0, 64))
			p := e.initiated(t, l, rdma.ConnParam{IRD: 1, ORD: 1},
				&mpa.Frame{Rev: 2, CRC: true, Enhanced: true, Enh: mpa.Enhanced{IRD: 1, ORD: 1}})
			for id := uint64(10); id < 13; id++ {
				e.post(rdma.SendWR{ID: id, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, 8)}})
			}
			for range 100 {
				e.cq.Poll(e.wcs)
			}
			must(t, p.Quiet(30*time.Millisecond))
			must(t, p.Send(first))
			if name == "send" {
				e.want(nil, rdma.WCRecv, 1, rdma.StatusSuccess)
			}
			for id := uint64(10); id < 13; id++ {
				e.want(nil, rdma.WCSend, id, rdma.StatusSuccess)
			}
			for sends := 0; sends < 3; {
				if need(p.Next())(t).Op() == rdmap.OpSend {
					sends++
				}
			}
			clean(t, p)
		})
	}
}

// TestWireWaitingResponderCloses: a held send is flushed and nothing is sent.
func TestWireWaitingResponderCloses(t *testing.T) {
	e, l := host(t, Config{})
	p := e.initiated(t, l, rdma.ConnParam{}, &mpa.Frame{Rev: 2, CRC: true, Enhanced: true})
	e.post(rdma.SendWR{ID: 1, Op: rdma.OpSend})
	must(t, e.qp.Disconnect(t.Context()))
	e.want(nil, rdma.WCSend, 1, rdma.StatusWRFlushErr)
	if end := p.Finish(); end.Kind != wiretest.EndFIN || len(end.FPDUs) != 0 {
		t.Errorf("the peer saw %v and %v", end.FPDUs, end.Kind)
	}
}

// TestWireRTR: the initiator opens a peer-to-peer stream with the indication agreed (RFC 6581 §9.2).
func TestWireRTR(t *testing.T) {
	for _, c := range []struct {
		name string
		ord  uint16 // the Reply's C and D bits
		op   rdmap.Opcode
	}{{"write", 0x8001, rdmap.OpWrite}, {"read", 0x4001, rdmap.OpReadReq}, {"both offered", 0xc001, rdmap.OpWrite}} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnd(t, Config{PeerToPeer: true}, rdma.QPConfig{})
			e.postRecv(1, e.sge(0, 64))
			p, req := e.connectTo(t, rdma.ConnParam{IRD: 1, ORD: 1}, func(s *wiretest.Startup) {
				s.Private = wiretest.EnhancedWords(0x8001, c.ord)
			})
			if !req.Enh.PeerToPeer || !req.Enh.RTRWrite || !req.Enh.RTRRead {
				t.Errorf("request %+v", req.Enh)
			}
			p.FullOperation(true, false, false)
			f := need(p.Next())(t)
			if f.Op() != c.op || c.op == rdmap.OpWrite && len(f.Payload()) != 0 || c.op == rdmap.OpReadReq &&
				rdmap.GetReadRequest(f.Payload()).Size != 0 {
				t.Errorf("opened by %v, want a zero-length %v", f, c.op)
			}
			must(t, p.Send(wiretest.Send(1, []byte("first"))))
			e.want(nil, rdma.WCRecv, 1, rdma.StatusSuccess)
			// A read of the application and the RTR read are answered in order.
			e.post(rdma.SendWR{ID: 2, Op: rdma.OpRead, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(100, 5)}, RKey: 9,
				RemoteAddr: 9})
			if c.op == rdmap.OpReadReq {
				r := rdmap.GetReadRequest(f.Payload())
				must(t, p.Send(wiretest.ReadResponse(r.SinkSTag, r.SinkTO, nil)))
			}
			f = need(p.Next())(t)
			r := rdmap.GetReadRequest(f.Payload())
			must(t, p.Send(wiretest.ReadResponse(r.SinkSTag, r.SinkTO, []byte("bytes"))))
			e.want(nil, rdma.WCRead, 2, rdma.StatusSuccess)
			equal(t, "read", e.bytes(100, 5), []byte("bytes"))
			clean(t, p)
		})
	}
}

// TestWireRTRAnswered: the responder names one indication that both know, and takes any first FPDU (W-17, W-18).
func TestWireRTRAnswered(t *testing.T) {
	write, read := wiretest.Write(1, 0, nil), wiretest.ReadRequest(1, rdmap.ReadRequest{SinkSTag: 1, SrcSTag: 1})
	for _, c := range []struct {
		name         string
		ird, ord     uint16 // the Request's words
		wantW, wantR bool
		first        *wiretest.Segment
	}{
		{"write", 0x8001, 0x8001, true, false, write},
		{"read", 0x8001, 0x4001, false, true, read},
		{"both", 0x8001, 0xc001, true, false, write},
		{"W-17 read where write was agreed", 0x8001, 0xc001, true, false, read},
		{"W-17 write where read was agreed", 0x8001, 0x4001, false, true, write},
		{"W-18 a message", 0x8001, 0x8001, true, false, wiretest.Send(1, []byte("x"))},
		{"send only", 0xc001, 0x0001, true, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, l := host(t, Config{})
			e.postRecv(1, e.sge(0, 64))
			done := e.accept(l, rdma.ConnParam{ORD: 1})
			p := dial(t, l)
			must(t, p.WriteStartup(request(func(s *wiretest.Startup) {
				s.Private = wiretest.EnhancedWords(c.ird, c.ord)
			})))
			f := need(p.ReadStartup())(t)
			must(t, <-done)
			if !f.Enh.PeerToPeer || f.Enh.RTRSend || f.Enh.RTRWrite != c.wantW || f.Enh.RTRRead != c.wantR {
				t.Errorf("answered by %+v", f.Enh)
			}
			if c.first == nil {
				return // nothing in common: the initiator gives up
			}
			if c.wantR && f.Enh.IRD < 1 {
				t.Errorf("ird %d has no place for the rtr", f.Enh.IRD)
			}
			p.FullOperation(true, false, false)
			e.post(rdma.SendWR{ID: 5, Op: rdma.OpSend})
			must(t, p.Quiet(10*time.Millisecond))
			must(t, p.Send(c.first))
			if c.name == "W-17 read where write was agreed" {
				// IRD is 0 here, so a read has no place (RFC 5040 §6.1).
				if codes := p.Finish(); len(codes.Terminates()) != 1 ||
					codes.Terminates()[0] != rdmap.TermUntaggedNoBuffer {
					t.Errorf("the peer saw %v", codes.FPDUs)
				}
				return
			}
			if c.first.ULPDU()[1]&0xf == byte(rdmap.OpSend) {
				e.want(nil, rdma.WCRecv, 1, rdma.StatusSuccess)
			}
			e.want(nil, rdma.WCSend, 5, rdma.StatusSuccess)
			for need(p.Next())(t).Op() != rdmap.OpSend {
			}
			clean(t, p)
		})
	}
}
