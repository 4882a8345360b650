package bpev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/procs"
)

func TestWaitReturnsWhenReady(t *testing.T) {
	for _, tc := range []struct {
		name   string
		cfg    Config
		sleeps bool
	}{
		{"bp", Config{Mode: BP}, false},
		{"bpev within the busy time", Config{BusyTime: never}, false},
		{"bpev after the busy time", Config{BusyTime: time.Nanosecond}, true},
		{"bpev without busy time", Config{BusyTime: -1}, true},
		{"bpev with a poller that never pauses", Config{BusyTime: -1, IdleSleep: -1}, true},
		{"bpev with several pollers", Config{BusyTime: -1, Pollers: 4}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t, tc.cfg)
			var f fake
			h := s.Add(&f, nil)
			defer h.Remove()
			for range 3 {
				got := waiting(h, In, time.Time{})
				if tc.sleeps {
					asleep(t, h, In)
				} else {
					for f.polls.Load() < 1000 {
						time.Sleep(100 * time.Microsecond)
					}
				}
				f.set(In)
				served(t, got)
				f.set(0)
				f.polls.Store(0)
			}
			if slept := s.Stats().Sleeps > 0; slept != tc.sleeps {
				t.Errorf("slept %v, want %v", slept, tc.sleeps)
			}
		})
	}
}

func TestDirectionsWaitApart(t *testing.T) {
	s := open(t, Config{BusyTime: -1})
	var f fake
	h := s.Add(&f, nil)
	defer h.Remove()
	in, out := waiting(h, In, time.Time{}), waiting(h, Out, time.Time{})
	asleep(t, h, In)
	asleep(t, h, Out)
	f.set(Out)
	served(t, out)
	select {
	case err := <-in:
		t.Fatalf("the reader was woken by room to write: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	f.set(In)
	served(t, in)
}

func TestEventModeSleepsUntilTheEvent(t *testing.T) {
	s := open(t, Config{Mode: Event})
	var f fake
	src := newSource(&f)
	h := s.Add(&f, src)
	defer h.Remove()
	for range 3 {
		got := waiting(h, In, time.Time{})
		asleep(t, h, In)
		rests(t, func() uint64 { return f.polls.Load() }) // nothing runs while nothing happens
		f.set(In)
		src.raise()
		served(t, got)
		f.set(0)
	}
}

// The reader waits for the events, and wakes the writer for what they bring; when it leaves, the writer goes on.
func TestOneSleeperLeadsForBothDirections(t *testing.T) {
	s := open(t, Config{Mode: Event})
	var f fake
	src := newSource(&f)
	h := s.Add(&f, src)
	defer h.Remove()
	in := waiting(h, In, time.Time{})
	for h.led.Load() == nil {
		time.Sleep(100 * time.Microsecond)
	}
	out := waiting(h, Out, time.Time{})
	asleep(t, h, Out)
	f.set(Out)
	src.raise()
	served(t, out)
	f.set(0)
	out = waiting(h, Out, time.Time{})
	asleep(t, h, Out)
	h.Kick(In)
	served(t, in)
	served(t, out) // it looks again, and would lead
}

func TestASourceThatFailsEndsTheWait(t *testing.T) {
	s := open(t, Config{Mode: Event})
	var f fake
	src := newSource(&f)
	src.fail = errDevice
	h := s.Add(&f, src)
	defer h.Remove()
	if err := result(t, waiting(h, In, time.Time{})); !errors.Is(err, errDevice) {
		t.Errorf("the wait ends with %v", err)
	}
}

// Where others want the CPUs nobody spins: sleepers wait for events, also those that a poller was to find, and the
// poller parks.
func TestContentionMakesSleepersWaitForEvents(t *testing.T) {
	var cpus procs.Contention
	s, err := newSet(context.Background(), Config{BusyTime: -1, IdleSleep: -1}, &cpus)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var f, g fake
	src, other := newSource(&f), newSource(&g)
	h, k := s.Add(&f, src), s.Add(&g, other)
	defer h.Remove()
	defer k.Remove()
	found := waiting(h, In, time.Time{})
	asleep(t, h, In)
	for range 20 {
		cpus.Lost(time.Now().Add(time.Hour), time.Second) // the pauses end in an hour
	}
	served(t, found) // to wait again, for events
	got := waiting(k, In, time.Time{})
	asleep(t, k, In)
	rests(t, func() uint64 { return s.Stats().Scans + g.polls.Load() })
	g.set(In)
	other.raise()
	served(t, got)
}

// Where more connections are active than pollers pay for, their callers wait for events and the pollers park; those that
// idle do not count, and polling begins again when few are left.
func TestACrowdWaitsForEvents(t *testing.T) {
	const most, idle = 3, 20
	s := open(t, Config{BusyTime: -1, IdleSleep: -1, MostPolled: most})
	var fakes [most + 1 + idle]fake
	var sources [len(fakes)]*source
	var handles [len(fakes)]*Handle
	var idlers []<-chan error
	for i := range fakes {
		sources[i] = newSource(&fakes[i])
		handles[i] = s.Add(&fakes[i], sources[i])
		if i <= most {
			fakes[i].set(In)
			continue
		}
		idlers = append(idlers, waiting(handles[i], In, time.Time{}))
		asleep(t, handles[i], In)
	}
	for _, tc := range []struct {
		active int
		leads  bool
	}{{most, false}, {most + 1, true}, {1, false}} {
		for i := range 4 * countWaits {
			if err := handles[i%tc.active].Wait(In, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		fakes[0].set(0)
		got := waiting(handles[0], In, time.Time{})
		asleep(t, handles[0], In)
		if leads := handles[0].leads(); leads != tc.leads {
			t.Errorf("%d active: the caller waits for events %v, want %v", tc.active, leads, tc.leads)
		}
		if tc.leads {
			for _, got := range idlers {
				served(t, got) // to wait again, for events
			}
			rests(t, func() uint64 { return s.Stats().Scans })
		}
		fakes[0].set(In)
		sources[0].raise()
		served(t, got)
	}
}

func TestDeadlines(t *testing.T) {
	for _, cfg := range []Config{{Mode: BP}, {Mode: Event}, {BusyTime: never}, {BusyTime: -1}} {
		t.Run(fmt.Sprint(cfg), func(t *testing.T) {
			s := open(t, cfg)
			h := s.Add(&fake{}, nil)
			defer h.Remove()
			for _, d := range []time.Duration{-time.Second, time.Millisecond, 10 * time.Millisecond} {
				err := result(t, waiting(h, In, time.Now().Add(d)))
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("deadline in %v: %v", d, err)
				}
			}
			if h.Sleeping() != 0 {
				t.Error("still counted as asleep")
			}
		})
	}
}

func TestKickAndCloseEndWaits(t *testing.T) {
	for _, cfg := range []Config{{Mode: BP}, {Mode: Event}, {BusyTime: never}, {BusyTime: -1}} {
		t.Run(fmt.Sprint(cfg), func(t *testing.T) {
			s := open(t, cfg)
			h := s.Add(&fake{}, nil)
			defer h.Remove()
			got := waiting(h, In, time.Time{})
			time.Sleep(time.Millisecond)
			h.Kick(In)
			if err := result(t, got); err != nil {
				t.Errorf("after a kick: %v", err)
			}
			h.Kick(Out) // before the wait
			if err := result(t, waiting(h, Out, time.Time{})); err != nil {
				t.Errorf("after an early kick: %v", err)
			}
			if err := result(t, waiting(h, Out, time.Now().Add(time.Millisecond))); !errors.Is(err,
				os.ErrDeadlineExceeded) {
				t.Errorf("a kick counts twice: %v", err)
			}
			got = waiting(h, In, time.Time{})
			time.Sleep(time.Millisecond)
			s.Close()
			if err := result(t, got); !errors.Is(err, net.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// A poller scans nothing while nobody sleeps, and pauses while sleepers idle.
func TestIdlePollersRest(t *testing.T) {
	s := open(t, Config{BusyTime: -1, IdleSleep: 20 * time.Millisecond})
	var f fake
	h := s.Add(&f, nil)
	defer h.Remove()
	rests(t, func() uint64 { return s.Stats().Scans })
	got := waiting(h, In, time.Time{})
	asleep(t, h, In)
	until(t, "the poller does not pause", func() bool { return s.Stats().Pauses >= 2 })
	begun, before := time.Now(), s.Stats().Scans
	time.Sleep(100 * time.Millisecond)
	n := s.Stats().Scans - before
	// A scan goes with each pause, and no more pauses fit than this; that is twice as many.
	if most := 2 * (uint64(time.Since(begun)/(20*time.Millisecond)) + 1); n > most {
		t.Errorf("%d scans in %v, at most %d", n, time.Since(begun), most)
	}
	f.set(In)
	served(t, got)
}

// The end of Remove is the end of all polling by the Set.
func TestRemoveEndsPolling(t *testing.T) {
	s := open(t, Config{BusyTime: -1, IdleSleep: -1})
	var f fake
	h := s.Add(&f, nil)
	got := waiting(h, In, time.Time{})
	asleep(t, h, In)
	for f.polls.Load() < 100 {
		time.Sleep(time.Millisecond)
	}
	h.Remove()
	before := f.polls.Load()
	time.Sleep(5 * time.Millisecond)
	if after := f.polls.Load(); after != before {
		t.Errorf("%d polls after Remove", after-before)
	}
	h.Kick(In)
	served(t, got)
}

// sleepers are n connections that are waited for.
func sleepers(s *Set, n int) (fakes []fake, handles []*Handle, results []<-chan error) {
	fakes = make([]fake, n)
	for i := range fakes {
		h := s.Add(&fakes[i], nil)
		handles, results = append(handles, h), append(results, waiting(h, In, time.Time{}))
	}
	return fakes, handles, results
}

// Thousands of connections share the pollers, and everyone is woken.
func TestManyConnections(t *testing.T) {
	const conns = 2000
	s := open(t, Config{BusyTime: -1, Pollers: 3})
	fakes, handles, results := sleepers(s, conns)
	for _, p := range s.pollers {
		if n := len(*p.list.Load()); n < conns/3 || n > conns/3+1 {
			t.Errorf("a poller has %d of %d connections", n, conns)
		}
	}
	for i := range fakes {
		fakes[i].set(In)
	}
	for i := range results {
		served(t, results[i])
	}
	for _, h := range handles {
		h.Remove()
	}
	for _, p := range s.pollers {
		if n := len(*p.list.Load()); n != 0 {
			t.Errorf("%d connections left", n)
		}
	}
}

// stubborn becomes ready again and again while it is waited on, as a connection
// does whose data arrives between any two steps of a waiter.
type stubborn struct{ posted, taken atomic.Uint64 }

func (s *stubborn) Poll() Ready {
	if s.posted.Load() > s.taken.Load() {
		return In
	}
	return 0
}

func TestNoWakeUpIsLost(t *testing.T) {
	for _, cfg := range []Config{{BusyTime: -1}, {BusyTime: time.Microsecond},
		{BusyTime: -1, Pollers: 2, IdleSleep: -1}} {
		s := open(t, cfg)
		var c stubborn
		h := s.Add(&c, nil)
		const rounds = 500
		go func() {
			for range rounds {
				for c.posted.Load() != c.taken.Load() {
					time.Sleep(0)
				}
				c.posted.Add(1)
			}
		}()
		for range rounds {
			for c.Poll() == 0 {
				if err := h.Wait(In, time.Now().Add(testTime)); err != nil {
					t.Fatal(err)
				}
			}
			c.taken.Add(1)
		}
		h.Remove()
	}
}

func TestWaitAllocatesNothing(t *testing.T) {
	s := open(t, Config{Mode: Event})
	var f fake
	h := s.Add(&f, nil)
	defer h.Remove()
	f.set(In)
	deadline := time.Now().Add(never)
	if n := testing.AllocsPerRun(100, func() { h.Wait(In, deadline) }); n != 0 {
		t.Errorf("a served wait allocates %v times", n)
	}
	f.set(0)
	if n := testing.AllocsPerRun(20, func() { h.Wait(In, time.Now().Add(100*time.Microsecond)) }); n != 0 {
		t.Errorf("a sleep allocates %v times", n)
	}
}

func TestMistakesAreRefused(t *testing.T) {
	var m Mode
	if err := m.UnmarshalText([]byte("epoll")); !errors.Is(err, ErrConfig) {
		t.Errorf("unknown mode: %v", err)
	}
	for _, c := range []Config{{Mode: numModes}, {Pollers: -1}, {Pollers: MaxPollers + 1}, {MostPolled: -1}} {
		if _, err := New(context.Background(), c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Only so many callers spin that the processors do; the others leave it to the pollers.
func TestSpinnersAreBounded(t *testing.T) {
	s := open(t, Config{BusyTime: never})
	s.spinners = 2
	const conns = 6
	fakes, handles, results := sleepers(s, conns)
	until(t, "too few sleep", func() bool { return s.Stats().Sleeps >= conns-2 })
	for i := range fakes {
		fakes[i].set(In)
		if err := result(t, results[i]); err != nil {
			t.Error(err)
		}
		handles[i].Remove()
	}
	if n := s.Stats().Sleeps; n != conns-2 {
		t.Errorf("%d slept, want %d", n, conns-2)
	}
}

// Where pollers can fill the processors beside a caller they stay awake while
// callers poll, and rest a moment behind the last of them.
func TestPollersFillTheProcessorsWhileCallersPoll(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	s := open(t, Config{})
	f := &fake{}
	f.set(In)
	h := s.Add(f, nil)
	before := s.Stats()
	for end := time.Now().Add(testTime); s.Stats().Scans < before.Scans+100; {
		if err := h.Wait(In, time.Time{}); err != nil || time.Now().After(end) {
			t.Fatalf("%v, or the poller did not stay awake", err)
		}
	}
	if s.Stats().Sleeps != before.Sleeps {
		t.Error("a caller slept: the test shows nothing")
	}
	rests(t, func() uint64 { return s.Stats().Scans })

	runtime.GOMAXPROCS(4) // one poller cannot fill them
	s = open(t, Config{})
	h = s.Add(f, nil)
	before = s.Stats()
	for range 1000 {
		if err := h.Wait(In, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Stats().Scans - before.Scans; n > 2 {
		t.Errorf("%d scans for nobody", n)
	}
}
