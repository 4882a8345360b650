package bpev

import (
	"testing"
	"time"
)

func TestACallerWhoseWaitsAreLongPollsNoMore(t *testing.T) {
	var g gain
	for range 3 {
		g.note(true)
	}
	g.note(false)
	if g < 0 {
		t.Error("one long wait among short ones ends polling")
	}
	for range 100 {
		g.note(false)
	}
	for i := range mostGain {
		if g >= 0 {
			t.Errorf("%d short waits repay a hundred long ones", i)
		}
		g.note(true)
	}
	if g < 0 {
		t.Errorf("polling does not pay after %d short waits", mostGain)
	}
}

func TestAPollerPaysAgainAfterManySleepsThatEndCloseTogether(t *testing.T) {
	var q quiet
	q.begin()
	now := epoch.Add(time.Hour)
	for range 3 { // the parts of calls that are far apart
		q.note(now)
		for range often - 1 {
			if now = now.Add(seldom / 8); q.note(now) {
				t.Fatal("a poller pays for a few parts of one call")
			}
		}
		now = now.Add(seldom)
	}
	over := 0
	for range 2 * often {
		if now = now.Add(seldom / 8); q.note(now) {
			over++
		}
	}
	if over != 1 || q.on.Load() {
		t.Errorf("the quiet ended %d times", over)
	}
}

// The poller parks, although somebody sleeps, and an event wakes the sleeper.
func TestWhereLittleArrivesSleepersWaitForEvents(t *testing.T) {
	s := open(t, Config{BusyTime: -1})
	var f fake
	src := newSource(&f)
	h := s.Add(&f, src)
	defer h.Remove()
	for range 3 {
		got := make(chan error, 1)
		go func() {
			for f.Poll()&In == 0 {
				if err := h.Wait(In, time.Time{}); err != nil {
					got <- err
					return
				}
			}
			got <- nil
		}()
		until(t, "nobody waits for an event", func() bool { return h.led.Load() != nil })
		rests(t, func() uint64 { return s.Stats().Scans + f.polls.Load() })
		f.set(In)
		src.raise()
		served(t, got)
		f.set(0)
	}
	if n := s.Stats().Pauses; n != 0 {
		t.Errorf("the poller paused %d times", n)
	}
}

// Who waits long polls for nothing, and does it no more until waits are short again.
func TestPollingEndsWhereItBringsNothing(t *testing.T) {
	s := open(t, Config{BusyTime: 2 * time.Millisecond})
	var f fake
	h := s.Add(&f, newSource(&f))
	defer h.Remove()
	wait := func() (polls uint64) {
		before := f.polls.Load()
		h.Wait(In, time.Now().Add(10*time.Millisecond))
		return f.polls.Load() - before
	}
	const few = 20 // looks before a sleep
	until(t, "it polls for ever", func() bool { return wait() <= few })
	f.set(In)
	for range 2 * mostGain {
		h.Wait(In, time.Time{})
	}
	f.set(0)
	if n := wait(); n <= few {
		t.Errorf("%d polls after short waits", n)
	}
}
