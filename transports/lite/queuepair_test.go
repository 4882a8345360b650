package lite

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A client takes one queue pair to a peer, by turns or as it is told, and not another one
// while something of it is on its way.
func TestClientsUseTheQueuePairTheyAsk(t *testing.T) {
	c := onMem(t, 2, Config{Links: 4})
	to := c.nodes[0].peers[c.nodes[1].ID()].Load()
	a, b := c.client(0, ClientConfig{}), c.client(0, ClientConfig{})
	defer a.Close()
	defer b.Close()
	if a.link(to) == b.link(to) {
		t.Error("two clients share a queue pair of four")
	}
	for i := range 9 {
		expect.OK(t, a.UseQueuePair(i))
		if got := a.link(to).index; got != i%4 {
			t.Errorf("queue pair %d of 4 is %d", i, got)
		}
	}
	expect.Is(t, "a negative one", a.UseQueuePair(-1), rdma.ErrInvalid)

	h := expect.Get(a.Malloc(RegionConfig{Name: "x", Size: 4096, Nodes: []int{c.nodes[1].ID()}}))(t)
	at := expect.Get(a.Alloc(64))(t)
	local := expect.Get(a.Offset(at))(t)
	posted := a.link(to)
	expect.Get(a.Post([]Op{{Kind: OpWrite, Handle: h, Local: local, Len: 64}}))(t)
	expect.Is(t, "an operation posted", a.UseQueuePair(3), rdma.ErrBusy)
	if a.link(to) != posted {
		t.Error("it changed all the same")
	}
	for n := 0; n == 0; {
		n = expect.Get(a.Poll(make([]Done, 1)))(t)
	}
	expect.OK(t, a.UseQueuePair(3))

	expect.Get(c.nodes[1].Serve(5, PortConfig{}))(t)
	p := expect.Get(a.Start(c.nodes[1].ID(), 5, nil))(t)
	expect.Is(t, "a call started", a.UseQueuePair(2), rdma.ErrBusy)
	a.GiveUp(p)
	expect.OK(t, a.UseQueuePair(2))
}
