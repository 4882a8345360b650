package lite

import (
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// see is true when some nodes see so many members.
func (c *cluster) see(members int, nodes ...int) bool {
	return !slices.ContainsFunc(nodes, func(i int) bool { return len(c.nodes[i].Members()) != members })
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// A node that dies in silence is noticed; what lay there is lost with its own error,
// and its name, its number and its memory elsewhere come back.
func TestADeathIsNoticed(t *testing.T) {
	everywhere(t, 3, Config{DeadAfter: 600 * time.Millisecond, Beat: 50 * time.Millisecond, Timeout: 5 * time.Second},
		func(t *testing.T, c *cluster) {
			cl := c.client(2, ClientConfig{Outstanding: 2})
			h := expect.Get(cl.Malloc(RegionConfig{Name: "r", Size: ChunkSize + 100, Nodes: []int{0, 1}}))(t)
			own := expect.Get(cl.Malloc(RegionConfig{Name: "own", Size: 100, Nodes: []int{0}}))(t)
			expect.Get(c.nodes[1].Serve(1, PortConfig{}))(t) // it never answers
			pend := expect.Get(cl.Start(1, 1, []byte("hello")))(t)
			c.kill(1)
			start := time.Now()
			expect.Is(t, "a call to a node that died", expect.Err(cl.Finish(pend, false)), ErrPeerDead)
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("noticed after %v", d)
			}
			b := make([]byte, 1)
			expect.Is(t, "a region that lay there", cl.Read(h, 0, b), ErrPeerDead)
			expect.OK(t, cl.Read(own, 0, b))
			eventually(t, "all members have noticed", func() bool { return c.see(2, 0, 2) })
			eventually(t, "the name is free again", func() bool {
				h, err := cl.Malloc(RegionConfig{Name: "r", Size: 8, Nodes: []int{0}})
				return err == nil && cl.FreeRegion(h) == nil
			})
			expect.Is(t, "a new call", expect.Err(cl.Call(1, 1, nil)), ErrPeerDead)
			n := c.join() // takes the number of the dead
			eventually(t, "all members have the new one", func() bool { return c.see(3, 2) })
			h = expect.Get(cl.Malloc(RegionConfig{Name: "r", Size: 100, Nodes: []int{n.ID()}}))(t)
			expect.OK(t, cl.Write(h, 0, []byte("new")))
		})
}

func TestLeavingIsNoticedAtOnce(t *testing.T) {
	everywhere(t, 3, Config{}, func(t *testing.T, c *cluster) {
		start := time.Now()
		expect.OK(t, c.nodes[1].Close())
		eventually(t, "all members have noticed", func() bool { return c.see(2, 0, 2) })
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("noticed after %v", d)
		}
	})
}

// A wait at a barrier ends with an error when a node dies, and so does one that begins behind a death.
func TestABarrierDoesNotWaitForTheDead(t *testing.T) {
	c := onMem(t, 3, Config{DeadAfter: 300 * time.Millisecond, Beat: 30 * time.Millisecond, Timeout: 10 * time.Second})
	cl := c.client(2, ClientConfig{})
	got := make(chan error)
	sent := c.nodes[2].Counts().Messages
	go func() { got <- cl.Barrier("b", 3) }()
	eventually(t, "the barrier is asked for", func() bool { return c.nodes[2].Counts().Messages > sent })
	c.kill(1)
	expect.Is(t, "barrier", <-got, ErrPeerDead)
	eventually(t, "the manager knows", func() bool { return c.see(2, 0) })
	start := time.Now()
	expect.Is(t, "a barrier of the dead", cl.BarrierOf("c", []int{0, 1, 2}), ErrPeerDead)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("told after %v", d)
	}
}

// A node of another cluster, or of none, is refused and costs nothing.
func TestNodesWithoutTheSecretAreRefused(t *testing.T) {
	everywhere(t, 2, Config{Secret: "ours"}, func(t *testing.T, c *cluster) {
		left := c.nodes[0].space.Left()
		for what, cfg := range map[string]Config{"another secret": {Secret: "theirs"},
			"another number of queue pairs": {Secret: "ours", Links: 2}} {
			dev, at := c.open(9)
			cfg.Arena, cfg.Ring, cfg.Listen, cfg.Manager, cfg.Sends = 24<<20, 64<<10, at, c.nodes[0].Addr(), c.cfg.Sends
			expect.Is(t, what, expect.Err(Open(soon(t), dev, cfg)), rdma.ErrRejected)
			expect.OK(t, dev.Close())
		}
		if now := c.nodes[0].space.Left(); now != left {
			t.Errorf("%d bytes of the arena are gone", left-now)
		}
		echo(t, c.nodes[0], 1, PortConfig{})
		expect.Get(c.client(1, ClientConfig{}).Call(0, 1, nil))(t)
	})
}

// A peer with a wrong header in a ring loses its connection, and nothing of this node is
// read or written for it.
func TestAPeerThatBreaksTheProtocolIsDisconnected(t *testing.T) {
	for what, corrupt := range map[string]func(o *outRing, r *wire.Request) (off uint32, imm uint32){
		"a length beyond the ring": func(o *outRing, r *wire.Request) (uint32, uint32) { r.Len = 1 << 30; return 0, 0 },
		"an answer into our own memory": func(o *outRing, r *wire.Request) (uint32, uint32) {
			r.ReplyTo += 1 << 40
			return 0, 0
		},
		"a position far away":   func(o *outRing, r *wire.Request) (uint32, uint32) { r.Start = 1 << 50; return 0, 0 },
		"an offset outside":     func(o *outRing, r *wire.Request) (uint32, uint32) { return 0, wire.Imm(0, 1, 0xfffff0) },
		"a port without a ring": func(o *outRing, r *wire.Request) (uint32, uint32) { return 0, wire.Imm(0, 2, 0) },
		"a kind that is none":   func(o *outRing, r *wire.Request) (uint32, uint32) { return 0, 0xc0000000 },
	} {
		t.Run(what, func(t *testing.T) {
			c := onMem(t, 3, Config{})
			echo(t, c.nodes[0], 1, PortConfig{})
			cl := c.client(1, ClientConfig{})
			p := c.nodes[1].peers[0].Load()
			out := expect.Get(cl.ring(p, 1))(t)
			l := cl.link(p)
			r := wire.Request{ReplyTo: c.nodes[1].base + cl.calls[0].buf, Room: cl.calls[0].room}
			off, imm := corrupt(out, &r)
			if imm == 0 {
				imm = wire.Imm(wire.ImmRequest, 1, off)
			}
			var head [wire.RequestLen]byte
			r.Put(head[:])
			l.mu.Lock()
			expect.OK(t, l.message(out.at+uint64(off), imm, head[:], nil, 0, 0))
			l.mu.Unlock()
			eventually(t, "the peer is disconnected", func() bool { return c.nodes[0].peers[1].Load().dead.Load() })
			expect.Get(c.client(2, ClientConfig{}).Call(0, 1, nil))(t) // the others go on
		})
	}
}

// broken is a queue pair and a completion queue of a device that failed.
type broken struct {
	rdma.CQ
	rdma.QP
}

func (broken) Poll([]rdma.WC) (int, error) { return 0, rdma.ErrCQOverrun }
func (broken) Close() error                { return nil }

// A completion queue that fails under a poll ends its peer, whatever the caller of the poll holds.
func TestAQueueThatFailsEndsItsPeerWithoutTheLockOfTheLink(t *testing.T) {
	p := &peer{admitted: true, ended: make(chan struct{})}
	l := &link{node: &Node{}, peer: p, cq: broken{}, qp: broken{}}
	p.links = []*link{l}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.poll()
	}()
	for _, c := range []chan struct{}{done, p.ended} {
		select {
		case <-c:
		case <-time.After(10 * time.Second):
			t.Fatal("the poll waits for the lock that its caller holds")
		}
	}
	if p.cause != rdma.ErrCQOverrun {
		t.Errorf("the peer ended because of %v", p.cause)
	}
}

// A node whose message makes this one panic is lost alone: the others are served behind it.
func TestAPanicEndsOneNodeAlone(t *testing.T) {
	c := onMem(t, 3, Config{Timeout: time.Second})
	for _, n := range c.nodes {
		expect.OK(t, n.Await(soon(t), 3))
	}
	defer expect.Get(c.nodes[0].Serve(3, PortConfig{MaxRequest: 100, Handle: func(r *Request) {
		if string(r.Payload) == "panic" {
			panic("injected")
		}
		_ = r.Reply(r.Payload)
	}}))(t).Close()
	bad, good := c.client(1, ClientConfig{MaxReply: 100}), c.client(2, ClientConfig{MaxReply: 100})
	if _, err := bad.Call(0, 3, []byte("panic")); err == nil {
		t.Error("a call that made the other node panic has an answer")
	}
	eventually(t, "the end of the node", c.nodes[0].peers[1].Load().dead.Load)
	got := expect.Get(good.Call(0, 3, []byte("more")))(t)
	if string(got) != "more" {
		t.Errorf("another node: %q", got)
	}
}
