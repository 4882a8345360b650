package bpev

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/procs"
)

// poller scans the sleepers among its connections.
type poller struct {
	set   *Set
	list  atomic.Pointer[[]*Handle] // replaced whole, under set.mu, so that scans take no lock
	idle  atomic.Bool               // parked or pausing
	quiet quiet
	woken chan struct{} // token: there is a new sleeper
}

func newPoller(s *Set) *poller {
	p := &poller{set: s, woken: make(chan struct{}, 1)}
	p.list.Store(&[]*Handle{})
	return p
}

// wake ends the pause of an idle poller. A spinning one sees the sleeper anyway.
func (p *poller) wake() {
	if p.idle.Load() {
		select {
		case p.woken <- struct{}{}:
		default:
		}
	}
}

func (p *poller) remove(h *Handle) {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*p.list.Load()), func(x *Handle) bool { return x == h })
	p.list.Store(&list)
}

// scan polls for every sleeper once, and counts those that only a poller can wake. The others' events are late where
// all processors of the process spin: the runtime asks the kernel for them when it has nothing else to do.
func (p *poller) scan() (sleepers int, hit bool) {
	p.set.scans.Add(1)
	for _, h := range *p.list.Load() {
		switch waits := h.waits(); {
		case waits:
			sleepers++
		case h.Sleeping() == 0 || p.set.crowd.on.Load():
			continue
		}
		if h.scan() {
			hit = true
		}
	}
	return sleepers, hit
}

// loop scans until the Set is closed. spun is how long it did so since the last hit and the last Set.occupy. Of what
// others took meanwhile it has little: their work may be what the sleepers wait for.
func (p *poller) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var spun time.Duration
	resumed := time.Now()
	yield := resumed
	waits := p.set.waits.Load()
	for looks := 0; ; {
		sleepers, hit := p.scan()
		if hit {
			spun = 0
			// The caller that was woken waits on this very processor.
			runtime.Gosched()
			resumed = time.Now()
			yield = resumed
			continue
		}
		if looks += sleepers; sleepers > 0 && looks < clockEvery {
			continue
		}
		looks = 0
		before := time.Now()
		procs.YieldThread()
		now := time.Now()
		p.set.cpus.Lost(now, now.Sub(before))
		spun += min(now.Sub(resumed), yieldEvery)
		resumed = now
		if w := p.set.waits.Load(); w != waits {
			waits, spun = w, 0
		}
		rests := spun >= seldom
		switch {
		case p.set.over.Load():
			return
		case (!p.set.cpus.Calm() || p.set.crowd.on.Load()) && p.release():
			spun = 0
		case sleepers == 0 && (rests || !p.set.occupies):
			if _, open := p.park(nil); !open {
				return
			}
			spun = 0
		case rests && p.set.cfg.IdleSleep > 0:
			p.quiet.begin()
			if p.release() {
				spun = 0
				break
			}
			p.set.pauses.Add(1)
			timer.Reset(p.set.cfg.IdleSleep)
			nudged, open := p.park(timer.C)
			if !open {
				return
			}
			if nudged {
				spun = 0 // there is traffic again
			}
			looks = clockEvery - 1 // else one scan, then the next pause, unless it finds work
		case now.Sub(yield) >= yieldEvery:
			runtime.Gosched()
			yield = time.Now()
		default:
			continue
		}
		resumed = time.Now()
	}
}

// release makes the sleepers that have events wait for those, and parks when there are no others.
func (p *poller) release() (parked bool) {
	scanned := false
	for _, h := range *p.list.Load() {
		switch {
		case !h.waits():
		case h.src != nil:
			h.Notify(h.Sleeping())
		default:
			scanned = true
		}
	}
	if !scanned {
		p.park(nil)
	}
	return !scanned
}

// park waits for a wake, or for the end of a pause; open=false when the Set is closed. It sets idle
// before its last check, as a sleeper does.
func (p *poller) park(pause <-chan time.Time) (nudged, open bool) {
	p.idle.Store(true)
	defer p.idle.Store(false)
	if pause == nil && slices.ContainsFunc(*p.list.Load(), (*Handle).waits) {
		return true, true
	}
	select {
	case <-p.woken:
		return true, true
	case <-pause:
		return false, true
	case <-p.set.done:
		return false, false
	}
}
