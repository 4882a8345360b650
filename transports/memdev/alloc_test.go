package memdev

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
