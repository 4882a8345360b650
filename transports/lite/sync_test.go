package lite

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// atomics skips what a device without them cannot do.
func atomics(t *testing.T, c *cluster) {
	t.Helper()
	if !c.nodes[0].caps.Ops.Has(rdma.OpFetchAdd) {
		expect.Is(t, "a lock on a device without atomics", expect.Err(c.client(0, ClientConfig{}).NewLock("l", 0)),
			rdma.ErrNotSupported)
		t.Skipf("%s has no atomics", c.devs[0].Name())
	}
}

// L16: totals of fetch-add and test-and-set.
func TestAtomicsCountExactly(t *testing.T) {
	everywhere(t, 3, Config{}, func(t *testing.T, c *cluster) {
		atomics(t, c)
		expect.Get(c.client(0, ClientConfig{}).Malloc(RegionConfig{Name: "n", Size: 64, Nodes: []int{1},
			Open: PermAtomic | PermRead}))(t)
		var wg sync.WaitGroup
		var won atomic.Int32
		const each = 200
		for i := range 3 {
			for range 2 {
				cl := c.client(i, ClientConfig{})
				wg.Go(func() {
					h, err := cl.Map("n", PermAtomic, "")
					if err != nil {
						t.Error(err)
						return
					}
					for range each {
						if _, err := cl.FetchAdd(h, 8, 3); err != nil {
							t.Error(err)
							return
						}
					}
					if ok, err := cl.TestSet(h, 16); err != nil {
						t.Error(err)
					} else if ok {
						won.Add(1)
					}
					expect.Is(t, "unaligned", expect.Err(cl.FetchAdd(h, 9, 1)), ErrBounds)
				})
			}
		}
		wg.Wait()
		cl := c.client(0, ClientConfig{})
		h := expect.Get(cl.Map("n", PermAtomic, ""))(t)
		if got := expect.Get(cl.FetchAdd(h, 8, 0))(t); got != 6*each*3 {
			t.Errorf("counted %d, want %d", got, 6*each*3)
		}
		if won.Load() != 1 {
			t.Errorf("%d won the test-and-set", won.Load())
		}
	})
}

func TestALockServesInOrderAndCostsOneRoundTripWhenFree(t *testing.T) {
	c := onMem(t, 3, Config{})
	a, b, d := c.client(1, ClientConfig{}), c.client(2, ClientConfig{}),
		c.client(1, ClientConfig{Timeout: 100 * time.Millisecond})
	la := expect.Get(a.NewLock("l", 0))(t)
	lb, ld := expect.Get(b.OpenLock("l"))(t), expect.Get(d.OpenLock("l"))(t)
	took := func() (messages, requests int64) {
		before := c.nodes[1].Counts()
		expect.OK(t, la.Lock())
		after := c.nodes[1].Counts()
		return int64(after.Messages - before.Messages), int64(after.Pieces - before.Pieces)
	}
	messages, requests := took()
	for try := 0; requests == 3 && try < 5; try++ { // a beat came between, and told whose it is
		expect.OK(t, la.Unlock())
		messages, requests = took()
	}
	if messages != 0 || requests != 2 { // ticket, served
		t.Errorf("a free lock took %d messages and %d requests", messages, requests)
	}
	// One list to the device: a request by itself is a system call and a wake-up over sockets.
	if b := a.batch; b == nil || b[0].Op != rdma.OpFetchAdd || b[0].Flags&rdma.Signaled != 0 || b[1].Op != rdma.OpRead {
		t.Error("the ticket and who is served do not travel together")
	}
	t.Logf("measured: a free lock: %d messages, %d work requests", messages, requests)
	order := make(chan int, 2)
	go func() {
		if err := lb.Lock(); err != nil {
			t.Error(err)
		}
		order <- 1
	}()
	expect.Is(t, "a lock that is held, at the deadline", ld.Lock(), ErrTimeout)
	expect.Is(t, "unlock of what is not held", ld.Unlock(), ErrLockLost)
	select {
	case <-order:
		t.Fatal("two owners")
	default:
	}
	expect.OK(t, la.Unlock())
	<-order
	expect.OK(t, lb.Unlock())
	expect.OK(t, la.Lock()) // the turn that was given up is skipped
	expect.OK(t, la.Unlock())
}

// Who holds a lock keeps it for as long as its node beats, also against those who wait
// longer than it takes to give up a ticket that is nobody's.
func TestALivingOwnerKeepsItsLock(t *testing.T) {
	everywhere(t, 3, Config{DeadAfter: 200 * time.Millisecond, Beat: 20 * time.Millisecond},
		func(t *testing.T, c *cluster) {
			home, a, b := c.client(0, ClientConfig{}), c.client(1, ClientConfig{}),
				c.client(2, ClientConfig{Timeout: time.Second})
			la := expect.Get(a.NewLock("l", 0))(t)
			lb, lh := expect.Get(b.OpenLock("l"))(t), expect.Get(home.OpenLock("l"))(t)
			expect.OK(t, lh.Lock()) // its word is there for a while, and over
			expect.OK(t, lh.Unlock())
			expect.OK(t, la.Lock())
			expect.Is(t, "a held lock, after five times the time of a death", lb.Lock(), ErrTimeout)
			expect.OK(t, la.Unlock())
			expect.OK(t, lb.Lock())
			expect.OK(t, lb.Unlock())
			for i, n := range c.nodes {
				if len(n.owners.held) != 0 {
					t.Errorf("node %d goes on telling of %d locks", i, len(n.owners.held))
				}
			}
		})
}

// Of many locks each is told within as many beats as it takes for all: a home waits no longer
// for one whose owner it never saw.
func TestManyOwnersAreRefreshedInTurn(t *testing.T) {
	const beats = 5
	c := onMem(t, 2, Config{Beat: 20 * time.Second, DeadAfter: time.Minute}) // beats are this test's
	a, o := c.client(1, ClientConfig{}), &c.nodes[1].owners
	for i := range beats * ownersAtOnce {
		expect.OK(t, expect.Get(a.NewLock(fmt.Sprint("l", i), 0))(t).Lock())
	}
	for beat := range beats {
		o.refresh(c.nodes[1])
		if want := (beats - 1 - beat) * ownersAtOnce; len(o.new) != want {
			t.Fatalf("after %d beats %d of %d owners were never told, want %d", beat+1, len(o.new), len(o.held), want)
		}
		within := time.Now().Add(5 * time.Second)
		for o.c.head != o.c.tail && time.Now().Before(within) {
			_, _ = o.c.Poll(o.done[:])
		}
	}
}

// A word that comes late and hides the owner's for a beat does not add up with others.
func TestAnOwnerThatWasSeenIsGivenItsTimeAnew(t *testing.T) {
	c := onMem(t, 2, Config{})
	n := c.nodes[0]
	off := expect.Get(n.alloc(lockLen))(t)
	defer n.free(off)
	l := &homeLock{off: off}
	const ticket = 7
	mine, other := uint64(1+1)<<32|ticket, uint64(1+1)<<32|(ticket-1)
	now, most := time.Now(), 2*n.cfg.DeadAfter
	for _, s := range []struct {
		after  time.Duration
		owner  uint64
		orphan bool
	}{{0, other, false}, {most, other, false}, {most + 1, mine, false}, {2 * most, other, false},
		{3 * most, other, false}, {3*most + 1, other, true}} {
		*l.word(n, lockOwner) = s.owner
		if got := l.orphaned(n, ticket, now.Add(s.after)); got != s.orphan {
			t.Errorf("after %v: orphan %v, want %v", s.after, got, s.orphan)
		}
	}
}

// L16: n nodes, many times.
func TestABarrierHoldsEverybody(t *testing.T) {
	everywhere(t, 3, Config{Timeout: 20 * time.Second}, func(t *testing.T, c *cluster) {
		rounds := 1000
		if testing.Short() {
			rounds = 50
		}
		var wg sync.WaitGroup
		var at [3]atomic.Int32
		for i := range 3 {
			cl := c.client(i, ClientConfig{})
			wg.Go(func() {
				for r := range rounds {
					at[i].Store(int32(r))
					if err := cl.Barrier("b", 3); err != nil {
						t.Error(err)
						return
					}
					for k := range 3 {
						if got := at[k].Load(); got != int32(r) && got != int32(r)+1 {
							t.Errorf("round %d: node %d is at %d", r, k, got)
							return
						}
					}
				}
			})
		}
		wg.Wait()
	})
}
