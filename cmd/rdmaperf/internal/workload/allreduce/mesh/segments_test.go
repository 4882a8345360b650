package mesh

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A message has no more pieces than its receiver has posted receives for, twice, and those are
// fewer where the slots are large.
func TestPiecesHaveReceives(t *testing.T) {
	const n = 64 << 10 // elements: 64 pieces of 4 KiB
	for eager, want := range map[int]int{64: 32, 8 << 10: 32, 16 << 10: 32, 32 << 10: 16, 64 << 10: 8, 128 << 10: 8} {
		dev, err := memdev.NewFabric(memdev.Config{}).Open("a")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		m, err := Open(dev, "a:0", Config{Size: 2, Eager: eager, Segment: 4096, Timeout: short.Timeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		arm, err := arms.New(arms.None, arms.Settings{Reg: dev, Access: rdma.LocalWrite | rdma.RemoteWrite,
			Pages: rdma.PagesBase})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { arm.Close() })
		in, out := take(t, arm, n, 1), take(t, arm, n, 0)
		list, _ := steps.Of("doubling", 0, 2, n)
		x := m.exchange(t.Context(), list[0], &vector{in: in, out: out}, arm)
		qp := &posts{of: in}
		p := &peer{rank: 1, qp: qp, clears: []head{{kind: kindClear, length: n * elem, addr: 1 << 20}}}
		m.peers[1] = p
		x.limit = x.out
		if err := x.prepare(in); err != nil {
			t.Fatal(err)
		}
		if err := x.write(); err != nil {
			t.Fatal(err)
		}
		m.peers[1] = nil
		if err := x.put(); err != nil {
			t.Error(err)
		}
		if len(qp.got) != want || m.cfg.recvs() < 2*len(qp.got) {
			t.Errorf("eager %d: %d pieces and %d receives, want %d pieces", eager, len(qp.got), m.cfg.recvs(), want)
		}
	}
}
