package lite

import (
	"bytes"
	"testing"
)

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
