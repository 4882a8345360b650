package lite

import (
	"bytes"
	"runtime"
	"testing"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

// What one node may do without being master is refused by the cases of package suite.
func TestTwoMastersOfARegion(t *testing.T) {
	everywhere(t, 3, Config{}, func(t *testing.T, c *cluster) {
		m, o := c.client(1, ClientConfig{}), c.client(2, ClientConfig{})
		h := expect.Get(m.Malloc(RegionConfig{Name: "r", Size: 4096, Nodes: []int{0}, Open: PermRead}))(t)
		expect.OK(t, m.Grant(h, 2, PermWrite|PermMaster))
		w := expect.Get(o.Map("r", PermWrite|PermMaster, "nobody asks"))(t)
		expect.OK(t, o.Write(w, 0, []byte{7}))
		one := make([]byte, 1)
		expect.Is(t, "read through a write-only handle", o.Read(w, 0, one), ErrPermission)
		moved := expect.Get(o.Move(w, 2))(t) // while the first master has it mapped
		expect.Is(t, "through a handle to the old place", m.Read(h, 0, one), ErrDeadHandle)
		h = expect.Get(m.Map("r", PermRead, ""))(t)
		expect.OK(t, m.Read(h, 0, one))
		if one[0] != 7 {
			t.Errorf("moved region holds %d, want 7", one[0])
		}
		expect.OK(t, o.FreeRegion(moved))
		expect.Is(t, "freed by the other master", m.Read(h, 0, one), ErrDeadHandle)
	})
}

// The manager holds every node to what its handles may do, also one whose own checks are left out. What the region is
// open for counts with the password alone.
func TestTheManagerRefusesWhoIsNoMaster(t *testing.T) {
	everywhere(t, 3, Config{}, func(t *testing.T, c *cluster) {
		m, o := c.client(1, ClientConfig{}), c.client(2, ClientConfig{})
		h := expect.Get(m.Malloc(RegionConfig{Name: "r", Size: 64, Open: PermAll, Password: "open sesame"}))(t)
		e := expect.Get(c.nodes[1].handles.look(h, 0, 0, 0))(t)
		refused := func(who string, perm Perm) {
			t.Helper()
			q := regionRequest{Region: e.region, Node: 2, Nodes: []int{2}, Perm: perm}
			expect.Is(t, who+" grants", o.control(0, opGrant, q, nil), ErrPermission)
			expect.Is(t, who+" moves", o.control(0, opMove, q, nil), ErrPermission)
			expect.Is(t, who+" frees", o.control(0, opDelete, q, nil), ErrPermission)
		}
		refused("a node that never mapped it", PermRead)
		expect.Is(t, "without the password, after that", expect.Err(o.Map("r", PermRead, "")), ErrPassword)
		g := expect.Get(o.Map("r", PermRead|PermShare, "open sesame"))(t)
		refused("a node that may read and share", PermWrite)
		expect.OK(t, o.Grant(g, 0, PermRead))
		expect.OK(t, o.Unmap(g))
		refused("a node that has unmapped it", PermRead)
		expect.OK(t, m.FreeRegion(h))
	})
}

// L15: the bytes of a copy go from node to node, and not through the caller.
func TestTheCallerOfACopyMovesNoData(t *testing.T) {
	c := onMem(t, 3, Config{Arena: 40 << 20})
	cl := c.client(2, ClientConfig{})
	const size = 1 << 20
	from := expect.Get(cl.Malloc(RegionConfig{Name: "from", Size: size, Nodes: []int{0}}))(t)
	to := expect.Get(cl.Malloc(RegionConfig{Name: "to", Size: size, Nodes: []int{1}}))(t)
	data := pattern(size, 9)
	expect.OK(t, cl.Write(from, 0, data))
	var before [3]Counts
	for i, n := range c.nodes {
		before[i] = n.Counts()
	}
	expect.OK(t, cl.Memmove(to, 0, from, 0, size))
	source, caller := c.nodes[0].Counts().Pieces-before[0].Pieces, c.nodes[2].Counts().Pieces-before[2].Pieces
	if source == 0 || caller != 0 {
		t.Errorf("a copy was %d work requests of the source's node and %d of the caller's", source, caller)
	}
	got := make([]byte, size)
	if expect.OK(t, cl.Read(to, 0, got)); !bytes.Equal(got, data) {
		t.Error("other bytes were copied")
	}
	t.Logf("measured: a copy of 1 MiB between two other nodes: %d work requests by the source's node, %d by the "+
		"caller's", source, caller)
}

// Memory of a region that ended comes back as zeros in the next one.
func TestANewRegionIsZeros(t *testing.T) {
	c := onMem(t, 1, Config{})
	cl := c.client(0, ClientConfig{})
	for i := range 4 {
		size := uint64(100_000 * (i + 1)) // the later ones lie in used and in fresh memory
		h := expect.Get(cl.Malloc(RegionConfig{Name: "r", Size: size}))(t)
		b := make([]byte, size)
		expect.OK(t, cl.Read(h, 0, b))
		for at, v := range b {
			if v != 0 {
				t.Fatalf("region %d has %d at %d", i, v, at)
			}
		}
		expect.OK(t, cl.Write(h, 0, pattern(int(size), 1)))
		expect.OK(t, cl.FreeRegion(h))
	}
}

// What an operation on the first piece needs lies in one cache line, and no entry begins
// inside one.
func TestAnEntryIsTwoLines(t *testing.T) {
	const line = 64
	if size, end := unsafe.Sizeof(entry{}), unsafe.Offsetof(entry{}.perm)+unsafe.Sizeof(Perm(0)); size != 2*line ||
		end > line {
		t.Errorf("an entry has %d bytes, and what is needed ends at %d", size, end)
	}
	var all []*entry // on the heap
	for i := range 1000 {
		e := newEntry(1, ChunkSize+8, PermRead, []piece{{Node: i, Off: 64, Len: ChunkSize},
			{Node: i + 1, Off: 128, Len: 8}})
		all = append(all, e)
		if at := uintptr(unsafe.Pointer(e)) % line; at != 0 {
			t.Fatalf("entry %d begins %d bytes behind a line", i, at)
		}
		for _, c := range []struct {
			off, at uint64
			node    int
		}{{0, 0, i}, {ChunkSize - 1, ChunkSize - 1, i}, {ChunkSize, 0, i + 1}, {ChunkSize + 7, 7, i + 1}} {
			if p, at := e.find(c.off); p.Node != c.node || at != c.at {
				t.Fatalf("byte %d is byte %d of node %d, want %d of %d", c.off, at, p.Node, c.at, c.node)
			}
		}
	}
	runtime.KeepAlive(all)
}
