// Package register is the workload of registrations, on this machine alone. It measures what it costs to register
// memory, use it and give it up: by the device, through a cache, or from memory registered when mapped. Without
// --transport it pins pages through io_uring.
//
// A use moves at most [UseBytes]. Look-ups are shorter than a reading of the clock: a sample is the mean of a batch,
// and percentiles are those of means. Stages of fresh memory are timed one by one.
package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/regcache/offload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func (*Workload) Client(ctx context.Context, r *engine.Run) (err error) {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	t, end, err := target(r, o.Pin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	p, err := o.point(r.Point.Size)
	if err != nil {
		return err
	}
	if most, why := Most(t, p); p.Bytes() > most {
		if !o.Asked {
			return nil // of the sizes that nobody named, those that fit
		}
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: r.Point.String(),
			Err: aboveLimit(p.Bytes(), most, why), Hint: "a smaller -s"}
	}
	if o.Arm == arms.ODP && !t.ODP {
		if !o.Alone {
			return nil // the rows of other arms say so
		}
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: r.Point.String(),
			Err:  fmt.Errorf("%s declares no on-demand paging: %w", t.Name, rdma.ErrNotSupported),
			Hint: "an adapter with it (ibv_devinfo -v: general_odp_caps), or rxe of Linux 6.14 or newer"}
	}
	absent := map[string]string{}
	if o.Source != "" {
		granted := Sources(t)
		if why := granted[o.Source]; why != nil {
			if !o.Named {
				return nil // the row of auto says why
			}
			return &reports.ExitError{Code: reports.ExitNotRun, Operation: "notice by " + o.Source +
				" that memory goes away", Err: why, Hint: "--source auto, the strongest that the system grants"}
		}
		for s, why := range granted {
			if why != nil && o.Source == regcache.SourceAuto.String() {
				absent["source "+s] = why.Error()
			}
		}
	}
	d, err := Run(ctx, t, p, o.Window, r.Plan.Seed)
	if errors.Is(err, ErrOther) {
		return &reports.ExitError{Code: reports.ExitCorruption, Operation: r.Point.String(), Err: err}
	}
	if err != nil {
		return err
	}
	if err := CheckStale(d); err != nil {
		return &reports.ExitError{Code: reports.ExitCorruption, Operation: r.Point.String(), Err: err}
	}
	if o.ODP && !t.ODP {
		absent[arms.ODP] = t.Name + " declares no on-demand paging"
	}
	if len(absent) > 0 {
		d.Absent = absent
	}
	res := r.Result()
	res.Stack, res.Polling, res.Threads = t.Name, "", 0
	res.Verified = true // every use was compared, and each has a number
	res.Verification = drive.AllCompared(t.uses, t.bytes)
	if o.Pin {
		res.Transport, res.Label = t.Name, reports.LabelSoft
	}
	res.DurationNs, res.Operations, res.Detail = d.Took.Nanoseconds(), d.Operations, d
	r.Add(res)
	return ctx.Err()
}

func target(r *engine.Run, pinned bool) (*Target, func() error, error) {
	if pinned {
		t, err := Pin()
		if err != nil {
			return nil, nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "pin memory through io_uring",
				Err: err, Hint: cmp.Or(rdma.Advice(err), "--transport iwarp, which needs no io_uring")}
		}
		return t, t.Close, nil
	}
	dev, err := r.Open.Device(r.Plan.Transport)
	if err != nil {
		return nil, nil, err
	}
	t, err := Device(dev)
	if err != nil {
		code := reports.ExitFailed
		if errors.Is(err, rdma.ErrNotSupported) {
			code = reports.ExitNotRun
		}
		return nil, nil, &reports.ExitError{Code: code, Operation: "connect " + dev.Name() + " to itself",
			Err: errors.Join(err, dev.Close()), Hint: rdma.Advice(err)}
	}
	return t, func() error { return errors.Join(t.Close(), dev.Close()) }, nil
}

// Point is one figure to take.
type Point struct {
	Arm      string
	Size     int  // bytes of a buffer; of a random one, the most
	Huge     bool // huge pages: from the reserved pool where that has enough, else transparent ones
	Pattern  string
	Offload  offload.Config
	Threads  int             // that register at once
	Together bool            // by threads with buffers of their own, also where it is one
	Buffers  int             // of PatternSet: the working set
	Regions  int             // the most that the cache keeps; 0: its default
	Deferred int             // bytes that the lazy arm keeps unmapped; at least two buffers
	Source   regcache.Source // of PatternReplaced
}

// access are the rights of all registrations: a device may place data there. Remote rights cost the same.
const access = rdma.LocalWrite

// Names of patterns.
const (
	PatternRepeated    = "repeated"    // the same buffer again
	PatternRandom      = "random"      // pages and lengths at random inside one mapping
	PatternOverlapping = "overlapping" // each buffer begins in the middle of the one before
	PatternNew         = "new"         // every buffer is mapped before and unmapped behind
	PatternSet         = "set"         // one of a working set, at random
	PatternThreads     = "threads"     // repeated, by several at once
	PatternReplaced    = "replaced"    // memory of others, replaced by system calls that no notification reports
)

func Patterns() []string {
	return []string{PatternRepeated, PatternRandom, PatternOverlapping, PatternNew, PatternSet, PatternThreads,
		PatternReplaced}
}

// String reads "cache 64 KiB repeated".
func (p Point) String() string {
	s := fmt.Sprintf("%s %s %s", p.Arm, reports.SizeLabel(int64(p.Size)), p.Pattern)
	if p.Huge {
		s += ", huge pages"
	}
	if p.Offload != (offload.Config{}) {
		s += ", offload " + p.Offload.String()
	}
	if p.Together {
		s += fmt.Sprintf(", %d threads", p.Threads)
	}
	if p.Pattern == PatternReplaced {
		s += ", source " + p.Source.String()
	}
	if p.Buffers > 0 {
		s += fmt.Sprintf(", %d buffers", p.Buffers)
	}
	return s
}

// Bytes is the memory that a point takes, of the lazy arm also what is kept.
func (p Point) Bytes() int {
	switch {
	case p.Together:
		return p.Size * max(p.Threads, 1)
	case p.Pattern == PatternSet:
		return p.Size * p.Buffers
	case p.Pattern == PatternRandom || p.Pattern == PatternOverlapping:
		return p.Size * spread
	}
	return p.Size
}

type run struct {
	Point
	ctx    context.Context
	t      *Target
	arm    arms.Arm
	window time.Duration
	until  time.Time // the end of the window, once it has begun
	seed   uint64
	out    *Register

	number uint64 // of uses
}

var loops = map[string]func(r *run) error{
	PatternRepeated:    (*run).repeated,
	PatternRandom:      (*run).scattered,
	PatternOverlapping: (*run).scattered,
	PatternNew:         (*run).fresh,
	PatternSet:         (*run).workingSet,
	PatternReplaced:    (*run).replaced,
}

// Run takes a point, which lasts about as long as window. What the target cannot do is rdma.ErrNotSupported.
func Run(ctx context.Context, t *Target, p Point, window time.Duration, seed uint64) (out *Register, err error) {
	do := loops[p.Pattern]
	if do == nil {
		return nil, fmt.Errorf("pattern %q: %w", p.Pattern, rdma.ErrInvalid)
	}
	s := arms.Settings{Reg: t.Reg, Access: access, ODP: t.ODP, Piece: p.Size, Pages: p.pages(),
		Deferred: max(p.Deferred, 2*p.Size), Config: regcache.Config{MaxRegions: p.Regions}}
	if p.Offload != (offload.Config{}) {
		o := offload.Wrap(t.Reg, p.Offload)
		defer func() { err = errors.Join(err, o.Close()) }()
		s.Reg = o
	}
	a, err := arms.New(p.Arm, s)
	if err != nil {
		return nil, err
	}
	r := &run{Point: p, ctx: ctx, t: t, arm: a, window: window, seed: seed,
		out: &Register{Arm: p.Arm, Pages: s.Pages.String(), Pattern: p.Pattern, Offload: p.Offload.String(),
			Threads: max(p.Threads, 1), Batch: a.Batch(p.Size), WorkingSet: p.Buffers, Capacity: p.Regions}}
	if p.Together {
		do = (*run).together
	}
	err = do(r)
	if c, pool := a.Counters(); c != nil && p.Pattern != PatternReplaced { // which has a cache of its own
		r.out.Cache = c.Map()
		if c.Gets > 0 {
			r.out.HitRatio = float64(c.HitsFast+c.HitsSlow) / float64(c.Gets)
		}
		if pool != nil {
			r.out.Pool = &Pool{Maps: pool.Maps, Revived: pool.Revived, Flushes: pool.Flushes,
				MostDeferred: pool.Most, DeferredBound: uint64(s.Deferred)}
			if p.Arm != arms.Lazy {
				r.out.Pool.DeferredBound = 0
			}
		}
	}
	return r.out, errors.Join(err, a.Close())
}

func (p Point) pages() rdma.Pages {
	if !p.Huge {
		return rdma.PagesBase
	}
	// Two at a time, as a deferred mapping may be next to a new one.
	if a, err := rdma.NewArena(2*p.Size, rdma.ArenaConfig{Pages: rdma.PagesHuge}); err == nil && a.Close() == nil {
		return rdma.PagesHuge
	}
	return rdma.PagesTHP
}

func (r *run) more() bool { return r.ctx.Err() == nil && time.Now().Before(r.until) }

// begin begins the window: what surrounds it, such as finding the pages of a buffer, may take longer than it.
func (r *run) begin() { r.until = time.Now().Add(r.window) }

func (r *run) use(h arms.Hold, b rdma.Buffer) error {
	r.number++
	return r.t.compared(h.LKey(), b, r.number)
}

// touch writes to every page, so that no registration has to find one.
func touch(b rdma.Buffer) {
	p := b.Bytes()
	for i := 0; i < len(p); i += 4096 {
		p[i] = 1
	}
}

func latency(r *reports.Recorder) *reports.Latency {
	if r.Count() == 0 {
		return nil
	}
	return new(r.Snapshot())
}
