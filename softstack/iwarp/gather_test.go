package iwarp

import (
	"bytes"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestScatterGather: every split of a message over SGEs on both sides, segments shorter and longer than an SGE.
func TestScatterGather(t *testing.T) {
	splits := [][]int{{3000}, {1, 2999}, {1000, 0, 1000, 1000}, {7, 13, 2979, 1}, {2999, 1}, {750, 750, 750, 750}}
	for name, cfg := range map[string]Config{"large segments": {}, "small segments": {MaxULPDU: 300},
		"markers": {Markers: true, MaxULPDU: 1000}, "checked": {StoreAndForward: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			id := uint64(0)
			for _, out := range splits {
				for _, in := range splits {
					id++
					a.fill(id, 0, 65536)
					clear(b.bytes(0, 65536))
					wr := rdma.SendWR{ID: id, Op: rdma.OpSend, NumSGE: uint8(len(out))}
					var want []byte
					for i, n := range out {
						wr.SGE[i] = a.sge(i*10000+i, n)
						want = append(want, a.bytes(i*10000+i, n)...)
					}
					var sges []rdma.SGE
					for i, n := range in {
						sges = append(sges, b.sge(i*9000+3*i, n))
					}
					b.postRecv(id, sges...)
					a.post(wr)
					wc := b.want(a, rdma.WCRecv, id, rdma.StatusSuccess)
					a.want(b, rdma.WCSend, id, rdma.StatusSuccess)
					if wc.ByteLen != 3000 {
						t.Fatalf("received %d octets", wc.ByteLen)
					}
					var got []byte
					for i, n := range in {
						got = append(got, b.bytes(i*9000+3*i, n)...)
						if b.bytes(i*9000+3*i+n, 1)[0] != 0 {
							t.Fatalf("%v into %v: octet behind SGE %d", out, in, i)
						}
					}
					equal(t, "scattered", got, want)
					// A write gathers alike.
					wr.ID, wr.Op, wr.RKey, wr.RemoteAddr = id, rdma.OpWrite, b.mr.RKey(), b.mr.Addr()+100000
					a.post(wr)
					a.want(b, rdma.WCWrite, id, rdma.StatusSuccess)
				}
			}
			a.post(rdma.SendWR{ID: 1, Op: rdma.OpRead, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()})
			a.want(b, rdma.WCRead, 1, rdma.StatusSuccess)
		})
	}
}

// TestLargeScatter: a long message over SGEs that do not end at segments.
func TestLargeScatter(t *testing.T) {
	for name, cfg := range map[string]Config{"default": {}, "mtu1500": {MaxULPDU: 1442}, "small": {MaxULPDU: 128}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, cfg, rdma.QPConfig{})
			a.fill(1, 0, 500000)
			b.postRecv(1, b.sge(0, 100001), b.sge(200000, 7), b.sge(300000, 250000), b.sge(600000, 200000))
			a.post(rdma.SendWR{ID: 1, Op: rdma.OpSend, NumSGE: 3, SGE: [4]rdma.SGE{a.sge(0, 70003), a.sge(70003, 1),
				a.sge(70004, 429996)}})
			if wc := b.want(a, rdma.WCRecv, 1, rdma.StatusSuccess); wc.ByteLen != 500000 {
				t.Errorf("received %d octets", wc.ByteLen)
			}
			got := bytes.Clone(b.bytes(0, 100001))
			got = append(got, b.bytes(200000, 7)...)
			got = append(got, b.bytes(300000, 250000)...)
			got = append(got, b.bytes(600000, 500000-len(got))...)
			equal(t, "message", got, a.bytes(0, 500000))
		})
	}
}
