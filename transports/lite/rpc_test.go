package lite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

// echo serves a port that answers with what it was asked.
func echo(t testing.TB, n *Node, num int, cfg PortConfig) *Port {
	t.Helper()
	cfg.Handle = func(r *Request) {
		if err := r.Reply(r.Payload); err != nil && err != ErrTooBig && err != ErrPeerDead {
			t.Errorf("reply: %v", err)
		}
	}
	return expect.Get(n.Serve(num, cfg))(t)
}

// The other codes, and a ring that is full, are cases of package suite.
func TestAServerIsToldOfWhatItDoesWrong(t *testing.T) {
	everywhere(t, 2, Config{}, func(t *testing.T, c *cluster) {
		p := expect.Get(c.nodes[0].Serve(3, PortConfig{MaxRequest: 8000}))(t)
		cl := c.client(1, ClientConfig{MaxReply: 64})
		expect.Is(t, "no such port", expect.Err(cl.Call(0, 99, nil)), ErrNoPort)
		pend := expect.Get(cl.Start(0, 3, []byte("hello")))(t)
		r := expect.Get(p.Recv(time.Second, WaitPoll))(t)
		if string(r.Payload) != "hello" || r.From != 1 {
			t.Errorf("got %q from %d", r.Payload, r.From)
		}
		expect.Is(t, "an answer longer than the caller's room", r.Reply(make([]byte, 65)), ErrTooBig)
		expect.Is(t, "the caller's side of it", expect.Err(cl.Finish(pend, false)), ErrTooBig)
		expect.OK(t, cl.Send(0, 3, []byte("one way")))
		r = expect.Get(p.Recv(time.Second, WaitSleep))(t)
		if string(r.Payload) != "one way" || !r.OneWay {
			t.Errorf("got %q", r.Payload)
		}
		expect.Is(t, "an answer to nobody", r.Reply(nil), ErrFail)
	})
}

// Many clients and servers, both ways at once, with random sizes.
func TestManyCallersEachGetTheirOwnAnswer(t *testing.T) {
	everywhere(t, 3, Config{Ring: 32 << 10, Depth: 32, Arena: 32 << 20}, func(t *testing.T, c *cluster) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		for _, n := range c.nodes {
			echo(t, n, 9, PortConfig{})
		}
		var wg sync.WaitGroup
		for i := range 3 {
			for k := range 3 {
				cl := c.client(i, ClientConfig{Outstanding: 4, MaxReply: 12000, Wait: Waiting(k),
					Timeout: 20 * time.Second})
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(i*3+k)))
					type started struct {
						p   Pending
						msg []byte
					}
					var open []started
					for m := 0; m < 300 || len(open) > 0; m++ {
						for m < 300 && len(open) < 4 {
							msg := []byte(fmt.Sprintf("%d/%d/%d ", i, k, m))
							msg = append(msg, pattern(rng.IntN(10000), byte(m))...)
							if rng.IntN(2) == 0 {
								msg = msg[:8]
							}
							p, err := cl.Start(rng.IntN(3), 9, msg)
							if err != nil {
								t.Errorf("start: %v", err)
								return
							}
							open = append(open, started{p, msg})
						}
						o := open[0]
						open = open[1:]
						got, err := cl.Finish(o.p, false)
						if err != nil || !bytes.Equal(got, o.msg) {
							t.Errorf("%d bytes for %d, %v", len(got), len(o.msg), err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
	})
}

// L10, L11: two data writes a call, one head a quarter of the ring, and no sender waits for it.
func TestACallIsTwoMessages(t *testing.T) {
	c := onMem(t, 2, Config{Ring: 16 << 10})
	echo(t, c.nodes[0], 1, PortConfig{})
	cl := c.client(1, ClientConfig{Wait: WaitPoll})
	expect.Get(cl.Call(0, 1, make([]byte, 32)))(t) // opens the ring, which is a call too
	server, client := c.nodes[0].Counts(), c.nodes[1].Counts()
	const calls = 1000
	for range calls {
		expect.Get(cl.Call(0, 1, make([]byte, 32)))(t)
	}
	after, mine := c.nodes[0].Counts(), c.nodes[1].Counts()
	if d := after.Messages - server.Messages; d != calls {
		t.Errorf("%d messages of the server for %d calls", d, calls)
	}
	if d := mine.Messages - client.Messages; d != calls {
		t.Errorf("%d messages of the client for %d calls", d, calls)
	}
	bytes, quarter := uint64(calls*64), uint64(16<<10/4)
	if d := after.Heads - server.Heads; d > bytes/quarter || d == 0 {
		t.Errorf("%d heads told for %d bytes of a ring of 16 KiB", d, bytes)
	}
	t.Logf("measured: %d calls of 32 B: %d messages of the client and %d of the server; %d heads told, at most %d",
		calls, mine.Messages-client.Messages,
		after.Messages-server.Messages, after.Heads-server.Heads, bytes/quarter)
}

// L10: as many goroutines poll as there are nodes, however many callers they have.
func TestOneGoroutinePollsHoweverManyClients(t *testing.T) {
	c := onMem(t, 3, Config{})
	echo(t, c.nodes[0], 1, PortConfig{})
	polling := func() int {
		b := make([]byte, 4<<20)
		return strings.Count(string(b[:runtime.Stack(b, true)]), "lite.(*Node).pollLoop(")
	}
	before, most := polling(), 0
	var wg sync.WaitGroup
	const callers = 16
	for i := range callers {
		cl := c.client(1+i%2, ClientConfig{})
		wg.Go(func() {
			for range 200 {
				if _, err := cl.Call(0, 1, make([]byte, 32)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 5 {
		most = max(most, polling())
	}
	wg.Wait()
	if before != len(c.nodes) || most != before {
		t.Errorf("%d goroutines poll for %d nodes without callers, %d with %d", before, len(c.nodes), most, callers)
	}
	t.Logf("measured: %d goroutines poll for %d nodes, with %d callers %d", before, len(c.nodes), callers, most)
}

func TestHotPathsAllocateNothing(t *testing.T) {
	shared := cpus
	t.Cleanup(func() { cpus = shared })
	cpus = nil // a caller that sleeps, because others want the CPUs, allocates
	c := onMem(t, 2, Config{Polling: PollSpin})
	echo(t, c.nodes[0], 1, PortConfig{})
	cl := c.client(1, ClientConfig{Wait: WaitPoll})
	h := expect.Get(cl.Malloc(RegionConfig{Name: "r", Size: 1 << 20, Nodes: []int{0}}))(t)
	b := expect.Get(cl.Alloc(4096))(t)
	ops := []Op{{Kind: OpWrite, Handle: h, Local: expect.Get(cl.Offset(b))(t), Len: 64}}
	done := make([]Done, 4)
	expect.Get(cl.Call(0, 1, b[:64]))(t)
	for what, f := range map[string]func(){
		"write": func() { expect.OK(t, cl.Write(h, 64, b[:64])) },
		"read":  func() { expect.OK(t, cl.Read(h, 64, b[:64])) },
		"fetch-add": func() {
			expect.OK(t, expect.Err(cl.FetchAdd(h, 0, 1)))
		},
		"post and poll": func() {
			expect.OK(t, expect.Err(cl.Post(ops)))
			for n := 0; n == 0; {
				n, _ = cl.Poll(done)
			}
		},
		"call": func() {
			expect.OK(t, expect.Err(cl.Call(0, 1, b[:64])))
		},
	} {
		if n := testing.AllocsPerRun(1000, f); n >= 1 {
			t.Errorf("%s allocates %v times", what, n)
		}
	}
}

// An answer that comes late, before the caller asks again, frees the slot and not what
// the next call needs: its answer still finds its way, and nobody else gets its memory.
func TestALateAnswerLeavesTheSlotInUse(t *testing.T) {
	everywhere(t, 2, Config{}, func(t *testing.T, c *cluster) {
		p := expect.Get(c.nodes[0].Serve(1, PortConfig{}))(t)
		cl := c.client(1, ClientConfig{Timeout: 50 * time.Millisecond})
		left := func() uint64 {
			n := c.nodes[1]
			n.spaceMu.Lock()
			defer n.spaceMu.Unlock()
			return n.space.Left()
		}
		expect.Get(cl.Start(0, 1, []byte("opens the ring")))(t)
		r := expect.Get(p.Recv(5*time.Second, WaitAdaptive))(t)
		before := left()
		for i := range 20 {
			pend := Pending{cl.calls[0], cl.calls[0].word.Load() >> 8}
			if _, err := cl.Finish(pend, false); err != ErrTimeout {
				t.Fatalf("round %d: %v", i, err)
			}
			expect.OK(t, r.Reply([]byte("late")))
			eventually(t, "the late answer is taken", func() bool {
				c.nodes[1].poll()
				_, state := cl.calls[0].state()
				return state == callFree
			})
			expect.Get(cl.Start(0, 1, []byte("again")))(t)
			r = expect.Get(p.Recv(5*time.Second, WaitAdaptive))(t)
			if s := c.nodes[1].calls.all[cl.calls[0].place].Load(); s != cl.calls[0] {
				t.Fatalf("round %d: the call that waits is not in the table", i)
			}
		}
		if now := left(); now != before {
			t.Errorf("%d bytes of the arena left, and %d before", now, before)
		}
	})
}
