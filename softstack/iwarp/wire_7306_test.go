package iwarp

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
	outstanding := func(of func(d *dut, id uint32) []*wiretest.Segment) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			need(d.q.PostSend([]rdma.SendWR{
				{ID: readID, Op: rdma.OpFetchAdd, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{sink(d)},
					RKey: 0x77, RemoteAddr: 0x7000, CompareAdd: 3},
				{ID: sendID, Op: rdma.OpSend, Flags: rdma.Fence | rdma.Signaled},
			}))(d.t)
			d.bare = false
			d.send(wiretest.Write(0xdead, 0, nil))
			f := expect(d.t, d.peer, rdmap.OpAtomicReq)
			return bent(of(d, rdmap.GetAtomicRequest(f.Payload()).ID)...)(d)
		}
	}
	one := func(of func(id uint32) *wiretest.Segment) func(d *dut, id uint32) []*wiretest.Segment {
		return func(_ *dut, id uint32) []*wiretest.Segment { return []*wiretest.Segment{of(id)} }
	}
	rows := []row{
		{name: "W-69 without l", want: codes(rdmap.TermStream),
			script: outstanding(one(func(id uint32) *wiretest.Segment {
				return wiretest.AtomicResponse(1, id, 0).More()
			}))},
		{name: "W-69 again", good: []uint64{readID, sendID}, want: codes(rdmap.TermUntaggedNoBuffer),
			script: outstanding(func(d *dut, id uint32) []*wiretest.Segment {
				d.send(wiretest.AtomicResponse(1, id, 0x1122334455667788))
				d.placed(recvOff+sinkOff, []byte{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11})
				expect(d.t, d.peer, rdmap.OpSend)
				return []*wiretest.Segment{wiretest.AtomicResponse(2, id, 0)}
			})},
	}
	for i := range rows {
		rows[i].opt.cfg, rows[i].opt.bare = assumed, true
	}
	runRows(t, rows)
}
