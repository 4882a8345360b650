package bpev

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/internal/procs"
)

// Ready are the directions in which a connection's user can go on.
type Ready uint8

const (
	In  Ready = 1 << iota // something to read, or its end
	Out                   // room to write, or an error to learn of
)

const directions = 2

// Pollable is a connection as this package sees it.
type Pollable interface {
	// Poll moves the connection on and tells what its user could do now. It never
	// blocks, and is called by several goroutines at once.
	Poll() Ready
}

// Source raises events for one connection, as a completion queue does.
type Source interface {
	// Arm asks for one event at the next change, handles what changed before, and tells what the connection's user
	// could do then.
	Arm() (Ready, error)
	// Wait blocks until the armed event is raised or ctx ends.
	Wait(ctx context.Context) error
}

// Stats counts what waiting took since the Set was made.
type Stats struct {
	Sleeps uint64 // waits that busy polling did not serve
	Wakes  uint64 // sleepers woken by pollers and events
	Scans  uint64 // rounds of the background pollers over their connections
	Pauses uint64 // of them, how many were followed by a pause
}

// Set is a group of connections that share pollers. All methods are safe for
// concurrent use.
type Set struct {
	cfg  Config
	cpus *procs.Contention
	// spins tells whether Wait polls at all before it sleeps.
	spins bool

	// spinners is how many callers may spin at once before the rest sleeps at once
	// (bpev) or yields oftener (bp).
	spinners int32
	spinning atomic.Int32

	// occupies: pollers and one caller fill all processors of the process, and the
	// pollers keep theirs while callers spin (Set.occupy).
	occupies bool
	waits    atomic.Uint64

	crowd crowd // in bpev

	over atomic.Bool // Close was called
	done chan struct{}
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex // held to change the pollers' lists
	pollers []*poller

	sleeps, wakes, scans, pauses atomic.Uint64
}

// New makes a Set and starts its background pollers, if the mode has any. Waits for events are
// under ctx, which outlives the Set. ErrConfig for a configuration out of range.
func New(ctx context.Context, cfg Config) (*Set, error) { return newSet(ctx, cfg, &procs.CPUs) }

func newSet(ctx context.Context, cfg Config, cpus *procs.Contention) (*Set, error) {
	cfg, err := cfg.Normal()
	if err != nil {
		return nil, err
	}
	s := &Set{cfg: cfg, cpus: cpus, done: make(chan struct{})}
	s.spins = cfg.Mode == BP || cfg.Mode == BPEV && cfg.BusyTime > 0
	procs := runtime.GOMAXPROCS(0)
	s.spinners = int32(max(procs/2, 1))
	if cfg.Mode == BPEV {
		s.crowd.most = int32(cfg.MostPolled * cfg.Pollers)
	}
	s.occupies = cfg.Mode == BPEV && procs > 1 && cfg.Pollers >= procs-1
	s.ctx, s.stop = context.WithCancel(ctx)
	if cfg.Mode == BPEV {
		for range cfg.Pollers {
			p := newPoller(s)
			s.pollers = append(s.pollers, p)
			s.wg.Go(p.loop)
		}
	}
	return s, nil
}

// occupy keeps the pollers spinning for a moment, although nobody sleeps. A
// caller that makes others of the process runnable, or yields to them, makes the
// runtime wake a thread for every processor that idles: it comes too late to help
// with work of microseconds, and takes a core from threads that spin, of this
// process or of the peer. No processor idles while the pollers spin, and as they
// yield now and then they find the same work sooner.
func (s *Set) occupy() {
	if !s.occupies {
		return
	}
	s.waits.Add(1)
	for _, p := range s.pollers {
		p.quiet.on.Store(false)
		p.wake()
	}
}

// Stats is a snapshot.
func (s *Set) Stats() Stats {
	return Stats{Sleeps: s.sleeps.Load(), Wakes: s.wakes.Load(), Scans: s.scans.Load(), Pauses: s.pauses.Load()}
}

// Add takes a connection in. src raises its events; nil where it has none, which Event mode
// needs. The poller with the fewest connections scans it.
func (s *Set) Add(p Pollable, src Source) *Handle {
	h := &Handle{set: s, p: p, src: src}
	for i := range h.wake {
		h.wake[i] = make(chan struct{}, 1)
	}
	if len(s.pollers) > 0 {
		s.mu.Lock()
		h.poller = slices.MinFunc(s.pollers,
			func(a, b *poller) int { return len(*a.list.Load()) - len(*b.list.Load()) })
		list := append(slices.Clone(*h.poller.list.Load()), h)
		h.poller.list.Store(&list)
		s.mu.Unlock()
	}
	return h
}

// Close ends all waits with net.ErrClosed and joins the Set's goroutines. Idempotent.
func (s *Set) Close() error {
	if !s.over.Swap(true) {
		close(s.done)
		s.stop()
	}
	s.wg.Wait()
	return nil
}
