package mesh

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// posts keeps the writes that are posted: where to, and the first float of each.
type posts struct {
	rdma.QP
	of    rdma.Buffer
	got   []post
	calls int
}

type post struct {
	at    uint64
	n     int
	first float32
}

func (p *posts) PostSend(wrs []rdma.SendWR) (int, error) {
	p.calls++
	for i := range wrs {
		if w := &wrs[i]; w.Op == rdma.OpWrite {
			off := int(w.SGE[0].Addr - p.of.Addr())
			p.got = append(p.got, post{w.RemoteAddr, int(w.SGE[0].Len), Floats(p.of.Bytes()[off:])[0]})
		}
	}
	return len(wrs), nil
}

// TestASegmentGoesOnAsSoonAsItIsAdded: of two ranks that halve, the second step's first segment is
// on its way before the first step has the rest, but not before the peer said where to, nor
// in place of this step's own. What may go at once is posted at once.
func TestASegmentGoesOnAsSoonAsItIsAdded(t *testing.T) {
	const segment, n = 256, 256 // bytes; elements: two segments a half
	dev, err := memdev.NewFabric(memdev.Config{}).Open("a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	m, err := Open(dev, "a:0", Config{Size: 2, Segment: segment, Timeout: short.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if err := m.Reserve(n * elem); err != nil {
		t.Fatal(err)
	}
	arm, err := arms.New(arms.None, arms.Settings{Reg: dev, Access: rdma.LocalWrite | rdma.RemoteWrite,
		Pages: rdma.PagesBase})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { arm.Close() })
	in, out := take(t, arm, n, 1), take(t, arm, n, 0)
	for i, f := 0, Floats(m.temp.Bytes()); i < len(f); i++ {
		f[i] = 10
	}

	list, _ := steps.Of("halving", 0, 2, n)
	v := &vector{in: in, out: out}
	x, next := m.exchange(t.Context(), list[0], v, arm), m.exchange(t.Context(), list[1], v, arm)
	qp := &posts{of: in}
	p := &peer{rank: 1, qp: qp}
	m.peers[1] = p
	defer func() { m.peers[1] = nil }()
	x.from, x.left, x.inlen, x.at, x.next, x.limit = p, x.in, x.in, x.step.Recv.Off*elem, next, x.out
	x.dst = m.temp.Bytes()
	if err := x.prepare(in); err != nil {
		t.Fatal(err)
	}
	if err := next.prepare(out); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.put(); err != nil {
			t.Error(err)
		}
		if err := next.put(); err != nil {
			t.Error(err)
		}
	}()
	half := uint64(n * elem / 2)
	look := func(what string, want ...post) {
		t.Helper()
		qp.got, qp.calls = qp.got[:0], 0
		if done, err := x.turn(); done || err != nil {
			t.Fatalf("%s: done %v, %v", what, done, err)
		}
		if len(qp.got) != len(want) || qp.calls != min(len(want), 1) {
			t.Fatalf("%s: %+v in %d calls, want %+v in one", what, qp.got, qp.calls, want)
		}
		for i, w := range want {
			if qp.got[i] != w {
				t.Errorf("%s: %+v, want %+v", what, qp.got[i], w)
			}
		}
	}
	there := head{kind: kindThere, length: segment}
	clear := head{kind: kindClear, length: half, addr: 1 << 20}
	look("nothing is said")
	p.there = append(p.there, there)
	look("a segment is there, and nobody said where to")
	p.clears = append(p.clears, clear)
	look("the first clear is of this step", post{1 << 20, segment, 1}, post{1<<20 + segment, segment, 1})
	qp.of = out
	clear.addr = 2 << 20
	p.clears = append(p.clears, clear)
	look("the next step's first segment", post{2 << 20, segment, 11})
	look("no more is there")
	p.there = append(p.there, there)
	look("the rest of it", post{2<<20 + segment, segment, 11})
	if x.left != 0 || p.posted != 2 || x.done != 1 || next.done != 2 {
		t.Errorf("%d bytes left, %d begun, done at %d and %d", x.left, p.posted, x.done, next.done)
	}
	p.done = 1
	if done, err := x.turn(); !done || err != nil {
		t.Errorf("the step is done when its own message is: %v, %v", done, err)
	}
}

func take(t *testing.T, arm arms.Arm, n int, each float32) rdma.Buffer {
	t.Helper()
	b, err := arm.Take(n * elem)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { arm.Give(b) })
	for i, f := 0, Floats(b.Bytes()); i < len(f); i++ {
		f[i] = each
	}
	return b
}
