// Package locks is the workload of one lock of LITE that clients of two nodes in this process contend for. With more of
// them than processors a turn includes a thread's wake-up.
package locks

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

const Name = "locks"

const (
	op           = "contenders"
	maxContender = 256
	mostAlone    = 1000 // fetch_adds that are next to
	turns        = 2000 // of all contenders together. Arbitrary: some tenths of a second
)

var set = curves.Results(reports.Workload{
	Name: Name, Title: "Locks",
	Intro: "Clients of two nodes take one ticket lock, add to a counter by a read and a write, and pass the lock on. " +
		"Without contention a lock is one round trip of an atomic and a read that travel together; a fetch_add alone " +
		"is shown with it. Lock is until the turn has come; the counter proves that no two had it at once; fewest is " +
		"the share of the turns of who had the fewest, of an equal share.",
	Dims: []reports.DimDef{{Name: "contenders", Help: "clients that take the lock"}},
	Figures: []reports.FigureDef{
		{Name: "lock_p50_ns", Quantity: reports.QuantityTime, Help: "Lock, median"},
		{Name: "lock_p99_ns", Quantity: reports.QuantityTime, Help: "Lock, p99"},
		{Name: "rate", Quantity: reports.QuantityRate, Better: reports.More, Help: "Turns a second"},
		{Name: "fetch_add_p50_ns", Quantity: reports.QuantityTime, Help: "fetch_add p50"},
		{Name: "fewest_share", Quantity: reports.QuantityRatio, Better: reports.More, Help: "fewest"},
	},
}, "both nodes in one process", map[string]reports.DimDef{op: {Name: "contenders"}})

type options struct{ Contenders int }

func (o *options) check(int) error {
	if o.Contenders < 1 || o.Contenders > maxContender {
		return fmt.Errorf("%d contenders: want 1 to %d", o.Contenders, maxContender)
	}
	return nil
}

type Workload struct {
	engine.ClientOnly
	contenders string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    set,
		Summary:    "contention for one LITE lock",
		Examples:   "rdmaperf run --transport lite+iwarp --workload locks --contenders 1,2,4,8",
		Group:      "Workload locks",
		OwnThreads: true,
		Over:       pairs.NoThreads,
	}
}

func (f *Workload) Flags(s *pflag.FlagSet) {
	values.ListVar(s, &f.contenders, "contenders", "1,2,4,8,16", "locks: how many, a comma list or FROM:TO:STEP")
}

func (f *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if s := c.AnyOf("op", "size", "all", "qp", "qp-sweep", "threads", "polling", "duration"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload locks has as many threads as --contenders")
	}
	list, err := values.Counts("contenders", f.contenders)
	if err != nil {
		return nil, err
	}
	if slices.Max(list) > maxContender {
		return nil, values.Wrong("contenders", "%d: want at most %d", slices.Max(list), maxContender)
	}
	for _, n := range list {
		points = append(points, engine.Point{Workload: Name, Alone: true, Op: op, Size: 8,
			Words: fmt.Sprintf("locks: %d contenders", n), Options: engine.PackOptions(options{n})})
	}
	return points, nil
}

func (*Workload) Client(ctx context.Context, r *engine.Run) (err error) {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	p, err := pairs.OpenNodes(ctx, r, [2]int{4 << 20, 4 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	wait := lite.WaitAdaptive
	if o.Contenders == 1 {
		wait = lite.WaitPoll
	}
	a, err := openArena(p, wait)
	if err != nil {
		return err
	}
	res, err := measure(ctx, r, a, o.Contenders, cmp.Or(int(r.Plan.Iterations), turns))
	if err != nil {
		return err
	}
	r.Add(res)
	return nil
}

func measure(ctx context.Context, r *engine.Run, a arena, contenders, n int) (res reports.Result, err error) {
	alone, err := timed(ctx, min(n, mostAlone), a.add)
	if err != nil {
		return res, err
	}
	home, err := a.contender(1)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, home.close()) }()
	if err := home.write(0); err != nil {
		return res, err
	}
	all, took, err := contend(ctx, a, contenders, n)
	if err != nil {
		return res, err
	}
	added, err := home.read()
	if err != nil {
		return res, err
	}
	var samples []int64
	fewest := n
	for _, one := range all {
		samples, fewest = append(samples, one...), min(fewest, len(one))
	}
	if added != uint64(len(samples)) {
		return res, engine.Corrupted(fmt.Errorf("%v: %d turns left a counter of %d: two had the lock at once", r.Point,
			len(samples), added))
	}
	res = r.Result()
	res.Polling, res.Verified = "", true
	res.Verification = drive.AllCompared(int64(len(samples)), int64(8*len(samples))) // the counter is each turn's number
	res.DurationNs, res.Operations = int64(took), int64(len(samples))
	turns := float64(len(samples))
	res.Detail = &curves.Point{X: float64(contenders), Values: map[string]float64{
		"lock_p50_ns": workload.Rank(samples, 50), "lock_p99_ns": workload.Rank(samples, 99), "rate": turns / took.Seconds(),
		"fetch_add_p50_ns": workload.Rank(alone, 50), "fewest_share": float64(fewest) * float64(contenders) / turns}}
	return res, nil
}

func contend(ctx context.Context, a arena, contenders, n int) (waits [][]int64, took time.Duration, err error) {
	waits = make([][]int64, contenders)
	errs := make([]error, contenders)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range contenders {
		wg.Go(func() { waits[i], errs[i] = take(ctx, a, i, (n+contenders-1-i)/contenders) })
	}
	wg.Wait()
	return waits, time.Since(start), errors.Join(errs...)
}

func timed(ctx context.Context, n int, f func() error) (times []int64, err error) {
	for range n {
		if err := ctx.Err(); err != nil {
			return times, err
		}
		start := time.Now()
		if err := f(); err != nil {
			return times, err
		}
		times = append(times, int64(time.Since(start)))
	}
	return times, nil
}

func take(ctx context.Context, a arena, who, n int) (waits []int64, err error) {
	h, err := a.contender(who)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	for range n {
		one, err := timed(ctx, 1, h.lock)
		if err != nil {
			return waits, err
		}
		waits = append(waits, one...)
		value, err := h.read()
		if err != nil {
			return waits, err
		}
		if err := h.write(value + 1); err != nil {
			return waits, err
		}
		if err := h.unlock(); err != nil {
			return waits, err
		}
	}
	return waits, nil
}

// arena is a lock and a counter that it guards.
type arena interface {
	add() error // a fetch_add of the far node, which nothing guards
	contender(who int) (contender, error)
}

type contender interface {
	lock() error
	unlock() error
	read() (uint64, error)
	write(value uint64) error
	close() error
}

// nodes are an arena at the first of two nodes.
type nodes struct {
	p    *pairs.Nodes
	wait lite.Waiting
	far  *lite.Client
	at   lite.Handle // of far
}

func openArena(p *pairs.Nodes, wait lite.Waiting) (*nodes, error) {
	a := &nodes{p: p, wait: wait}
	home, err := p.Nodes[0].Client(lite.ClientConfig{Wait: lite.WaitPoll})
	if err != nil {
		return nil, err
	}
	if _, err := home.Malloc(lite.RegionConfig{Name: "counter", Size: 8,
		Open: lite.PermRead | lite.PermWrite | lite.PermAtomic}); err != nil {
		return nil, err
	}
	if _, err := home.NewLock("lock", 0); err != nil {
		return nil, err
	}
	if a.far, err = p.Nodes[1].Client(lite.ClientConfig{Wait: lite.WaitPoll}); err != nil {
		return nil, err
	}
	a.at, err = a.far.Map("counter", lite.PermAtomic, "")
	return a, err
}

func (a *nodes) add() error { _, err := a.far.FetchAdd(a.at, 0, 1); return err }

// contender: the first is at the node without the lock, so that alone it goes over the wire.
func (a *nodes) contender(who int) (contender, error) {
	c, err := a.p.Nodes[1-who%2].Client(lite.ClientConfig{Wait: a.wait})
	if err != nil {
		return nil, err
	}
	h := &holder{c: c}
	if h.l, err = c.OpenLock("lock"); err == nil {
		h.at, err = c.Map("counter", lite.PermRead|lite.PermWrite, "")
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

type holder struct {
	c  *lite.Client
	l  *lite.Lock
	at lite.Handle
	b  [8]byte
}

func (h *holder) lock() error   { return h.l.Lock() }
func (h *holder) unlock() error { return h.l.Unlock() }

func (h *holder) read() (uint64, error) {
	err := h.c.Read(h.at, 0, h.b[:])
	return binary.NativeEndian.Uint64(h.b[:]), err
}

func (h *holder) write(value uint64) error {
	binary.NativeEndian.PutUint64(h.b[:], value)
	return h.c.Write(h.at, 0, h.b[:])
}

func (h *holder) close() (err error) {
	if h.l != nil {
		err = h.l.Close()
	}
	return errors.Join(err, h.c.Close())
}
