package lite

import (
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/procs"
)

// contend makes polling a loss until the test ends.
func contend(t *testing.T) {
	for procs.CPUs.Spin(time.Now()) {
		procs.CPUs.Lost(time.Now().Add(time.Hour), time.Second)
	}
	t.Cleanup(func() {
		for !procs.CPUs.Calm() {
			procs.CPUs.Served()
		}
	})
}

// Where others want the CPUs, one of the callers that poll sleeps in the device, and has its answer in time.
func TestACallerSleepsInTheDeviceWherePollingDoesNotPay(t *testing.T) {
	everywhere(t, 2, Config{Timeout: 20 * time.Second}, func(t *testing.T, c *cluster) {
		contend(t)
		near := c.nodes[1]
		expect.Get(c.nodes[0].Serve(1, PortConfig{Handle: func(r *Request) {
			q := *r
			go func() {
				eventually(t, "the caller sleeps in the device", func() bool { return near.resting.Load() != nil })
				expect.OK(t, q.Reply(nil))
			}()
		}}))(t)
		cl := c.client(1, ClientConfig{Wait: WaitPoll})
		least := mostRest
		for range 20 {
			began := time.Now()
			expect.Get(cl.Call(0, 1, nil))(t)
			least = min(least, time.Since(began))
		}
		if least > mostRest/2 {
			t.Errorf("a call takes %v at least: no arrival ends a sleep", least)
		}
	})
}

// Sleepers beside the one in the device get their answers too, from it or from the polling goroutine.
func TestManyCallersRest(t *testing.T) {
	for _, how := range []Waiting{WaitPoll, WaitAdaptive} {
		everywhere(t, 2, Config{Timeout: 20 * time.Second, Spin: time.Nanosecond}, func(t *testing.T, c *cluster) {
			contend(t)
			expect.Get(c.nodes[0].Serve(1, PortConfig{Handle: func(r *Request) {
				q := *r
				go func() {
					time.Sleep(time.Duration(q.Payload[0]) * 100 * time.Microsecond)
					expect.OK(t, q.Reply(nil))
				}()
			}}))(t)
			var all sync.WaitGroup
			began := time.Now()
			for i := range 8 {
				cl := c.client(1, ClientConfig{Wait: how})
				all.Go(func() {
					for range 20 {
						if _, err := cl.Call(0, 1, []byte{byte(i)}); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			if took := time.Since(began); took > 20*mostRest/2 {
				t.Errorf("20 calls of at most 0.7 ms take %v: answers wait for the end of sleeps", took)
			}
		})
	}
}

// The polling goroutine looks for who sleeps beside the device when its sleeper leaves.
func TestWhoRestsAsideIsFoundWhenTheDeviceIsFree(t *testing.T) {
	everywhere(t, 2, Config{Timeout: 20 * time.Second, Spin: time.Nanosecond}, func(t *testing.T, c *cluster) {
		near := c.nodes[1]
		var held [2]chan Request // by port
		var callers [2]*Client
		for i := range held {
			held[i] = make(chan Request, 1)
			expect.Get(c.nodes[0].Serve(i, PortConfig{Handle: func(r *Request) { held[i] <- *r }}))(t)
			callers[i] = c.client(1, ClientConfig{Wait: WaitAdaptive})
		}
		least := mostRest
		for range 10 {
			var done [2]chan error
			for i := range done {
				done[i] = make(chan error, 1)
				go func() {
					_, err := callers[i].Call(0, i, nil)
					done[i] <- err
				}()
				eventually(t, "it rests", func() bool { return near.resting.Load() != nil && near.aside.Load() == int32(i) })
			}
			eventually(t, "the polling goroutine waits for the device", near.parked.Load)
			for i := range done {
				r := <-held[i]
				began := time.Now()
				expect.OK(t, r.Reply(nil))
				expect.OK(t, <-done[i])
				if i == 1 {
					least = min(least, time.Since(began))
				}
			}
		}
		if least > mostRest/2 {
			t.Errorf("an answer wakes who rests aside after %v", least)
		}
	})
}

func TestASignalEndsARest(t *testing.T) {
	everywhere(t, 1, Config{}, func(t *testing.T, c *cluster) {
		n, wake, other := c.nodes[0], make(chan struct{}, 1), make(chan struct{}, 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for len(other) == 0 {
				n.Rest(wake, time.Hour)
			}
		}()
		least := mostRest
		for range 10 {
			eventually(t, "it rests", func() bool { return n.resting.Load() != nil })
			r := n.resting.Load()
			began := time.Now()
			n.Signal(wake)
			eventually(t, "the rest ends", func() bool { return n.resting.Load() != r })
			least = min(least, time.Since(began))
		}
		if least > mostRest/2 {
			t.Errorf("a signal ends a rest after %v", least)
		}
		n.Signal(other)
		n.Signal(wake)
		<-done
	})
}
