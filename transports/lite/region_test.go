package lite

import (
	"bytes"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// L2: who may do what, and what is answered to the others.
func TestPermissionsHold(t *testing.T) {
	everywhere(t, 3, Config{}, func(t *testing.T, c *cluster) {
		m, o := c.client(1, ClientConfig{}), c.client(2, ClientConfig{})
		h := must(m.Malloc(RegionConfig{Name: "r", Size: 4096, Nodes: []int{0}, Open: PermRead | PermShare,
			Password: "open sesame"}))(t)
		_, err := m.Malloc(RegionConfig{Name: "r", Size: 1})
		wants(t, "a name twice", err, ErrExists)
		_, err = o.Map("r", PermRead, "open sesam")
		wants(t, "wrong password", err, ErrPassword)
		_, err = o.Map("r", PermWrite, "open sesame")
		wants(t, "more than the region is open for", err, ErrPermission)
		_, err = o.Map("other", PermRead, "")
		wants(t, "no such name", err, ErrNoRegion)
		g := must(o.Map("r", PermRead, "open sesame"))(t)
		wants(t, "write through a read-only handle", o.Write(g, 0, []byte{1}), ErrPermission)
		_, err = o.FetchAdd(g, 0, 1)
		if c.nodes[2].caps.Ops.Has(rdma.OpFetchAdd) {
			wants(t, "atomic without the permission", err, ErrPermission)
		}
		wants(t, "free by another than a master", o.FreeRegion(g), ErrPermission)
		wants(t, "grant by another than a master", o.Grant(g, 2, PermWrite), ErrPermission)
		_, err = o.Move(g, 2)
		wants(t, "move by another than a master", err, ErrPermission)
		one := make([]byte, 1)
		check(t, m.Read(h, 0, one))
		if one[0] != 0 {
			t.Error("a refused write arrived")
		}
		wants(t, "beyond the end", o.Read(g, 4096, one), ErrBounds)
		wants(t, "over the end", o.Read(g, 4090, make([]byte, 7)), ErrBounds)
		wants(t, "far beyond", o.Read(g, 1<<63, one), ErrBounds)
		check(t, m.Grant(h, 2, PermWrite|PermMaster))
		w := must(o.Map("r", PermWrite|PermMaster, "nobody asks"))(t)
		check(t, o.Write(w, 0, []byte{7}))
		wants(t, "read through a write-only handle", o.Read(w, 0, one), ErrPermission)
		moved := must(o.Move(w, 2))(t) // a second master moves it while the first has it mapped
		wants(t, "through a handle to the old place", m.Read(h, 0, one), ErrDeadHandle)
		h = must(m.Map("r", PermRead, "open sesame"))(t)
		check(t, m.Read(h, 0, one))
		if one[0] != 7 {
			t.Errorf("moved region holds %d, want 7", one[0])
		}
		check(t, o.FreeRegion(moved))
		wants(t, "freed by the other master", m.Read(h, 0, one), ErrDeadHandle)
	})
}

// The manager holds every node to what its handles may do, also one whose own checks are left out. What the region is
// open for counts with the password alone.
func TestTheManagerRefusesWhoIsNoMaster(t *testing.T) {
	everywhere(t, 3, Config{}, func(t *testing.T, c *cluster) {
		m, o := c.client(1, ClientConfig{}), c.client(2, ClientConfig{})
		h := must(m.Malloc(RegionConfig{Name: "r", Size: 64, Open: PermAll, Password: "open sesame"}))(t)
		e := must(c.nodes[1].handles.enter(h, 0, 0, 0))(t)
		e.leave()
		refused := func(who string, perm Perm) {
			t.Helper()
			q := regionRequest{Region: e.region, Node: 2, Nodes: []int{2}, Perm: perm}
			wants(t, who+" grants", o.control(0, opGrant, q, nil), ErrPermission)
			wants(t, who+" moves", o.control(0, opMove, q, nil), ErrPermission)
			wants(t, who+" frees", o.control(0, opDelete, q, nil), ErrPermission)
		}
		refused("a node that never mapped it", PermRead)
		_, err := o.Map("r", PermRead, "")
		wants(t, "without the password, after that", err, ErrPassword)
		g := must(o.Map("r", PermRead|PermShare, "open sesame"))(t)
		refused("a node that may read and share", PermWrite)
		check(t, o.Grant(g, 0, PermRead))
		check(t, o.Unmap(g))
		refused("a node that has unmapped it", PermRead)
		check(t, m.FreeRegion(h))
	})
}

// L3: a region over several nodes, and operations over the borders of its chunks.
func TestARegionSpansNodes(t *testing.T) {
	everywhere(t, 3, Config{Arena: 40 << 20}, func(t *testing.T, c *cluster) {
		cl := c.client(1, ClientConfig{})
		const size = 3*ChunkSize + 1000
		h := must(cl.Malloc(RegionConfig{Name: "r", Size: size, Nodes: []int{0, 1, 2}}))(t)
		before := c.nodes[1].Counts().Pieces
		data := pattern(2*ChunkSize+100, 3)
		check(t, cl.Write(h, ChunkSize-50, data)) // the end of 0, all of 1 and 2, the start of 0
		pieces := c.nodes[1].Counts().Pieces - before
		if pieces < 3 {
			t.Errorf("%d work requests for three remote pieces", pieces)
		}
		t.Logf("measured: a write over four chunks, one of them local, is %d work requests", pieces)
		got := make([]byte, len(data))
		check(t, cl.Read(h, ChunkSize-50, got))
		if !bytes.Equal(got, data) {
			t.Error("other bytes came back")
		}
		whole := make([]byte, size)
		check(t, cl.Read(h, 0, whole))
		if !bytes.Equal(whole[ChunkSize-50:ChunkSize-50+len(data)], data) || whole[0] != 0 || whole[size-1] != 0 {
			t.Error("bytes beside the range changed")
		}
	})
}

// L15: memset, memcpy, memmove.
func TestMemoryCallsAreExact(t *testing.T) {
	everywhere(t, 3, Config{Arena: 40 << 20}, func(t *testing.T, c *cluster) {
		cl := c.client(1, ClientConfig{})
		const size = 2*ChunkSize + 5000
		a := must(cl.Malloc(RegionConfig{Name: "a", Size: size, Nodes: []int{0, 2}}))(t)
		b := must(cl.Malloc(RegionConfig{Name: "b", Size: size, Nodes: []int{2, 1}}))(t)
		model := pattern(size, 9)
		check(t, cl.Write(a, 0, model))
		check(t, cl.Read(a, 0, make([]byte, 1)))
		check(t, cl.Memset(a, ChunkSize-10, 0xee, 30))
		for i := range 30 {
			model[ChunkSize-10+i] = 0xee
		}
		same := func(what string, h Handle, want []byte) {
			t.Helper()
			got := make([]byte, len(want))
			check(t, cl.Read(h, 0, got))
			if !bytes.Equal(got, want) {
				i := 0
				for got[i] == want[i] {
					i++
				}
				t.Errorf("%s: byte %d of %d is %d, want %d", what, i, len(want), got[i], want[i])
			}
		}
		same("memset", a, model)
		other := make([]byte, size)
		check(t, cl.Memmove(b, 100, a, 7, size-200))
		copy(other[100:], model[7:7+size-200])
		same("memcpy", b, other)
		for _, m := range []struct {
			what        string
			to, from, n uint64
		}{{"forwards", 0, 3000, size - 3000}, {"backwards", 3000, 0, size - 3000}, {"onto itself", 5, 5, 100},
			{"a few bytes up", ChunkSize - 3, ChunkSize - 9, 64}} {
			check(t, cl.Memmove(a, m.to, a, m.from, m.n))
			copy(model[m.to:m.to+m.n], model[m.from:m.from+m.n])
			same("memmove "+m.what, a, model)
		}
	})
}

// L15: the bytes of a copy go from node to node, and not through the caller.
func TestTheCallerOfACopyMovesNoData(t *testing.T) {
	c := onMem(t, 3, Config{Arena: 40 << 20})
	cl := c.client(2, ClientConfig{})
	const size = 1 << 20
	from := must(cl.Malloc(RegionConfig{Name: "from", Size: size, Nodes: []int{0}}))(t)
	to := must(cl.Malloc(RegionConfig{Name: "to", Size: size, Nodes: []int{1}}))(t)
	data := pattern(size, 9)
	check(t, cl.Write(from, 0, data))
	var before [3]Counts
	for i, n := range c.nodes {
		before[i] = n.Counts()
	}
	check(t, cl.Memmove(to, 0, from, 0, size))
	source, caller := c.nodes[0].Counts().Pieces-before[0].Pieces, c.nodes[2].Counts().Pieces-before[2].Pieces
	if source == 0 || caller != 0 {
		t.Errorf("a copy was %d work requests of the source's node and %d of the caller's", source, caller)
	}
	got := make([]byte, size)
	if check(t, cl.Read(to, 0, got)); !bytes.Equal(got, data) {
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
		h := must(cl.Malloc(RegionConfig{Name: "r", Size: size}))(t)
		b := make([]byte, size)
		check(t, cl.Read(h, 0, b))
		for at, v := range b {
			if v != 0 {
				t.Fatalf("region %d has %d at %d", i, v, at)
			}
		}
		check(t, cl.Write(h, 0, pattern(int(size), 1)))
		check(t, cl.FreeRegion(h))
	}
}
