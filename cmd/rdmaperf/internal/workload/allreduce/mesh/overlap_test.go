package mesh

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestNothingIsAddedToWhatIsBeingSent: recursive doubling sends the vector that it adds to. A long
// one waits for the end of that send, a short one is copied. The first step sends what the user
// gave and nobody changes, so it does neither.
func TestNothingIsAddedToWhatIsBeingSent(t *testing.T) {
	const n = 2 * lendFrom / elem
	dev, err := memdev.NewFabric(memdev.Config{}).Open("a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	list, err := steps.Of("doubling", 0, 4, n)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for what, eager := range map[string]int{"long": 64, "short": 64 << 10} {
		for i, s := range list {
			m, err := Open(dev, "a:0", Config{Size: 4, Eager: eager, Segment: n * elem, Timeout: short.Timeout})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Reserve(n * elem); err != nil {
				t.Fatal(err)
			}
			arm, err := arms.New(arms.Cache, arms.Settings{Reg: dev, Access: rdma.LocalWrite | rdma.RemoteWrite,
				Pages: rdma.PagesBase})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // behind the memory
				if err := arm.Close(); err != nil {
					t.Error(err)
				}
			})
			in, out := take(t, arm, n, 1), take(t, arm, n, 2)
			v := &vector{in: in, out: out}
			if i > 0 {
				v.fill(list[0])
			}
			for j, f := 0, Floats(m.temp.Bytes()); j < len(f); j++ {
				f[j] = 10
			}
			qp := &sentWRs{}
			p := &peer{rank: s.SendTo, qp: qp, headBase: 64 << 10}
			m.peers[p.rank] = p
			x := m.exchange(t.Context(), s, v, arm)
			if what == "short" {
				if err := x.sendShort(); err != nil {
					t.Fatal(err)
				}
				if lent := p.lent == 1; lent != (i == 0) {
					t.Errorf("short, step %d: lent %v", i, lent)
				}
			} else {
				x.from, x.left, x.inlen, x.limit, x.dst = p, x.in, x.in, x.out, m.temp.Bytes()
				if err := x.prepare(v.of(s.Send)); err != nil {
					t.Fatal(err)
				}
				p.clears = append(p.clears, head{kind: kindClear, length: n * elem, addr: 1 << 20})
				p.there = append(p.there, head{kind: kindThere, length: n * elem})
				before := Floats(out.Bytes())[n-1]
				if done, err := x.turn(); done || err != nil {
					t.Fatalf("long, step %d: done %v, %v", i, done, err)
				}
				if added := Floats(out.Bytes())[n-1] != before; added != (i == 0) {
					t.Errorf("long, step %d: added %v before its send is done", i, added)
				}
				p.done = p.posted
				if done, err := x.turn(); !done || err != nil {
					t.Fatalf("long, step %d: done %v, %v", i, done, err)
				}
				if got, want := Floats(out.Bytes())[n-1], float32(11+i); got != want {
					t.Errorf("long, step %d: the sum is %v, want %v", i, got, want)
				}
			}
			if err := x.put(); err != nil {
				t.Error(err)
			}
			if err := m.backAll(); err != nil {
				t.Error(err)
			}
			m.peers[p.rank] = nil
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
