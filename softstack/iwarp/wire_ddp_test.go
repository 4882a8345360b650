package iwarp

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestWireUntagged: queues, sequence numbers, offsets and receives, beyond W-38 to W-42.
func TestWireUntagged(t *testing.T) {
	rows := []row{
		{name: "W-39 msn of a read request", script: bent(wiretest.ReadRequest(2, rdmap.ReadRequest{})),
			want: codes(rdmap.TermUntaggedNoBuffer, rdmap.TermUntaggedMSN)},
		{name: "W-41 mo at the top", script: bent(wiretest.Send(1, []byte("a")).MO(0xffffffff)),
			want: codes(rdmap.TermUntaggedMO)},
		{name: "W-42 one segment too long", script: bent(wiretest.Send(1, pattern(recvCap+1))),
			want:   codes(rdmap.TermUntaggedTooLong),
			status: map[uint64]rdma.Status{1: rdma.StatusLocLenErr}},
		{name: "W-42 large segment too long", script: bent(wiretest.Send(1, pattern(9000))),
			want:   codes(rdmap.TermUntaggedTooLong),
			status: map[uint64]rdma.Status{1: rdma.StatusLocLenErr}},
	}
	for _, qn := range []uint32{3, 4, 0xffffffff} {
		none := dutOptions{cfg: plain} // queue 3 is RFC 7306's
		rows = append(rows, row{name: fmt.Sprintf("W-38 read request on queue %d", qn), opt: none,
			script: bent(wiretest.ReadRequest(1, rdmap.ReadRequest{}).QN(qn)), want: codes(rdmap.TermUntaggedQN)})
	}
	runRows(t, rows)
}

// TestWireTagged: keys and bounds of Writes that ask for direct placement, W-44 to W-47, and Writes in several places.
func TestWireTagged(t *testing.T) {
	write := func(of func(d *dut) (stag uint32, to uint64), n int) func(*dut) *wiretest.Segment {
		return func(d *dut) *wiretest.Segment {
			stag, to := of(d)
			return bent(wiretest.Write(stag, to, pattern(n)))(d)
		}
	}
	to := func(delta int64) func(*dut) (uint32, uint64) {
		return func(d *dut) (uint32, uint64) { return d.target.RKey(), d.target.Addr() + uint64(delta) }
	}
	const n = 9000
	rows := []row{
		{name: "W-44 unknown stag", want: codes(rdmap.TermTaggedSTag),
			script: write(func(d *dut) (uint32, uint64) { return d.target.RKey() ^ 1, d.target.Addr() }, n)},
		{name: "W-44 freed stag", want: codes(rdmap.TermTaggedSTag),
			script: write(func(d *dut) (uint32, uint64) { return d.freed, d.target.Addr() }, n)},
		{name: "W-45 before the base", want: codes(rdmap.TermTaggedBounds), script: write(to(-1), n)},
		{name: "W-45 at zero", want: codes(rdmap.TermTaggedBounds),
			script: write(func(d *dut) (uint32, uint64) { return d.target.RKey(), 0 }, n)},
		{name: "W-45 beyond the end", want: codes(rdmap.TermTaggedBounds),
			script: write(to(targetLen+4096), n)},
		{name: "W-45 one octet too far", want: codes(rdmap.TermTaggedBounds),
			script: write(to(int64(targetLen-n+1)), n)},
		{name: "W-46 another domain", want: codes(rdmap.TermTaggedNotAssoc),
			script: write(func(d *dut) (uint32, uint64) { return d.far.RKey(), d.far.Addr() }, n)},
		{name: "W-47 wraps", want: codes(rdmap.TermTaggedWrap),
			script: write(func(d *dut) (uint32, uint64) { return d.target.RKey(), ^uint64(n - 1) }, n)},
		{name: "W-45 the last octet fits", alive: true,
			script: func(d *dut) *wiretest.Segment {
				d.send(wiretest.Write(d.target.RKey(), d.target.Addr()+uint64(targetLen-n), pattern(n)))
				d.placed(targetOff+targetLen-n, pattern(n))
				return nil
			}},
		{name: "W-48 nothing to a stag without rights", alive: true,
			script: func(d *dut) *wiretest.Segment {
				return fault(wiretest.Write(d.quiet.RKey(), 1, nil), wiretest.Write(d.far.RKey(), 1, nil),
					wiretest.Write(d.freed, 1, nil))(d)
			}},
		{name: "W-50 gap, overlap and descent", alive: true,
			script: func(d *dut) *wiretest.Segment {
				for i, off := range []int{100, 300, 250, 0} {
					b := pattern(100 + i)
					s := wiretest.Write(d.target.RKey(), d.target.Addr()+uint64(off), b)
					if i < 3 {
						s.More()
					}
					d.send(s)
					d.placed(targetOff+off, b)
				}
				return nil
			}},
		{name: "W-50 second segment to another stag", alive: true,
			script: func(d *dut) *wiretest.Segment {
				d.send(wiretest.Write(d.target.RKey(), d.target.Addr(), pattern(10)).More(),
					wiretest.Write(d.inv.RKey(), d.inv.Addr(), pattern(20)))
				d.placed(targetOff, pattern(10))
				d.placed(invOff, pattern(20))
				return nil
			}},
		{name: "W-46 second segment to another domain", want: codes(rdmap.TermTaggedNotAssoc),
			script: func(d *dut) *wiretest.Segment {
				d.placed(targetOff, pattern(10))
				return bent(wiretest.Write(d.target.RKey(), d.target.Addr(), pattern(10)).More(),
					wiretest.Write(d.far.RKey(), d.far.Addr(), pattern(20)))(d)
			}},
	}
	runRows(t, rows)
}
