package mesh

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestWhatIsAddedArrivesInPlace: what is to be added to the user's own numbers arrives where the sum
// goes. It arrives aside where the sum has something already, and where a registration of
// that place would be one more, as nobody keeps it.
func TestWhatIsAddedArrivesInPlace(t *testing.T) {
	const n = 256 // elements
	list, err := steps.Of("doubling", 0, 4, n)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, c := range []struct {
		arm   string
		place []bool // of each step
	}{{arms.None, []bool{false, false}}, {arms.Cache, []bool{true, false}}, {arms.Prereg, []bool{true, false}},
		{arms.Lazy, []bool{true, false}}} {
		dev, err := memdev.NewFabric(memdev.Config{}).Open("a")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		m, err := Open(dev, "a:0", Config{Size: 4, Eager: 64, Segment: n * elem, Timeout: short.Timeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		if err := m.Reserve(n * elem); err != nil {
			t.Fatal(err)
		}
		arm, err := arms.New(c.arm, arms.Settings{Reg: dev, Access: rdma.LocalWrite | rdma.RemoteWrite,
			Pages: rdma.PagesBase, Piece: 1 << 20, Deferred: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { arm.Close() })
		in, out := take(t, arm, n, 1), take(t, arm, n, 2)
		v := &vector{in: in, out: out}
		for i, s := range list {
			p := &peer{rank: s.RecvFrom, qp: &sentWRs{}, headBase: 8 << 10}
			m.peers[p.rank] = p
			x := m.exchange(t.Context(), s, v, arm)
			if err := x.ready(); err != nil {
				t.Fatal(err)
			}
			m.peers[p.rank] = nil
			h, err := parse(m.buf.Bytes()[p.headBase:][:headLen])
			if err != nil || h.kind != kindClear || h.length != n*elem {
				t.Fatalf("%s, step %d: %+v, %v", c.arm, i, h, err)
			}
			to, what := m.temp, "aside"
			if c.place[i] {
				to, what = out, "in place"
			}
			if h.addr != to.Addr() {
				t.Errorf("%s, step %d: bytes to be added do not arrive %s", c.arm, i, what)
			}
			for j, f := 0, Floats(to.Bytes()); j < n; j++ {
				f[j] = 10 // the peer's
			}
			x.turnOf(t, n)
			if err := x.put(); err != nil {
				t.Error(err)
			}
			if got, want := Floats(out.Bytes())[n-1], float32(11+10*i); got != want {
				t.Errorf("%s, step %d: the sum is %v, want %v", c.arm, i, got, want)
			}
			v.fill(s)
		}
	}
}

// turnOf has the step hear that all n elements are there.
func (x *exchange) turnOf(t *testing.T, n int) {
	t.Helper()
	x.from.there = append(x.from.there, head{kind: kindThere, length: uint64(n * elem)})
	if done, err := x.turn(); !done || err != nil {
		t.Fatalf("done %v, %v", done, err)
	}
}
