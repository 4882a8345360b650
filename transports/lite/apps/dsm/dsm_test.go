package dsm

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local/localtest"
)

func memories(t *testing.T, n, pages int) (*local.Cluster, []*Memory) {
	c := localtest.Open(t, n)
	var all []*Memory
	var nodes []int
	for i := range n {
		nodes = append(nodes, i)
	}
	for _, node := range c.Nodes {
		m := expect.Get(Open(node, Config{Nodes: nodes, Pages: pages, PageSize: 512, Port: 3}))(t)
		all = append(all, m)
	}
	t.Cleanup(func() {
		for i, m := range all {
			if err := m.Close(); err != nil {
				t.Errorf("close memory %d: %v", i, err)
			}
		}
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c, all
}

// Four nodes add to the same few counters at once: no increment is lost, and every node
// sees the same sums, those of one machine. What a node reads never goes back.
func TestIncrementsAreExact(t *testing.T) {
	const pages, each = 6, 400
	c, mem := memories(t, 4, pages)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var want [pages]uint64
	for i := range 4 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for range each {
			p, add := rng.IntN(pages), rng.Uint64N(9)
			want[p] += add
			rng.IntN(pages)
		}
	}
	err := local.Each(c.Nodes, func(i int, _ *lite.Node) error {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		var last [pages]uint64
		for range each {
			p, add := rng.IntN(pages), rng.Uint64N(9)
			if err := mem[i].Update(p, func(b []byte) {
				binary.LittleEndian.PutUint64(b[8*i:], binary.LittleEndian.Uint64(b[8*i:])+add)
				binary.LittleEndian.PutUint64(b[500:], binary.LittleEndian.Uint64(b[500:])+add)
			}); err != nil {
				return err
			}
			var b [8]byte
			q := rng.IntN(pages)
			if err := mem[i].Read(q, 500, b[:]); err != nil {
				return err
			}
			v := binary.LittleEndian.Uint64(b[:])
			if v < last[q] {
				t.Errorf("node %d reads %d of page %d behind %d", i, v, q, last[q])
			}
			last[q] = v
		}
		return nil
	})
	expect.OK(t, err)
	for i, m := range mem {
		for p := range pages {
			b := make([]byte, 512)
			expect.OK(t, m.Read(p, 0, b))
			sum := uint64(0)
			for k := range 4 {
				sum += binary.LittleEndian.Uint64(b[8*k:])
			}
			if got := binary.LittleEndian.Uint64(b[500:]); got != want[p] || sum != want[p] {
				t.Errorf("node %d, page %d: %d, in parts %d, want %d", i, p, got, sum, want[p])
			}
		}
		if s := m.Stats(); s.Fetches == 0 || s.Invalidations == 0 {
			t.Errorf("node %d: %+v: nothing was shared", i, s)
		}
	}
}

// Of one page at most one node is the owner, and then nobody has a copy.
func TestAnOwnerIsAlone(t *testing.T) {
	_, mem := memories(t, 3, 1)
	var b [8]byte
	for step := range 60 {
		m := mem[step*7%3]
		var err error
		if step%2 == 0 {
			err = m.Update(0, func(b []byte) { b[0]++ })
		} else {
			err = m.Read(0, 0, b[:])
		}
		expect.OK(t, err)
		n := [numStates]int{}
		for _, m := range mem {
			m.mu.Lock()
			if g := m.pages[0]; g != nil {
				n[g.state]++
			}
			m.mu.Unlock()
		}
		if n[owned] > 1 || n[owned] == 1 && n[shared] > 0 {
			t.Fatalf("step %d: %d owners and %d copies", step, n[owned], n[shared])
		}
	}
}

func TestADeadNodeIsAnError(t *testing.T) {
	c, mem := memories(t, 3, 6)
	expect.OK(t, mem[2].Update(0, func(b []byte) { b[0] = 1 })) // home 0, owner 2
	expect.OK(t, mem[1].Update(1, func(b []byte) { b[0] = 1 })) // home and owner 1
	c.Kill(2)
	var b [1]byte
	expect.Is(t, "a page that the dead owned", mem[1].Read(0, 0, b[:]), ErrLost)
	expect.Is(t, "a page whose home died", mem[1].Read(2, 0, b[:]), lite.ErrPeerDead)
	if err := mem[0].Read(1, 0, b[:]); err != nil || b[0] != 1 {
		t.Errorf("a page of the living: %d, %v", b[0], err)
	}
	if err := mem[0].Read(6, 0, b[:]); err == nil {
		t.Error("a page that is not there was read")
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(make([]byte, requestLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, w, _, err := getRequest(b, 10); err == nil && (p < 0 || p >= 10 || w >= numWishes) {
			t.Errorf("page %d, wish %d", p, w)
		}
		if _, code, data, err := grant(b, 64); err == nil && code == codeFine && len(data) != 64 {
			t.Errorf("%d bytes", len(data))
		}
	})
}
