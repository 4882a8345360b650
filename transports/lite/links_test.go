package lite

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A peer whose links are still being made is nobody's to end but its maker's: what breaks
// meanwhile is remembered, and keeps it from being admitted.
func TestAPeerThatIsLostBeforeItIsAdmitted(t *testing.T) {
	c := onMem(t, 1, Config{})
	n := c.nodes[0]
	p := expect.Get(n.newPeer())(t)
	p.id = 5
	l := expect.Get(n.newLink(p, 0))(t)
	p.links = append(p.links, l)
	why := errors.New("made up")
	n.lose(p, why)
	if p.dead.Load() || l.broken.Load() || len(n.lost) != 0 {
		t.Errorf("it was ended: dead %v, link broken %v, %d gone", p.dead.Load(), l.broken.Load(), len(n.lost))
	}
	if err := n.admit(p); !errors.Is(err, why) || n.peers[5].Load() != nil {
		t.Errorf("admitted: %v", err)
	}
	n.drop(p)
}

// A pause ends at once for who wants it over, and says so.
func TestAPauseThatIsKicked(t *testing.T) {
	n := onMem(t, 1, Config{Polling: PollSpin}).nodes[0] // its own goroutine never pauses
	signal(n.kick)
	if !n.pause(maxPollPause) {
		t.Error("a kick was not told")
	}
	if n.pause(1) {
		t.Error("a kick was told that nobody gave")
	}
}

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

// Without a place in the queue nothing is written to the memory beside it: the request that has
// it is under way, and a device may not have read it. Written over, a head or a credit became
// another ring's, and a message another message.
func TestARequestUnderWayKeepsItsBytes(t *testing.T) {
	for what, sends := range map[string]bool{"with immediate": false, "sends": true} {
		t.Run(what, func(t *testing.T) {
			c := onMem(t, 2, Config{Sends: sends, Depth: 32})
			l := c.nodes[0].peers[1].Load().links[1]
			for name, post := range map[string]func() error{
				"a message":     func() error { return l.message(0, 0, []byte("head"), []byte("body"), 0, 0) },
				"a word":        func() error { return l.write(0, make([]byte, wire.WordLen)) },
				"a held word":   func() error { return l.postDeferred(&deferred{data: make([]byte, wire.WordLen)}) },
				"a held answer": func() error { return l.postDeferred(&deferred{data: make([]byte, 40), notify: true}) },
			} {
				l.mu.Lock()
				stage := l.node.bytes(l.stage, l.depth*stageLen)
				for i := range stage {
					stage[i] = 0xa5
				}
				before := bytes.Clone(stage)
				used, seq := l.inUse.Swap(int32(l.depth)), l.seq
				if err := post(); err != rdma.ErrQueueFull {
					t.Errorf("%s: %v", name, err)
				}
				if !bytes.Equal(stage, before) || l.seq != seq {
					t.Errorf("%s without a place is written beside a request under way", name)
				}
				l.inUse.Store(used)
				l.mu.Unlock()
			}
		})
	}
}
