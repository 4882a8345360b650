package bpev

import (
	"context"
	"errors"
	"math/bits"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/procs"
)

// clockEvery is how many turns of busy polling pass between two reads of the clock. A turn over a
// software provider takes about half a microsecond.
const clockEvery = 8

// yieldEvery is how long a spinning goroutine keeps its processor. Yielding is not free: the
// runtime wakes another thread at every yield while a processor is idle, which then only takes over
// the spinning.
const yieldEvery = 20 * time.Microsecond

// yieldTurns is how many polls a wait begins with that each let all others of the process run
// before: what the caller made runnable, and what that makes runnable in turn, may be what the peer
// waits for. One is not enough for a writer that itself yields once to gather more, as gRPC's does.
const yieldTurns = 3

// Handle is a connection in a Set.
type Handle struct {
	set    *Set
	p      Pollable
	src    Source  // nil: only pollers find what wakes a sleeper
	poller *poller // scans it; nil without background pollers

	leading sync.Mutex // held by the sleeper that waits for events of src
	led     atomic.Pointer[led]
	own     [directions]*led // the last ones, while nobody ended them; guarded by leading

	alone    atomic.Bool   // KeepProcessor was called
	counted  atomic.Uint64 // the last count of the Set's crowd that it was part of
	gains    [directions]gain
	sleeping atomic.Uint32 // directions with a sleeper that was not woken yet
	kicked   atomic.Uint32 // directions whose wait must return
	wake     [directions]chan struct{}
	timers   [directions]*time.Timer

	scanning sync.Mutex // held by a background poller inside Poll
	removed  bool       // guarded by scanning
}

// KeepProcessor declares that callers that wait on this connection leave nothing runnable behind,
// so that it polls at once instead of letting others run first.
func (h *Handle) KeepProcessor() { h.alone.Store(true) }

// Wait returns when the connection may be ready for want, which is In or Out: the caller checks and
// waits again. os.ErrDeadlineExceeded after the deadline (the zero time is none), net.ErrClosed
// after the Set was closed. A Kick makes it return nil at once.
func (h *Handle) Wait(want Ready, deadline time.Time) error {
	s := h.set
	crowded := s.crowd.most > 0 && h.src != nil && s.crowd.note(h)
	if !s.spins || crowded {
		return h.sleep(want, deadline)
	}
	gain := h.gain(want)
	if *gain >= 0 || s.cfg.Mode == BP || !h.poller.quiet.on.Load() {
		if done, err := h.spin(want, deadline); done {
			gain.note(true)
			return err
		}
	}
	begun := time.Now()
	err := h.sleep(want, deadline)
	gain.note(time.Since(begun) < s.cfg.BusyTime)
	return err
}

// gain is that of the caller who waits for want.
func (h *Handle) gain(want Ready) *gain { return &h.gains[bits.TrailingZeros8(uint8(want))] }

// leads reports whether a sleeper waits for events of its own, instead of being found by a poller.
func (h *Handle) leads() bool {
	return h.src != nil && (h.set.cfg.Mode == Event || !h.set.cpus.Calm() ||
		h.poller != nil && (h.set.crowd.on.Load() || h.poller.quiet.on.Load()))
}

// spin polls for the busy time; done=false when that is over, or when enough
// others spin already: they and the pollers keep the processors busy.
func (h *Handle) spin(want Ready, deadline time.Time) (done bool, err error) {
	s := h.set
	defer s.spinning.Add(-1)
	if s.spinning.Add(1) > s.spinners && s.cfg.Mode == BPEV {
		return false, nil
	}
	sleeps := s.cfg.Mode == BPEV
	if sleeps && !s.cpus.Calm() && !s.cpus.Spin(time.Now()) {
		return false, nil
	}
	s.occupy()
	if !h.alone.Load() {
		for range yieldTurns {
			runtime.Gosched()
			if h.takeKick(want) || h.p.Poll()&want != 0 {
				return true, nil
			}
		}
	}
	start := time.Now()
	yield, last := start, start
	for turn := 1; ; turn++ {
		if h.takeKick(want) || h.p.Poll()&want != 0 {
			s.cpus.Served()
			return true, nil
		}
		if turn%clockEvery != 0 {
			continue
		}
		procs.YieldThread()
		now := time.Now()
		if lost := now.Sub(last); lost >= procs.LostAfter {
			if s.cpus.Lost(now, lost); sleeps && !s.cpus.Spin(now) {
				return false, nil
			}
		}
		last = now
		if !deadline.IsZero() && !now.Before(deadline) {
			return true, os.ErrDeadlineExceeded
		}
		if s.over.Load() {
			return true, net.ErrClosed
		}
		if s.cfg.Mode == BPEV && now.Sub(start) >= s.cfg.BusyTime {
			h.gain(want).note(false)
			return false, nil
		}
		if now.Sub(yield) >= yieldEvery || s.spinning.Load() > s.spinners {
			runtime.Gosched()
			yield = now
			last = time.Now() // what other goroutines took is no contention
		}
	}
}

// sleep parks the caller until it is woken. It sets sleeping before its last poll: what makes the
// connection ready either is seen by that poll or sees the sleeper.
func (h *Handle) sleep(want Ready, deadline time.Time) error {
	dir := bits.TrailingZeros8(uint8(want))
	h.woken(dir) // left over from an earlier sleep
	h.sleeping.Or(uint32(want))
	defer h.sleeping.And(^uint32(want))
	if h.leads() && h.leading.TryLock() {
		defer h.follow(want)
		return h.lead(want, deadline)
	}
	if h.takeKick(want) || h.p.Poll()&want != 0 {
		return nil
	}
	var expired <-chan time.Time
	if !deadline.IsZero() {
		left := time.Until(deadline)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		expired = h.timer(dir, left)
		defer h.timers[dir].Stop()
	}
	h.set.sleeps.Add(1)
	if h.poller != nil {
		h.poller.wake()
	}
	select {
	case <-h.wake[dir]:
		h.takeKick(want)
		return nil
	case <-expired:
		return os.ErrDeadlineExceeded
	case <-h.set.done:
		return net.ErrClosed
	}
}

// timer reuses one timer a direction: waits of a direction never overlap.
func (h *Handle) timer(dir int, d time.Duration) <-chan time.Time {
	if h.timers[dir] == nil {
		h.timers[dir] = time.NewTimer(d)
	} else {
		h.timers[dir].Reset(d)
	}
	return h.timers[dir].C
}

func (h *Handle) takeKick(want Ready) bool {
	return h.kicked.Load()&uint32(want) != 0 && h.kicked.And(^uint32(want))&uint32(want) != 0
}

// Kick makes the present or the next Wait of the given directions return: the
// caller's deadline has changed, or its connection is being closed.
func (h *Handle) Kick(r Ready) {
	h.kicked.Or(uint32(r))
	for dir := range h.wake {
		if r&(1<<dir) != 0 {
			h.rouse(dir)
		}
	}
}

// Notify wakes the sleepers of the given directions. It costs one load without sleepers.
func (h *Handle) Notify(r Ready) {
	if h.sleeping.Load()&uint32(r) == 0 {
		return
	}
	hit := h.sleeping.And(^uint32(r)) & uint32(r)
	for dir := range h.wake {
		if hit&(1<<dir) != 0 {
			h.set.wakes.Add(1)
			h.rouse(dir)
		}
	}
}

// Sleeping are the directions with sleepers.
func (h *Handle) Sleeping() Ready { return Ready(h.sleeping.Load()) }

func (h *Handle) rouse(dir int) {
	if l := h.led.Load(); l != nil && l.dir == dir {
		l.end()
	}
	select {
	case h.wake[dir] <- struct{}{}:
	default:
	}
}

// waits reports whether only a poller can wake the sleepers.
func (h *Handle) waits() bool { return h.Sleeping() != 0 && h.led.Load() == nil }

// scan polls for the sleepers. It skips a connection that is being removed.
func (h *Handle) scan() (hit bool) {
	if !h.scanning.TryLock() {
		return false
	}
	defer h.scanning.Unlock()
	if h.removed {
		return false
	}
	r := h.p.Poll() & h.Sleeping()
	h.Notify(r)
	return r != 0
}

// Remove takes the connection out. Waits in progress are not ended: Kick does that.
func (h *Handle) Remove() {
	h.scanning.Lock()
	h.removed = true
	h.scanning.Unlock()
	if h.poller != nil {
		h.poller.remove(h)
	}
}

// led is the wait of a sleeper for the events of its connection.
type led struct {
	ctx context.Context
	end context.CancelFunc
	dir int // of the sleeper
}

// lead waits for an event of the connection's own source, and handles what completed for both directions. The caller
// holds leading, and has set its bit of sleeping.
func (h *Handle) lead(want Ready, deadline time.Time) error {
	dir := bits.TrailingZeros8(uint8(want))
	l := h.own[dir]
	if l == nil || l.ctx.Err() != nil {
		l = &led{dir: dir}
		l.ctx, l.end = context.WithCancel(h.set.ctx)
		h.own[dir] = l
	}
	ctx := l.ctx
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	h.set.sleeps.Add(1)
	for {
		// Arm comes before the look: what comes behind it is an event.
		ready, err := h.src.Arm()
		if err != nil {
			return err
		}
		h.Notify(ready &^ want)
		if h.takeKick(want) || ready&want != 0 {
			return nil
		}
		h.led.Store(l) // before the look for what others found: who finds it behind that ends the wait
		if h.woken(l.dir) || h.takeKick(want) {
			h.led.Store(nil)
			return nil
		}
		err = h.src.Wait(ctx)
		h.led.Store(nil)
		switch {
		case err == nil:
			h.set.wakes.Add(1)
			if h.poller != nil && h.poller.quiet.note(time.Now()) {
				h.poller.wake()
			}
		case l.ctx.Err() != nil:
			if h.set.over.Load() {
				return net.ErrClosed
			}
			h.takeKick(want)
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			return os.ErrDeadlineExceeded
		default:
			return err
		}
	}
}

// woken takes the token of a wake.
func (h *Handle) woken(dir int) bool {
	select {
	case <-h.wake[dir]:
		return true
	default:
		return false
	}
}

// follow ends the lead. A sleeper of the other direction takes it.
func (h *Handle) follow(want Ready) {
	h.leading.Unlock()
	h.Notify(h.Sleeping() &^ want)
}
