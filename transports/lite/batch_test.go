package lite

import (
	"bytes"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// polled takes ends until every posted operation has one, or none is owed.
func polled(t *testing.T, c *Client) (all []Done) {
	t.Helper()
	var d [7]Done
	for end := time.Now().Add(20 * time.Second); c.head != c.tail; {
		n := expect.Get(c.Poll(d[:]))(t)
		all = append(all, d[:n]...)
		if time.Now().After(end) {
			t.Fatalf("%d operations never end", c.tail-c.head)
		}
	}
	return all
}

// A batch is posted in runs: over chunks, over nodes and behind a full queue, every
// operation is carried out once, and those that are signaled end in their order.
func TestABatchIsCarriedOutWhole(t *testing.T) {
	everywhere(t, 2, Config{Depth: 64}, func(t *testing.T, c *cluster) {
		cl := c.client(1, ClientConfig{Depth: 300})
		const size = 2*ChunkSize + 5000
		h := expect.Get(cl.Malloc(RegionConfig{Name: "r", Size: size, Nodes: []int{0, 1}}))(t)
		mem := expect.Get(cl.Alloc(300 * 64))(t)
		at := expect.Get(cl.Offset(mem))(t)
		copy(mem, pattern(len(mem), 3))
		var ops []Op
		want := 0
		for i := range 300 {
			off := uint64(i) * (size - 64) / 299 // some lie over the border of two chunks
			if i%50 == 49 {
				off = ChunkSize - 32
			}
			ops = append(ops, Op{Kind: OpWrite, Handle: h, Off: off, Local: at + uint64(i)*64, Len: 64, Slot: uint32(i),
				Unsignaled: i%7 != 6})
			if i%7 == 6 {
				want++
			}
		}
		var done []Done
		for left := ops; len(left) > 0; {
			n, err := cl.Post(left)
			if left = left[n:]; err != nil && err != rdma.ErrQueueFull {
				t.Fatal(err)
			}
			var d [7]Done
			k := expect.Get(cl.Poll(d[:]))(t)
			done = append(done, d[:k]...)
		}
		done = append(done, polled(t, cl)...)
		if len(done) != want {
			t.Errorf("%d ends, want %d", len(done), want)
		}
		for i, d := range done {
			if d.Slot != uint32(7*i+6) || d.Status != rdma.StatusSuccess {
				t.Errorf("end %d: %+v", i, d)
			}
		}
		got := make([]byte, 64)
		for i, o := range ops {
			if i%50 == 49 && i != 299 { // written again by the next of them
				continue
			}
			expect.OK(t, cl.Read(h, o.Off, got))
			if !bytes.Equal(got, mem[i*64:i*64+64]) && o.Off != ChunkSize-32 {
				t.Errorf("operation %d is not there", i)
			}
		}
		expect.OK(t, cl.FreeRegion(h)) // nothing holds it
	})
}

// The death of a node ends unsignaled operations, those too that were carried out and
// have no completion, and each once: nothing holds the region any more, or less.
func TestADeathEndsABatch(t *testing.T) {
	for range 20 { // where in the batch it comes is chance
		c := onMem(t, 2, Config{})
		cl := c.client(1, ClientConfig{Depth: 64})
		h := expect.Get(cl.Malloc(RegionConfig{Name: "r", Size: 4096, Nodes: []int{0}}))(t)
		mem := expect.Get(cl.Alloc(64))(t)
		at := expect.Get(cl.Offset(mem))(t)
		e := cl.node.handles.all[uint32(h)].Load()
		var ops [20]Op
		for i := range ops {
			ops[i] = Op{Kind: OpWrite, Handle: h, Local: at, Len: 64, Slot: uint32(i), Unsignaled: true}
		}
		died := make(chan struct{})
		go func() {
			defer close(died)
			c.kill(0)
		}()
		for end := time.Now().Add(20 * time.Second); ; {
			_, err := cl.Post(ops[:])
			if err != nil && err != rdma.ErrQueueFull {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the death was not noticed")
			}
			_, _ = cl.Poll(make([]Done, 8)) // failed ones come, too
		}
		<-died
		polled(t, cl)
		if n := e.inflight.Load(); n != 0 {
			t.Fatalf("%d operations hold the region", n)
		}
	}
}
