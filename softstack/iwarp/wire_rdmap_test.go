package iwarp

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestWireOpcodes: versions, opcodes and queues, beyond W-51 to W-54.
func TestWireOpcodes(t *testing.T) {
	op := codes(rdmap.TermOpcode)
	rows := []row{
		{name: "W-51 rv 0", alive: true, good: []uint64{1}, script: does(func(d *dut) {
			d.send(d.message("x").RV(0), wiretest.Write(d.target.RKey(), d.target.Addr(), []byte("y")).RV(0))
			d.received(0, "x")
			d.placed(targetOff, []byte("y"))
		})},
		{name: "W-53 large send with t", script: bent(wiretest.Tagged(rdmap.OpSend, 0, 0, pattern(9000))), want: op},
		{name: "W-53 terminate with t", script: bent(wiretest.Tagged(rdmap.OpTerminate, 0, 0, make([]byte, 4))),
			want: op, maybe: true},
		{name: "W-53 large write without t", script: bent(wiretest.Untagged(rdmap.OpWrite, 0, 1, pattern(9000))),
			want: op},
		{name: "W-54 terminate on the send queue", script: bent(wiretest.TerminateCode(rdmap.TermLocal).QN(0)),
			want: codes(rdmap.TermOpcode, rdmap.TermUntaggedQN), maybe: true},
	}
	runRows(t, rows)
}

// TestWireReads: requests the device must refuse and responses it must not take, beyond W-55 to W-61.
func TestWireReads(t *testing.T) {
	source := func(of func(d *dut, r *rdmap.ReadRequest)) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			r := rdmap.ReadRequest{SinkSTag: 0x55, SinkTO: 0x5000, Size: 16, SrcSTag: d.target.RKey(),
				SrcTO: d.target.Addr()}
			of(d, &r)
			return bent(wiretest.ReadRequest(1, r))(d)
		}
	}
	type of = func(d *dut) *wiretest.Segment
	answer := func(all ...of) of { // all but the last are not the last segment of their message
		return func(d *dut) *wiretest.Segment {
			d.release()
			d.loose(recvOff+sinkOff, sinkLen)
			var segs []*wiretest.Segment
			for i, s := range all {
				if segs = append(segs, s(d)); i < len(all)-1 {
					segs[i].More()
				}
			}
			return bent(segs...)(d)
		}
	}
	sink := func(delta int64, n int) of {
		return func(d *dut) *wiretest.Segment {
			return wiretest.ReadResponse(d.rx.LKey(), d.rx.Addr()+sinkOff+uint64(delta), pattern(n))
		}
	}
	target := func(n int) of {
		return func(d *dut) *wiretest.Segment {
			return bent(wiretest.ReadResponse(d.target.RKey(), d.target.Addr(), pattern(n)))(d)
		}
	}
	notAsked := codes(rdmap.TermTaggedSTag, rdmap.TermTaggedBounds)
	nothing := codes(rdmap.TermOpcode, rdmap.TermTaggedSTag)
	length := codes(rdmap.TermUntaggedTooLong, rdmap.TermStream)
	rows := []row{
		{name: "W-55 one octet too far", want: codes(rdmap.TermProtBounds),
			script: source(func(d *dut, r *rdmap.ReadRequest) { r.SrcTO += targetLen - 15 })},
		{name: "W-55 size of 4 GiB", want: codes(rdmap.TermProtBounds),
			script: source(func(d *dut, r *rdmap.ReadRequest) { r.Size = 0xffffffff })},
		{name: "W-57 more requests than ird", want: codes(rdmap.TermUntaggedNoBuffer),
			script: func(d *dut) *wiretest.Segment {
				// One write, read and handled in one go: the device answers none in between.
				var segs []*wiretest.Segment
				for i := range peerDepth + 1 {
					segs = append(segs, wiretest.ReadRequest(uint32(i+1),
						rdmap.ReadRequest{Size: 1000, SrcSTag: d.target.RKey(), SrcTO: d.target.Addr()}))
				}
				return bent(segs...)(d)
			}},
		{name: "W-58 request of 9000 octets", want: length,
			script: bent(wiretest.Untagged(rdmap.OpReadReq, ddp.QNReadReq, 1, make([]byte, 9000)))},
		{name: "W-60 response to nothing", opt: dutOptions{bare: true}, want: nothing, script: target(1)},
		{name: "W-60 large response to nothing", opt: dutOptions{bare: true}, want: nothing, script: target(9000)},
		{name: "W-61 the target's stag", want: notAsked, script: answer(func(d *dut) *wiretest.Segment {
			return wiretest.ReadResponse(d.target.RKey(), d.target.Addr(), pattern(sinkLen))
		})},
		{name: "W-61 shifted down", want: notAsked, script: answer(sink(-1, sinkLen))},
		{name: "W-61 much longer", want: notAsked, script: answer(sink(0, 9000))},
		{name: "W-61 empty", want: notAsked, script: answer(sink(0, 0))},
		{name: "W-61 gap", want: notAsked, script: answer(sink(0, 4), sink(5, sinkLen-5))},
		{name: "W-61 second segment too long", want: notAsked, script: answer(sink(0, 4), sink(4, sinkLen-3))},
		{name: "W-61 again", want: nothing, good: []uint64{readID, sendID}, script: func(d *dut) *wiretest.Segment {
			d.release()
			d.send(sink(0, sinkLen)(d))
			d.placed(recvOff+sinkOff, pattern(sinkLen))
			expect(d.t, d.peer, rdmap.OpSend)
			return bent(sink(0, sinkLen)(d))(d)
		}},
	}
	runRows(t, rows)
}

// TestWireTerminates: every reason with which a peer ends the stream, and wrong Terminates beyond W-65.
func TestWireTerminates(t *testing.T) {
	var rows []row
	for layer := range uint8(3) {
		for etype := range uint8(3) {
			for code := range 16 {
				c := rdmap.NewTermCode(layer, etype, uint8(code))
				if !c.Known() || c != rdmap.TermLocal && c.Layer() == 0 && etype == 0 {
					continue
				}
				flush := map[uint64]rdma.Status{1: rdma.StatusWRFlushErr, readID: rdma.StatusWRFlushErr,
					sendID: rdma.StatusWRFlushErr}
				rows = append(rows, row{name: "W-64 " + c.String(), modes: only(layer == 1),
					script: fault(wiretest.TerminateCode(c)), status: flush})
				// siw swaps the nibbles and puts the header bits elsewhere.
				siw := wiretest.Terminate(etype<<4|layer, uint8(code), 0, 0)
				rows = append(rows, row{name: "W-64 siw " + c.String(), modes: only(layer != 1), script: fault(siw),
					status: flush})
			}
		}
	}
	control := []byte{0x20, 0x02, 0, 0}
	rows = append(rows,
		row{name: "W-65 queue", script: fault(wiretest.Terminate(control...).QN(1)), want: codes(rdmap.TermOpcode),
			maybe: true},
		row{name: "W-65 without l", script: fault(wiretest.Terminate(control...).More())},
		row{name: "W-65 r without a header",
			script: fault(wiretest.Terminate(append([]byte{0x01, 0, 0xe0, 0, 0, 46}, make([]byte, 20)...)...))},
		row{name: "W-65 trailing octets", script: fault(wiretest.Terminate(append(control, make([]byte, 5000)...)...))},
	)
	runRows(t, rows)
}

// TestTerminateNamesTheReason: the code reaches the completions and the event.
func TestTerminateNamesTheReason(t *testing.T) {
	for _, c := range []struct {
		code   rdmap.TermCode
		vendor uint32
		event  rdma.EventType
	}{
		{rdmap.TermTaggedSTag, 0x1100, rdma.EventQPAccess},
		{rdmap.TermProtAccess, 0x0102, rdma.EventQPAccess},
		{rdmap.TermOpcode, 0x0206, rdma.EventQPRequest},
		{rdmap.TermMPACRC, 0x2002, rdma.EventQPRequest},
	} {
		d := newDUT(t, modes[1], dutOptions{})
		d.send(wiretest.TerminateCode(c.code))
		for _, wc := range d.completions(d.recvs + 2) {
			if wc.VendorErr != c.vendor {
				t.Errorf("%v: request %d has vendor error %#x, want %#x", c.code, wc.ID, wc.VendorErr, c.vendor)
			}
		}
		if ev, ok := d.dev.Event(); !ok || ev.Type != c.event || ev.Detail != c.vendor || ev.QPNum != d.q.Num() {
			t.Errorf("%v: event %+v %t", c.code, ev, ok)
		}
	}
}

// TestRefusedReadIsBlamed: a Terminate that quotes a read request fails that, and flushes the rest.
func TestRefusedReadIsBlamed(t *testing.T) {
	for _, code := range codes(rdmap.TermProtAccess, rdmap.TermProtSTag, rdmap.TermProtBounds) {
		for _, m := range modes {
			d := newDUT(t, m, dutOptions{})
			d.send(wiretest.Write(1, 0, nil))
			f := need(d.peer.Next())(t)
			term := rdmap.NewTerminate(code, len(f.ULPDU), f.ULPDU, f.Payload())
			d.send(wiretest.Terminate(rdmap.AppendTerminate(nil, &term)...))
			d.checkEnd(nil, false, nil, nil, map[uint64]rdma.Status{readID: rdma.StatusRemAccessErr,
				sendID: rdma.StatusWRFlushErr, 1: rdma.StatusWRFlushErr})
		}
	}
}

// plain takes RFC 7306 away from a device under test.
func plain(c *Config) { c.Extensions = ExtNone }

// assumed makes it send the messages of RFC 7306 to a peer that made no offer.
func assumed(c *Config) { c.Extensions = ExtAssumed }

// TestWireImmediate: what is wrong with Immediate Data beyond W-56.
func TestWireImmediate(t *testing.T) {
	op := codes(rdmap.TermOpcode)
	of := func(n int) *wiretest.Segment { return wiretest.Untagged(rdmap.OpImmediate, 0, 1, make([]byte, n)) }
	rows := []row{
		{name: "W-56 without l", script: bent(of(8).More()), want: codes(rdmap.TermStream)},
		{name: "W-56 mo", script: bent(of(8).MO(8)), want: codes(rdmap.TermUntaggedMO)},
		{name: "msn", script: bent(wiretest.Immediate(2, 0)), want: codes(rdmap.TermUntaggedMSN)},
		{name: "no receive", opt: dutOptions{recvs: -1}, script: bent(of(8)), want: codes(rdmap.TermUntaggedNoBuffer)},
		{name: "no receive behind a write", opt: dutOptions{recvs: -1}, want: codes(rdmap.TermUntaggedNoBuffer),
			script: func(d *dut) *wiretest.Segment {
				d.placed(targetOff, []byte("x")) // the Write is a message of its own
				return bent(wiretest.Write(d.target.RKey(), d.target.Addr(), []byte("x")), of(8))(d)
			}},
		{name: "inside a send", want: op, script: func(d *dut) *wiretest.Segment {
			d.loose(recvOff, 4)
			return bent(wiretest.Send(1, []byte("abcd")).More(), of(8))(d)
		}},
		{name: "behind a refused write", want: codes(rdmap.TermTaggedSTag), script: func(d *dut) *wiretest.Segment {
			bad := wiretest.Write(d.target.RKey()^1, d.target.Addr(), []byte("x"))
			bent(bad, of(8))(d)
			return bad
		}},
	}
	for _, o := range []rdmap.Opcode{rdmap.OpImmediate, rdmap.OpImmediateSE, rdmap.OpAtomicReq, rdmap.OpAtomicResp} {
		rows = append(rows, row{name: fmt.Sprintf("W-53 opcode %x tagged", uint8(o)),
			script: bent(wiretest.Tagged(o, 0, 0, make([]byte, 8))), want: op})
	}
	rows = append(rows, row{name: "W-56 9000 octets", script: bent(of(9000)), want: codes(rdmap.TermUntaggedTooLong)})
	runRows(t, rows)
}

// TestWireAtomicRequests: W-57 with an atomic among the reads, and requests of a wrong length beyond X-02.
func TestWireAtomicRequests(t *testing.T) {
	whole := wiretest.AtomicRequest(1, rdmap.FetchAdd(1, 0, 0, 1)).ULPDU()[ddp.UntaggedLen:]
	of := func(n int) *wiretest.Segment {
		return wiretest.Untagged(rdmap.OpAtomicReq, ddp.QNReadReq, 1,
			append(append([]byte{}, whole...), make([]byte, 9000)...)[:n])
	}
	rows := []row{
		{name: "W-57 more requests than ird", want: codes(rdmap.TermUntaggedNoBuffer),
			script: func(d *dut) *wiretest.Segment {
				// As for reads alone: none is answered in between, and the last one, an atomic, is too much.
				var segs []*wiretest.Segment
				for i := range uint32(peerDepth) {
					segs = append(segs, wiretest.ReadRequest(i+1,
						rdmap.ReadRequest{Size: 1000, SrcSTag: d.target.RKey(), SrcTO: d.target.Addr()}))
				}
				return bent(append(segs,
					wiretest.AtomicRequest(peerDepth+1, rdmap.FetchAdd(1, d.target.RKey(), d.target.Addr(), 1)))...)(d)
			}},
		{name: "W-58 atomic of 9000 octets", script: bent(of(9000)), want: codes(rdmap.TermUntaggedTooLong)},
		{name: "W-58 atomic without l", want: codes(rdmap.TermStream), script: bent(of(52).More())},
	}
	runRows(t, rows)
}

// TestWireAtomicResponses: answers the device must not take, beyond W-69.
func TestWireAtomicResponses(t *testing.T) {
	sink := func(d *dut) rdma.SGE { g := d.sink(); g.Len = 8; return g }
	// outstanding leaves a fetch-and-add and a send fenced behind it.
	outstanding := func(of func(d *dut, id uint32) *wiretest.Segment) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			need(d.q.PostSend([]rdma.SendWR{
				{ID: readID, Op: rdma.OpFetchAdd, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{sink(d)},
					RKey: 0x77, RemoteAddr: 0x7000, CompareAdd: 3},
				{ID: sendID, Op: rdma.OpSend, Flags: rdma.Fence | rdma.Signaled},
			}))(d.t)
			d.bare = false
			d.send(wiretest.Write(0xdead, 0, nil))
			f := expect(d.t, d.peer, rdmap.OpAtomicReq)
			return bent(of(d, rdmap.GetAtomicRequest(f.Payload()).ID))(d)
		}
	}
	rows := []row{
		{name: "W-69 without l", want: codes(rdmap.TermStream),
			script: outstanding(func(_ *dut, id uint32) *wiretest.Segment { return wiretest.AtomicResponse(1, id, 0).More() })},
		{name: "W-69 again", good: []uint64{readID, sendID}, want: codes(rdmap.TermUntaggedNoBuffer),
			script: outstanding(func(d *dut, id uint32) *wiretest.Segment {
				d.send(wiretest.AtomicResponse(1, id, 0x1122334455667788))
				d.placed(recvOff+sinkOff, []byte{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11})
				expect(d.t, d.peer, rdmap.OpSend)
				return wiretest.AtomicResponse(2, id, 0)
			})},
	}
	for i := range rows {
		rows[i].opt.cfg, rows[i].opt.bare = assumed, true
	}
	runRows(t, rows)
}
