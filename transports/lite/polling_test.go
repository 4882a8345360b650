package lite

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/procs"
)

// The polling goroutine leaves arrivals to callers that poll. So one that waits for an end of
// its own, or for room, takes what arrives meanwhile.
func TestACallerThatPollsTakesOthersArrivals(t *testing.T) {
	for what, wait := range map[string]func(w *waiter, c *Client) bool{
		"an end": func(w *waiter, c *Client) bool { return w.wait(c, false, 1<<1) },
		"room":   func(w *waiter, c *Client) bool { return w.waitPolling(c) },
	} {
		t.Run(what, func(t *testing.T) {
			c := onMem(t, 2, Config{})
			var taken atomic.Int64
			expect.Get(c.nodes[0].Serve(7, PortConfig{Handle: func(r *Request) {
				stack := make([]byte, 16<<10)
				if strings.Contains(string(stack[:runtime.Stack(stack, false)]), "lite.(*waiter).") {
					taken.Add(1)
				}
				_ = r.Reply(r.Payload)
			}}))(t)
			own, other := c.client(0, ClientConfig{Wait: WaitPoll}), c.client(1, ClientConfig{})
			var over atomic.Bool
			var waiting sync.WaitGroup
			waiting.Go(func() {
				for w := (waiter{}); !over.Load(); {
					if !wait(&w, own) {
						t.Error("it gave up")
						return
					}
				}
			})
			calls := 0
			for end := time.Now().Add(5 * time.Second); taken.Load() == 0 && time.Now().Before(end); calls++ {
				expect.Get(other.Call(0, 7, []byte("hello")))(t)
			}
			over.Store(true)
			waiting.Wait()
			if taken.Load() == 0 {
				t.Errorf("of %d calls who waits took none", calls)
			}
		})
	}
}

// A caller that looks once in a millisecond or two, as one does who posts long messages, attends to
// what arrives: the polling goroutine does not sleep in the device meanwhile, where it wakes for
// each packet of that caller's.
func TestSparsePollsKeepThePollLoopBackedOff(t *testing.T) {
	const looks, each = 200, 1500 * time.Microsecond
	everywhere(t, 2, Config{}, func(t *testing.T, c *cluster) {
		n := c.nodes[0]
		asleep := 0
		for i := range looks {
			for start := time.Now(); time.Since(start) < each; { // a post
			}
			n.Progress()
			if i >= looks/4 && n.sleeping.Load() != nil {
				asleep++
			}
		}
		if asleep > looks*3/8 { // half of them, on a machine that is too busy to look so often
			t.Errorf("of %d looks %d found the polling goroutine asleep", looks*3/4, asleep)
		}
	})
}

// Pauses grow while callers look, and end where none does.
func TestThePollLoopBacksOffForCallersThatPoll(t *testing.T) {
	const ms = time.Millisecond
	type step struct {
		polls uint64 // since the last one
		kick  bool   // somebody went to sleep in the pause before
		held  bool
		want  time.Duration // 0: the goroutine sleeps
	}
	for name, c := range map[string]struct {
		blind bool // the device wakes nobody
		steps []step
	}{
		"nobody": {steps: []step{{}, {}}},
		"one who goes on": {steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, want: 4 * ms}, {polls: 9, want: 8 * ms}, {polls: 9, want: 8 * ms}}},
		"two looks in 8 ms": {steps: []step{{polls: 1, want: ms}, {polls: 1, want: 2 * ms},
			{polls: 1, want: 4 * ms}, {polls: 1, want: 8 * ms}, {polls: 2, want: 8 * ms}}},
		"one look in 8 ms": {steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, want: 4 * ms}, {polls: 9, want: 8 * ms}, {polls: 1}}},
		"away for 3 ms": {steps: []step{{polls: 1, want: ms}, {want: 2 * ms}, {want: ms},
			{polls: 1, want: ms}, {polls: 1, want: 2 * ms}}},
		"gone":          {steps: []step{{polls: 1, want: ms}, {want: 2 * ms}, {want: ms}, {}, {}}},
		"gone and back": {steps: []step{{}, {polls: wakeEvery, want: ms}, {polls: 1, want: 2 * ms}}},
		"gone to sleep": {steps: []step{{polls: 9, want: ms}, {polls: 9, kick: true}}},
		"gone to sleep, not all": {steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, kick: true}, {polls: 9, want: ms}}},
		"something is held": {steps: []step{{held: true, want: ms}, {held: true, want: ms},
			{polls: 9, held: true, want: ms}, {want: ms}}},
		"something is held behind": {steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, held: true, want: ms}, {polls: 9, held: true, want: ms}, {polls: 9, want: ms}}},
		"asleep, and none wakes": {blind: true, steps: []step{{polls: 9, want: ms}, {polls: 9, want: 2 * ms},
			{polls: 9, kick: true, want: ms}, {want: ms}}},
		"a device that wakes none": {blind: true, steps: []step{{want: ms}, {want: ms}, {polls: 9, want: ms},
			{polls: 9, want: 2 * ms}}},
	} {
		a, looks := pollBackoff{slept: pollPause, rest: pollPause, idle: maxIdle}, uint64(100)
		a.seen = looks
		for i, s := range c.steps {
			looks += s.polls
			if s.kick {
				a.reset(looks)
			}
			if got := a.next(looks, s.held, !c.blind); got != s.want {
				t.Fatalf("%s, step %d: left alone for %v, want %v", name, i, got, s.want)
			}
		}
	}
}

// Of callers that poll one leads and the others sleep; when it has its answer, another
// leads, and everybody gets an answer.
func TestOneCallerPollsForAll(t *testing.T) {
	everywhere(t, 2, Config{Timeout: 20 * time.Second}, func(t *testing.T, c *cluster) {
		p := expect.Get(c.nodes[0].Serve(1, PortConfig{}))(t)
		const callers = 8
		var wg sync.WaitGroup
		for range callers {
			cl := c.client(1, ClientConfig{Wait: WaitPoll})
			wg.Go(func() {
				for i := range 20 {
					if _, err := cl.Call(0, 1, []byte{byte(i)}); err != nil {
						t.Errorf("call %d: %v", i, err)
						return
					}
				}
			})
		}
		var open []Request
		for len(open) < callers {
			open = append(open, expect.Get(p.Recv(10*time.Second, WaitAdaptive))(t))
		}
		n := c.nodes[1]
		eventually(t, "all but one sleep", func() bool {
			return n.leader.Load() != nil && n.followers.Load() >= callers-2
		})
		for _, r := range open {
			expect.OK(t, r.Reply(nil))
		}
		for range callers * 19 {
			r := expect.Get(p.Recv(10*time.Second, WaitAdaptive))(t)
			expect.OK(t, r.Reply(nil))
		}
		wg.Wait()
		if n.leader.Load() != nil || n.followers.Load() != 0 {
			t.Errorf("leader %v and %d followers behind the last answer", n.leader.Load() != nil, n.followers.Load())
		}
	})
}

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
