package lite

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// atomics skips what a device without them cannot do.
func atomics(t *testing.T, c *cluster) {
	t.Helper()
	if !c.nodes[0].caps.Ops.Has(rdma.OpFetchAdd) {
		_, err := c.client(0, ClientConfig{}).NewLock("l", 0)
		wants(t, "a lock on a device without atomics", err, rdma.ErrNotSupported)
		t.Skipf("%s has no atomics", c.devs[0].Name())
	}
}

// L16: totals of fetch-add and test-and-set.
func TestAtomicsCountExactly(t *testing.T) {
	everywhere(t, 3, Config{}, func(t *testing.T, c *cluster) {
		atomics(t, c)
		must(c.client(0, ClientConfig{}).Malloc(RegionConfig{Name: "n", Size: 64, Nodes: []int{1}, Open: PermAtomic | PermRead}))(t)
		var wg sync.WaitGroup
		var won atomic.Int32
		const each = 200
		for i := range 3 {
			for range 2 {
				cl := c.client(i, ClientConfig{})
				wg.Add(1)
				go func() {
					defer wg.Done()
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
					_, err = cl.FetchAdd(h, 9, 1)
					wants(t, "unaligned", err, ErrBounds)
				}()
			}
		}
		wg.Wait()
		cl := c.client(0, ClientConfig{})
		h := must(cl.Map("n", PermAtomic, ""))(t)
		if got := must(cl.FetchAdd(h, 8, 0))(t); got != 6*each*3 {
			t.Errorf("counted %d, want %d", got, 6*each*3)
		}
		if won.Load() != 1 {
			t.Errorf("%d won the test-and-set", won.Load())
		}
	})
}

// L16: mutual exclusion, and no wake-up is lost.
func TestALockExcludes(t *testing.T) {
	everywhere(t, 3, Config{Timeout: 20 * time.Second}, func(t *testing.T, c *cluster) {
		atomics(t, c)
		must(c.client(0, ClientConfig{}).NewLock("l", 1))(t)
		var wg sync.WaitGroup
		var inside, total atomic.Int32
		for i := range 3 {
			for range 2 {
				cl := c.client(i, ClientConfig{})
				wg.Add(1)
				go func() {
					defer wg.Done()
					l, err := cl.OpenLock("l")
					if err != nil {
						t.Error(err)
						return
					}
					defer l.Close()
					for range 50 {
						if err := l.Lock(); err != nil {
							t.Error(err)
							return
						}
						if inside.Add(1) != 1 {
							t.Error("two owners")
						}
						total.Add(1)
						inside.Add(-1)
						if err := l.Unlock(); err != nil {
							t.Error(err)
							return
						}
					}
				}()
			}
		}
		wg.Wait()
		if total.Load() != 300 {
			t.Errorf("%d turns, want 300", total.Load())
		}
	})
}

func TestALockServesInOrderAndCostsOneRoundTripWhenFree(t *testing.T) {
	c := onMem(t, 3, Config{})
	a, b, d := c.client(1, ClientConfig{}), c.client(2, ClientConfig{}), c.client(1, ClientConfig{Timeout: 100 * time.Millisecond})
	la := must(a.NewLock("l", 0))(t)
	lb, ld := must(b.OpenLock("l"))(t), must(d.OpenLock("l"))(t)
	before := c.nodes[1].Counts()
	check(t, la.Lock())
	after := c.nodes[1].Counts()
	if after.Messages != before.Messages || after.Pieces-before.Pieces != 3 { // ticket, served, owner
		t.Errorf("a free lock took %d messages and %d requests", after.Messages-before.Messages, after.Pieces-before.Pieces)
	}
	// One list to the device: a request by itself is a system call and a wake-up over sockets.
	if b := a.batch; b == nil || b[0].Op != rdma.OpFetchAdd || b[0].Flags&rdma.Signaled != 0 || b[1].Op != rdma.OpRead {
		t.Error("the ticket and who is served do not travel together")
	}
	t.Logf("measured: a free lock: %d messages, %d work requests", after.Messages-before.Messages, after.Pieces-before.Pieces)
	order := make(chan int, 2)
	go func() {
		if err := lb.Lock(); err != nil {
			t.Error(err)
		}
		order <- 1
	}()
	wants(t, "a lock that is held, at the deadline", ld.Lock(), ErrTimeout)
	wants(t, "unlock of what is not held", ld.Unlock(), ErrLockLost)
	select {
	case <-order:
		t.Fatal("two owners")
	default:
	}
	check(t, la.Unlock())
	<-order
	check(t, lb.Unlock())
	check(t, la.Lock()) // the turn that was given up is skipped
	check(t, la.Unlock())
}

// The lock of a dead owner is free after the stated time.
func TestADeadOwnersLockIsPassedOn(t *testing.T) {
	const after = 500 * time.Millisecond
	c := onMem(t, 3, Config{DeadAfter: after, Beat: 50 * time.Millisecond, Timeout: 10 * time.Second})
	a, b := c.client(1, ClientConfig{}), c.client(2, ClientConfig{})
	la := must(a.NewLock("l", 0))(t)
	check(t, la.Lock())
	lb := must(b.OpenLock("l"))(t)
	c.kill(1)
	start := time.Now()
	check(t, lb.Lock())
	if d := time.Since(start); d > 2*after+time.Second {
		t.Errorf("passed on after %v", d)
	}
	check(t, lb.Unlock())
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
			wg.Add(1)
			go func() {
				defer wg.Done()
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
			}()
		}
		wg.Wait()
	})
}

func TestASemaphoreBounds(t *testing.T) {
	c := onMem(t, 3, Config{DeadAfter: 300 * time.Millisecond, Beat: 30 * time.Millisecond})
	a, b := c.client(1, ClientConfig{}), c.client(2, ClientConfig{Timeout: 100 * time.Millisecond})
	sa, sb := a.Semaphore("s", 2), b.Semaphore("s", 2)
	check(t, sa.Acquire())
	check(t, sa.Acquire())
	wants(t, "a third", sb.Acquire(), ErrTimeout)
	check(t, sa.Release())
	check(t, sb.Acquire())
	wants(t, "a third again", sb.Acquire(), ErrTimeout)
	c.kill(1)
	end := time.Now().Add(10 * time.Second)
	for sb.Acquire() != nil { // what the dead node had comes back
		if time.Now().After(end) {
			t.Fatal("a dead node keeps its part")
		}
	}
}

// Who comes to a barrier behind a death is told, too.
func TestABarrierOfNodesIsNotForTheDead(t *testing.T) {
	c := onMem(t, 3, Config{DeadAfter: 300 * time.Millisecond, Beat: 30 * time.Millisecond, Timeout: 10 * time.Second})
	cl := c.client(1, ClientConfig{})
	c.kill(2)
	eventually(t, "the manager knows", func() bool { return len(c.nodes[0].Members()) == 2 })
	start := time.Now()
	wants(t, "barrier", cl.BarrierOf("b", []int{0, 1, 2}), ErrPeerDead)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("told after %v", d)
	}
}
