package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/disturbance"
	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Side is what one side of a point does with its sessions, with whatever state it needs from phase to phase.
type Side interface {
	// Prepare makes the windows of a phase, and before the first one posts receives.
	Prepare(gen int) error
	// Loop chooses what a worker does in the next phase, at most once for each.
	Loop(w *Worker) func() error
	// Counts is what this side sent in the phase, by QP; nil for a target.
	Counts() []LaneCount
	// Verify holds the windows of the phase against what this side sent and what the peer says it sent.
	Verify(gen int, peer []LaneCount) error
	// Close frees what it made. The sessions are not its own.
	Close() error
}

// Group is one side of one point: its sessions, shared out among workers.
type Group struct {
	Sh       *Shape
	Role     string // SideClient or SideServer
	Caps     transports.Caps
	Lanes    []*Lane
	Workers  []*Worker
	Side     Side
	interval time.Duration // of a series over the next phase, 0 for none
	Raw      *RawStore     // for the samples of the next phase, nil for none
	live     *Live         // follows the next phase, nil for nobody
	release  func()        // of the processors of a client's workers
}

// NewGroup takes over the sessions, unless it fails. cpu pins the worker when it is not negative.
func NewGroup(sh *Shape, role string, sessions []transports.Session, cpu int, caps transports.Caps,
	side NewSide) (*Group, error) {
	c := &Group{Sh: sh, Role: role, Caps: caps}
	for i := range sh.Threads {
		if i > 0 {
			cpu = -1 // one CPU was named; the kernel places the others
		}
		w := NewWorker(sh, role, cpu)
		w.Index = i
		w.Event = w.Event || role == SideServer && sh.ServerSleeps()
		w.demotes, w.oneProcess = caps.Unaided && !w.Event, caps.Label == rdma.LabelMem
		w.Sleeps = role == SideClient && sh.ClientNaps || role == SideServer && sh.ServerNaps
		w.Yielder.Sleeps = w.Sleeps && role == SideServer
		c.Workers = append(c.Workers, w)
	}
	for i, s := range sessions {
		if len(s.Local()) < sh.Window() || s.RemoteLen() < uint64(sh.Window()) {
			return nil, Failed("set up session", fmt.Errorf("qp %d: windows of %d and %d bytes, want %d", i,
				len(s.Local()), s.RemoteLen(), sh.Window()))
		}
		l := NewLane(s, sh, i)
		w := c.Workers[i%len(c.Workers)]
		w.Lanes = append(w.Lanes, l)
		c.Lanes = append(c.Lanes, l)
	}
	var err error
	if c.Side, err = side(c); err != nil {
		return nil, err
	}
	c.release = func() {}
	if role == SideClient { // a server serves several clients, and reserves for the time of a phase
		c.release = ReserveProcs(len(c.Workers))
	}
	return c, nil
}

// Close ends the sessions and gives the processors back.
func (c *Group) Close() error {
	sessions := make([]transports.Session, len(c.Lanes))
	for i, l := range c.Lanes {
		sessions[i] = l.S
	}
	err := errors.Join(closeAll(sessions), c.Side.Close())
	c.release()
	return err
}

// Outcome is what one side's phase gave.
type Outcome struct {
	Rec                      *reports.Recorder // client, latency
	Service                  *reports.Recorder
	Late, Unsent, Unanswered int64
	Series                   *Series
	Peak                     *Peak
	Ops                      int64
	Bytes                    int64 // of calls: payload in both directions
	Begin                    int64 // of the window
	Window                   time.Duration
	Shares                   []Share // of each worker
	Detail                   any     // what only the workload knows, of its own type
	Usage                    Usage
	Noise                    reports.Noise
	Err                      error // the first failure; a corruption wins
}

// Share is what one worker did in its own window.
type Share struct {
	Ops    int64
	Window time.Duration
}

// Phase is a phase in progress.
type Phase struct {
	Stop   atomic.Uint32
	Cancel context.CancelFunc
	Done   chan struct{} // closed when all workers are joined
	Out    Outcome       // valid then
}

// Start lets the workers go. They begin only when all are ready, so that starting threads is outside the window.
func (c *Group) Start(lim Limits, record bool) *Phase {
	r := &Phase{Done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.Cancel = cancel
	loops := make([]func() error, len(c.Workers))
	gate := make(chan struct{})
	errs := make([]error, len(c.Workers))
	var parts []*Series
	var ready, ended sync.WaitGroup
	for _, w := range c.Workers {
		w.Begin, w.End, w.Ops, w.bad, w.Spins, w.Finishing = 0, 0, 0, nil, 0, false
		w.Stop, w.Ctx, w.Lim = &r.Stop, ctx, lim
		if record {
			w.Rec = Fresh(w.Rec)
		}
		w.Late, w.Unsent, w.Unanswered, w.series, w.Raw = 0, 0, 0, nil, nil
		if c.interval > 0 && lim.Dur > 0 {
			w.series = NewSeries(c.interval, lim.Dur)
		} else if c.live != nil && lim.Dur > 0 {
			w.series = c.live.Ring()
		}
		parts = append(parts, w.series)
		w.Peak = nil
		if w.Pace != nil {
			w.Service = Fresh(w.Service)
		}
	}
	if record && c.Raw != nil {
		for i, b := range c.Raw.Share(len(c.Workers)) {
			c.Workers[i].Raw = b
		}
	}
	if c.live != nil && lim.Dur > 0 {
		c.live.Begin(parts)
	}
	for i, w := range c.Workers {
		loops[i] = c.Side.Loop(w)
	}
	for i, w := range c.Workers {
		w.Watched = w.series != nil || w.Raw != nil
		ready.Add(1)
		ended.Add(1)
		onOwnThread(func() {
			defer ended.Done()
			w.pinned = w.cpu >= 0 && pinThread(w.cpu)
			if w.demotes {
				if !w.oneProcess {
					ownFiles()
				}
				defer demoteOthers(!w.oneProcess)()
			}
			errs[i] = c.Sh.beNice()
			before := ownNoise()
			ready.Done()
			<-gate
			if errs[i] == nil {
				errs[i] = whole(loops[i])
			}
			w.noise = disturbance.Between(before, ownNoise())
			w.close()
			switch {
			case errors.Is(errs[i], ErrStalled):
				r.Halt(StopNow) // what the others have posted stalls too
			case errs[i] != nil && errs[i] != ErrStop:
				r.Halt(StopSoon) // the others need not go on
			}
		})
	}
	ready.Wait()
	sockets := disturbance.Sockets()
	before := ReadUsage()
	close(gate)
	go func() {
		ended.Wait()
		cancel()
		r.Out = c.collect(errs)
		r.Out.Usage = ReadUsage().Minus(before)
		r.Out.Noise = disturbance.WithSockets(threadsNoise(c.Workers),
			disturbance.Between(sockets, disturbance.Sockets()))
		close(r.Done)
	}()
	return r
}

// Fresh is r without samples, or a new one where there is none.
func Fresh(r *reports.Recorder) *reports.Recorder {
	if r == nil {
		return reports.NewRecorder()
	}
	r.Reset()
	return r
}

// Merged is sum with more merged into it. Either may be nil.
func Merged[T any, P interface {
	*T
	Merge(P)
}](sum, more P) P {
	switch {
	case more == nil:
		return sum
	case sum == nil:
		return more
	}
	sum.Merge(more)
	return sum
}

func whole(loop func() error) (err error) {
	defer onepeer.Recover(func(fault error) { err = fault })
	return loop()
}

// Halt ends the phase; the strongest word counts.
func (r *Phase) Halt(how uint32) {
	for {
		old := r.Stop.Load()
		if old >= how || r.Stop.CompareAndSwap(old, how) {
			break
		}
	}
	r.Cancel()
}

// Wait joins the workers.
func (r *Phase) Wait() *Outcome {
	<-r.Done
	return &r.Out
}

func (c *Group) collect(errs []error) Outcome {
	var o Outcome
	var begin, end int64
	for i, w := range c.Workers {
		if i == 0 || w.Begin < begin {
			begin = w.Begin
		}
		end = max(end, w.End)
		o.Ops += w.Ops
		o.Shares = append(o.Shares, Share{w.Ops, time.Duration(max(0, w.End-w.Begin))})
		o.Late += w.Late
		o.Unsent += w.Unsent
		o.Unanswered += w.Unanswered
		o.Rec, o.Service, o.Peak = Merged(o.Rec, w.Rec), Merged(o.Service, w.Service), Merged(o.Peak, w.Peak)
		if w.series != nil && !w.series.Ring {
			o.Series = Merged(o.Series, w.series)
		}
		switch err := errs[i]; {
		case err == ErrStop: // a stop is no failure
		case err != nil && (o.Err == nil || reports.Code(err) == reports.ExitCorruption):
			o.Err = err
		}
	}
	if d, ok := c.Side.(interface{ Detail() any }); ok {
		o.Detail = d.Detail()
	}
	o.Begin = begin
	o.Window = time.Duration(max(0, end-begin))
	return o
}
