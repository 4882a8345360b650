// Package allreduce is the workload of an all-reduce: ranks, each a server process of the engine on one machine, add up
// vectors of float32 with a rendezvous that registers the user's buffers. This process is their parent and no rank.
package allreduce

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/mesh"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/regcache/offload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

const Name = "allreduce"

const (
	defaultWindow = 150 * time.Millisecond // of one arm; arbitrary
	maxSize       = 1 << 30
	maxIterations = 1 << 20
)

const (
	fresh  = "fresh"
	reused = "reused"
)

type Workload struct {
	ranks               int
	buffers, algorithms []string
	eager, segment      string
	shared              arms.Flags
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    results,
		Summary:    "all-reduce over ranks, with reused or fresh buffers",
		Examples:   "rdmaperf run --transport iwarp --workload allreduce --ranks 4 -s 1K,64K,1M,16M --buffers fresh,reused",
		Group:      "Workload allreduce",
		OwnThreads: true,
		Over:       over,
		Takes:      []string{"arms", "offload", "deferred"},
		Sizes:      []int{1 << 10, 64 << 10, 1 << 20, 16 << 20},
	}
}

func over(s transports.Stack, pt engine.Point) error {
	if s.Caps().InProcess {
		return &reports.ExitError{Code: reports.ExitNotRun, Hint: "--transport iwarp",
			Err: errors.New("it is in-process only, and each rank is a process")}
	}
	return pairs.NoDevice(s, pt)
}

func (f *Workload) Flags(set *pflag.FlagSet) {
	set.IntVar(&f.ranks, "ranks", 2, fmt.Sprintf("allreduce: processes, 2 to %d", mesh.MaxRanks))
	set.StringSliceVar(&f.buffers, "buffers", []string{fresh, reused},
		"allreduce: comma list of fresh (mapped and unmapped in each iteration), reused")
	set.StringSliceVar(&f.algorithms, "algorithm", steps.Algorithms(),
		"allreduce: comma list of ring, halving (recursive halving and doubling), doubling (recursive doubling)")
	set.StringVar(&f.eager, "eager", "8K",
		"allreduce: messages up to this size are sent, to be copied or added by the receiver, longer ones are "+
			"written into registered memory")
	set.StringVar(&f.segment, "segment", "1M",
		"allreduce: size of the pieces in which a long message is written, and added on arrival; larger where a "+
			"message would have over 32 of them (with --eager 64K and above: over 8)")
	f.shared.Register(set)
}

func (f *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	if s := c.AnyOf("op", "qp", "qp-sweep", "threads", "tx-depth"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload allreduce has one connection for each pair of its --ranks")
	}
	o := options{Ranks: f.ranks, Verify: c.Plan.Verify, Window: defaultWindow}
	for _, l := range []struct {
		flag       string
		list, good []string
		to         *[]string
	}{{"buffers", f.buffers, []string{fresh, reused}, &o.Buffers}, {"algorithm", f.algorithms, steps.Algorithms(),
		&o.Algorithms}} {
		for _, w := range values.Unique(l.list) {
			if !slices.Contains(l.good, w) {
				return nil, values.Wrong(l.flag, "%q: want one of %s", w, strings.Join(l.good, ", "))
			}
			*l.to = append(*l.to, w)
		}
	}
	if f.ranks < 2 || f.ranks > mesh.MaxRanks {
		return nil, values.Wrong("ranks", "%d: want 2 to %d", f.ranks, mesh.MaxRanks)
	}
	var err error
	if o.Eager, err = values.Bytes(f.eager); err != nil {
		return nil, values.Wrong("eager", "%w", err)
	}
	if o.Segment, err = values.Bytes(f.segment); err != nil {
		return nil, values.Wrong("segment", "%w", err)
	}
	list, err := f.shared.Read(c.Changed, "none")
	if err != nil {
		return nil, err
	}
	// Peers write into registered buffers at once here; the workload register has the arm.
	o.Arms = slices.DeleteFunc(slices.Clone(list.Arms), func(a string) bool { return a == arms.ODP })
	if len(o.Arms) == 0 {
		return nil, values.Wrong("arms", "odp is a variant of the workload register")
	}
	o.ODP, o.Offloads, o.Deferred = list.ODP, list.Offloads, list.Deferred
	switch {
	case c.Changed("iters"):
		o.Iterations = int(min(c.Plan.Iterations, maxIterations+1))
	case c.Changed("duration"):
		o.Window = c.Plan.Duration
	}
	// More ranks than CPUs that poll would wait for each other to be preempted.
	o.Wait = f.ranks > runtime.NumCPU()
	if c.Changed("polling") {
		if c.Plan.Polling == engine.PollingAdaptive {
			return nil, values.Wrong("polling", "adaptive: the ranks of the workload allreduce have busy and event")
		}
		o.Wait = c.Plan.Polling == engine.PollingEvent
	}
	var points []engine.Point
	for _, size := range c.SizesOf("", f.Meta().Sizes) {
		if err := o.check(size); err != nil {
			return nil, values.Wrong("size", "%d: %w", size, err)
		}
		points = append(points, engine.Point{Workload: Name, Time: o.time(), Size: size, Words: o.words(size),
			Options: engine.PackOptions(o)})
	}
	return points, nil
}

type options struct {
	Ranks      int           `json:"ranks"`
	Algorithms []string      `json:"algorithms"`
	Arms       []string      `json:"arms"`
	ODP        bool          `json:"odp"` // was asked for
	Buffers    []string      `json:"buffers"`
	Offloads   []string      `json:"offloads"`
	Deferred   int           `json:"deferred_bytes"`
	Eager      int           `json:"eager_bytes"`
	Segment    int           `json:"segment_bytes"`
	Wait       bool          `json:"wait"`
	Verify     bool          `json:"verify"`
	Iterations int           `json:"iterations"` // 0: as many as the window holds
	Window     time.Duration `json:"window_ns"`
}

func (o *options) count() int {
	return len(o.Algorithms) * len(o.Arms) * len(o.Buffers) * len(o.Offloads)
}

func (o *options) check(size int) error {
	for _, d := range o.Offloads {
		if _, err := offload.Parse(d); err != nil {
			return err
		}
	}
	switch {
	case size < 4 || size%4 != 0 || size > maxSize:
		return errors.New("a vector of float32 has 4 bytes to 1 GiB, a multiple of 4")
	case o.Ranks < 2 || o.Ranks > mesh.MaxRanks:
		return fmt.Errorf("%d ranks: want 2 to %d", o.Ranks, mesh.MaxRanks)
	case o.Eager < 0 || o.Eager > 1<<20:
		return fmt.Errorf("an eager size of %d bytes: want at most 1 MiB", o.Eager)
	case o.Segment < 4 || o.Segment > maxSize:
		return fmt.Errorf("segments of %d bytes: want 4 bytes to 1 GiB", o.Segment)
	case o.Iterations < 0 || o.Iterations > maxIterations:
		return fmt.Errorf("%d iterations: want 1 to %d", o.Iterations, maxIterations)
	case o.Window <= 0 || o.Window > time.Hour:
		return fmt.Errorf("a window of %v: want more than 0 and at most 1h", o.Window)
	case o.count() == 0 || o.count() > 1024 || o.Deferred < 0:
		return fmt.Errorf("%d measurements: want 1 to 1024", o.count())
	}
	return nil
}

func (o *options) words(size int) string {
	return fmt.Sprintf("%s of %d B on %d ranks", Name, size, o.Ranks)
}

// mostHeld keeps sums of what an unknown peer asks for from wrapping; no budget is as large.
const mostHeld = 1 << 50

// needs is what one rank holds. checked keeps it there.
func (o *options) needs(size int) engine.Memory {
	slots, qps, places := mesh.Cost(o.Ranks, o.Eager)
	iterations := max(o.Iterations, mostMeasured)
	return engine.Memory{Windows: 3*int64(size) + int64(min(max(o.Deferred, 2*size), mostHeld)) +
		3*8*int64(iterations) + slots,
		Queues: engine.QueueBytes(qps, places), Threads: 1}
}

// time is how long a point takes: every arm is also filled, compared and warmed up.
func (o *options) time() time.Duration {
	if o.Iterations > 0 {
		return 0
	}
	return time.Duration(o.count())*(2*o.Window) + time.Second
}
