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

// TestWireWithoutExtension: W-52, W-56 and W-67 to W-69 on a device that does not
// take RFC 7306: its opcodes are unexpected, and its queue does not exist.
func TestWireWithoutExtension(t *testing.T) {
	op := codes(rdmap.TermOpcode)
	request := func(op rdmap.AtomicOp) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			return bent(wiretest.AtomicRequest(1, rdmap.AtomicRequest{Op: op, STag: d.target.RKey(),
				TO: d.target.Addr()}))(d)
		}
	}
	rows := []row{
		{name: "W-67 fetch and add", script: request(rdmap.AtomicFetchAdd), want: op},
		{name: "W-67 compare and swap", script: request(rdmap.AtomicCmpSwap), want: op},
		{name: "W-68 unassigned atomic", script: request(1), want: op},
		{name: "W-69 atomic response", script: bent(wiretest.AtomicResponse(1, 0, 0)),
			want: codes(rdmap.TermUntaggedQN)},
		{name: "W-69 atomic response on the read queue", script: bent(wiretest.AtomicResponse(1, 0, 0).QN(1)),
			want: op},
		{name: "W-69 short atomic response",
			script: bent(wiretest.Untagged(rdmap.OpAtomicResp, ddp.QNReadReq, 1, make([]byte, 11))), want: op},
	}
	for _, n := range []int{0, 4, 8, 16} {
		rows = append(rows, row{name: fmt.Sprintf("W-56 immediate of %d octets", n),
			script: bent(wiretest.Untagged(rdmap.OpImmediate, 0, 1, make([]byte, n))), want: op})
	}
	for o := rdmap.OpImmediate; o <= rdmap.OpAtomicResp; o++ {
		rows = append(rows,
			row{name: fmt.Sprintf("W-52 opcode %x untagged", uint8(o)),
				script: bent(wiretest.Untagged(o, 0, 1, []byte("x"))), want: op},
			row{name: fmt.Sprintf("W-52 opcode %x tagged", uint8(o)),
				script: bent(wiretest.Tagged(o, 0, 0, []byte("x"))), want: op})
	}
	for i := range rows {
		rows[i].opt.cfg = plain
	}
	runRows(t, rows)
}

// TestWireImmediate: W-56 and what else is wrong with Immediate Data.
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
		{name: "right ones", alive: true, good: []uint64{1, 2, 3},
			script: func(d *dut) *wiretest.Segment {
				d.send(wiretest.Immediate(1, 0x0102030405060708), wiretest.Write(d.target.RKey(), d.target.Addr(),
					[]byte("x")),
					wiretest.Immediate(2, 9).Op(rdmap.OpImmediateSE), wiretest.Send(3, []byte("plain")))
				d.placed(targetOff, []byte("x"))
				d.received(2, "plain")
				d.msn = 4
				return nil
			}},
	}
	for _, n := range []int{0, 4, 7} {
		rows = append(rows, row{name: fmt.Sprintf("W-56 %d octets", n), script: bent(of(n)),
			want: codes(rdmap.TermStream)})
	}
	for _, n := range []int{9, 16, 9000} {
		rows = append(rows, row{name: fmt.Sprintf("W-56 %d octets", n), script: bent(of(n)),
			want: codes(rdmap.TermUntaggedTooLong)})
	}
	for qn := range uint32(3) {
		rows = append(rows, row{name: fmt.Sprintf("on queue %d", qn+1), script: bent(of(8).QN(qn + 1)), want: op})
	}
	for _, o := range []rdmap.Opcode{rdmap.OpImmediate, rdmap.OpImmediateSE, rdmap.OpAtomicReq, rdmap.OpAtomicResp} {
		rows = append(rows, row{name: fmt.Sprintf("W-53 opcode %x tagged", uint8(o)),
			script: bent(wiretest.Tagged(o, 0, 0, make([]byte, 8))), want: op})
	}
	runRows(t, rows)
}

// TestWireAtomicRequests: W-67 and W-68, requests the device must refuse with
// memory unchanged, and W-57 with atomics among the reads.
func TestWireAtomicRequests(t *testing.T) {
	request := func(bend func(d *dut, r *rdmap.AtomicRequest)) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			r := rdmap.FetchAdd(1, d.target.RKey(), d.target.Addr()+8, 1)
			bend(d, &r)
			return bent(wiretest.AtomicRequest(1, r))(d)
		}
	}
	whole := wiretest.AtomicRequest(1, rdmap.FetchAdd(1, 0, 0, 1)).ULPDU()[ddp.UntaggedLen:]
	of := func(n int) *wiretest.Segment {
		return wiretest.Untagged(rdmap.OpAtomicReq, ddp.QNReadReq, 1,
			append(append([]byte{}, whole...), make([]byte, 9000)...)[:n])
	}
	rows := []row{
		{name: "W-67 unknown stag", want: codes(rdmap.TermProtSTag),
			script: request(func(d *dut, r *rdmap.AtomicRequest) { r.STag ^= 1 })},
		{name: "W-67 freed stag", want: codes(rdmap.TermProtSTag),
			script: request(func(d *dut, r *rdmap.AtomicRequest) { r.STag = d.freed })},
		{name: "W-67 no rights", want: codes(rdmap.TermProtAccess),
			script: request(func(d *dut, r *rdmap.AtomicRequest) { r.STag, r.TO = d.quiet.RKey(), d.quiet.Addr() })},
		{name: "W-67 all rights but this", want: codes(rdmap.TermProtAccess),
			script: request(func(d *dut, r *rdmap.AtomicRequest) { r.STag, r.TO = d.inv.RKey(), d.inv.Addr() })},
		{name: "W-67 another domain", want: codes(rdmap.TermProtNotAssociated),
			script: request(func(d *dut, r *rdmap.AtomicRequest) { r.STag, r.TO = d.far.RKey(), d.far.Addr() })},
		{name: "W-67 before the base", want: codes(rdmap.TermProtBounds),
			script: request(func(d *dut, r *rdmap.AtomicRequest) { r.TO = d.target.Addr() - 8 })},
		{name: "W-67 behind the end", want: codes(rdmap.TermProtBounds),
			script: request(func(d *dut, r *rdmap.AtomicRequest) { r.TO = d.target.Addr() + targetLen })},
		{name: "W-67 wraps", want: codes(rdmap.TermProtWrap), script: request(func(d *dut, r *rdmap.AtomicRequest) {
			r.TO = ^uint64(7)
		})},
		{name: "W-67 compare and swap to an unknown stag", want: codes(rdmap.TermProtSTag),
			script: request(func(d *dut, r *rdmap.AtomicRequest) { r.Op, r.STag = rdmap.AtomicCmpSwap, r.STag^1 })},
		{name: "W-57 more requests than ird", want: codes(rdmap.TermUntaggedNoBuffer),
			script: func(d *dut) *wiretest.Segment {
				// As for reads alone: none is answered in between, and the last one, an
				// atomic, is too much.
				var segs []*wiretest.Segment
				for i := range uint32(peerDepth) {
					segs = append(segs, wiretest.ReadRequest(i+1,
						rdmap.ReadRequest{Size: 1000, SrcSTag: d.target.RKey(), SrcTO: d.target.Addr()}))
				}
				return bent(append(segs,
					wiretest.AtomicRequest(peerDepth+1, rdmap.FetchAdd(1, d.target.RKey(), d.target.Addr(), 1)))...)(d)
			}},
		{name: "right ones", alive: true,
			script: func(d *dut) *wiretest.Segment {
				old := d.arena.Bytes()[targetOff : targetOff+8 : targetOff+8]
				v := le(old)
				d.send(wiretest.AtomicRequest(1, rdmap.FetchAdd(77, d.target.RKey(), d.target.Addr(), 5)),
					wiretest.AtomicRequest(2, rdmap.CmpSwap(78, d.target.RKey(), d.target.Addr(), v+5,
						0x1122334455667788)))
				for i, want := range []rdmap.AtomicResponse{{ID: 77, Original: v}, {ID: 78, Original: v + 5}} {
					f, err := d.peer.Next()
					must(t, err)
					if got := rdmap.GetAtomicResponse(f.Payload()); f.Op() != rdmap.OpAtomicResp || got != want ||
						f.UntaggedHeader().MSN != uint32(i+1) {
						d.t.Errorf("answered by %v with %+v, want %+v", f, got, want)
					}
				}
				d.placed(targetOff, []byte{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11})
				return nil
			}},
	}
	for off := uint64(1); off < 8; off++ {
		rows = append(rows, row{name: fmt.Sprintf("W-67 misaligned by %d", off), want: codes(rdmap.TermStream),
			modes:  only(off%2 == 0),
			script: request(func(d *dut, r *rdmap.AtomicRequest) { r.TO += off })})
	}
	for op := rdmap.AtomicOp(0); op < 16; op++ {
		if !op.Assigned() {
			rows = append(rows, row{name: fmt.Sprintf("W-68 operation %d", op), want: codes(rdmap.TermOpcode),
				modes:  only(op%2 == 0),
				script: request(func(d *dut, r *rdmap.AtomicRequest) { r.Op = op })})
		}
	}
	for _, n := range []int{0, 28, 51} {
		rows = append(rows, row{name: fmt.Sprintf("W-58 atomic of %d octets", n), want: codes(rdmap.TermStream),
			script: bent(of(n))})
	}
	for _, n := range []int{53, 9000} {
		rows = append(rows, row{name: fmt.Sprintf("W-58 atomic of %d octets", n),
			want: codes(rdmap.TermUntaggedTooLong), script: bent(of(n))})
	}
	rows = append(rows, row{name: "W-58 atomic without l", want: codes(rdmap.TermStream), script: bent(of(52).More())})
	for _, qn := range []uint32{0, 2, 3} {
		rows = append(rows, row{name: fmt.Sprintf("W-54 atomic on queue %d", qn), want: codes(rdmap.TermOpcode),
			script: bent(of(52).QN(qn))})
	}
	runRows(t, rows)
}

func le(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// TestWireAtomicResponses: W-69, answers the device must not take.
func TestWireAtomicResponses(t *testing.T) {
	sink := func(d *dut) rdma.SGE { g := d.sink(); g.Len = 8; return g }
	// outstanding leaves a fetch-and-add and a send fenced behind it.
	outstanding := func(of func(d *dut, id uint32) []*wiretest.Segment) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			_, err := d.q.PostSend([]rdma.SendWR{
				{ID: readID, Op: rdma.OpFetchAdd, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{sink(d)},
					RKey: 0x77, RemoteAddr: 0x7000, CompareAdd: 3},
				{ID: sendID, Op: rdma.OpSend, Flags: rdma.Fence | rdma.Signaled},
			})
			must(d.t, err)
			d.bare = false
			d.send(wiretest.Write(0xdead, 0, nil))
			f, err := d.peer.Next()
			must(d.t, err)
			if f.Op() != rdmap.OpAtomicReq {
				d.t.Fatalf("got %v, want the atomic request", f)
			}
			return bent(of(d, rdmap.GetAtomicRequest(f.Payload()).ID)...)(d)
		}
	}
	one := func(of func(id uint32) *wiretest.Segment) func(d *dut, id uint32) []*wiretest.Segment {
		return func(_ *dut, id uint32) []*wiretest.Segment { return []*wiretest.Segment{of(id)} }
	}
	rows := []row{
		{name: "W-69 response to nothing", opt: dutOptions{bare: true}, script: bent(wiretest.AtomicResponse(1, 1, 0)),
			want: codes(rdmap.TermUntaggedNoBuffer)},
		{name: "W-69 response to a read", want: codes(rdmap.TermOpcode), script: func(d *dut) *wiretest.Segment {
			d.release()
			return bent(wiretest.AtomicResponse(1, 1, 0))(d)
		}},
		{name: "W-69 response on the read queue", script: bent(wiretest.AtomicResponse(1, 1, 0).QN(1)),
			want: codes(rdmap.TermOpcode)},
		{name: "W-69 unknown identifier", want: codes(rdmap.TermStream),
			script: outstanding(one(func(id uint32) *wiretest.Segment { return wiretest.AtomicResponse(1, id+1, 0) }))},
		{name: "W-69 msn 2", want: codes(rdmap.TermUntaggedMSN),
			script: outstanding(one(func(id uint32) *wiretest.Segment { return wiretest.AtomicResponse(2, id, 0) }))},
		{name: "W-69 mo", want: codes(rdmap.TermUntaggedMO),
			script: outstanding(one(func(id uint32) *wiretest.Segment {
				return wiretest.AtomicResponse(1, id, 0).MO(1)
			}))},
		{name: "W-69 11 octets", want: codes(rdmap.TermStream),
			script: outstanding(one(func(id uint32) *wiretest.Segment {
				return wiretest.AtomicResponse(1, id, 0).Shorten(ddp.UntaggedLen + 11)
			}))},
		{name: "W-69 13 octets", want: codes(rdmap.TermUntaggedTooLong),
			script: outstanding(one(func(id uint32) *wiretest.Segment {
				return wiretest.AtomicResponse(1, id, 0).Append(0)
			}))},
		{name: "W-69 32 octets", want: codes(rdmap.TermUntaggedTooLong),
			script: outstanding(one(func(id uint32) *wiretest.Segment {
				return wiretest.AtomicResponse(1, id, 0).Append(make([]byte, 20)...)
			}))},
		{name: "W-69 without l", want: codes(rdmap.TermStream),
			script: outstanding(one(func(id uint32) *wiretest.Segment {
				return wiretest.AtomicResponse(1, id, 0).More()
			}))},
		{name: "W-61 read response to an atomic", want: codes(rdmap.TermOpcode),
			script: outstanding(func(d *dut, id uint32) []*wiretest.Segment {
				return []*wiretest.Segment{wiretest.ReadResponse(sink(d).LKey, sink(d).Addr, pattern(8))}
			})},
		{name: "W-69 again", good: []uint64{readID, sendID}, want: codes(rdmap.TermUntaggedNoBuffer),
			script: outstanding(func(d *dut, id uint32) []*wiretest.Segment {
				d.send(wiretest.AtomicResponse(1, id, 0x1122334455667788))
				d.placed(recvOff+sinkOff, []byte{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11})
				f, err := d.peer.Next()
				must(d.t, err)
				if f.Op() != rdmap.OpSend {
					d.t.Errorf("got %v, want the fenced send", f)
				}
				return []*wiretest.Segment{wiretest.AtomicResponse(2, id, 0)}
			})},
	}
	for i := range rows {
		rows[i].opt.cfg = assumed
		if i > 2 {
			rows[i].opt.bare = true
		}
	}
	runRows(t, rows)
}
