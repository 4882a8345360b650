// Package allreduce is the workload of an all-reduce: ranks add up vectors of float32 with a rendezvous that registers
// the user's buffers. Each rank is a server process of the engine on one machine; this process is no rank.
package allreduce

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
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
	"github.com/rdmaperf/rdmaperf/reports/view"
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
		3*8*int64(iterations) + slots, Queues: engine.QueueBytes(qps, places), Threads: 1}
}

// time is how long a point takes: every arm is also filled, compared and warmed up.
func (o *options) time() time.Duration {
	if o.Iterations > 0 {
		return 0
	}
	return time.Duration(o.count())*(2*o.Window) + time.Second
}

//go:embed schema.json
var schema string

// Allreduce is what an all-reduce took. Times are nanoseconds, of the slowest rank in each iteration.
type Allreduce struct {
	Ranks     int    `json:"ranks"`
	Algorithm string `json:"algorithm"` // ring, halving, doubling
	Arm       string `json:"arm"`       // none, cache, prereg, prereg+lazy
	Buffers   string `json:"buffers"`   // fresh: mapped and unmapped in each iteration; reused
	Offload   string `json:"offload"`
	Eager     int    `json:"eager_bytes"`   // up to which a message is copied, and registers nothing
	Segment   int    `json:"segment_bytes"` // of a long message
	Waiting   string `json:"waiting"`       // poll or sleep

	Total  *reports.Latency `json:"total"`         // all of the following
	Reduce *reports.Latency `json:"reduce"`        // the all-reduce itself
	Map    *reports.Latency `json:"map,omitempty"` // both buffers, with a touch of each page
	Unmap  *reports.Latency `json:"unmap,omitempty"`

	// BusBytesPerSecond is the size times 2(n-1)/n for n ranks over the mean time (NCCL's tests, PERFORMANCE.md).
	BusBytesPerSecond float64 `json:"bus_bytes_per_second"`

	CPUNs        int64            `json:"cpu_ns"`          // of all ranks in all iterations, with filling and comparing
	Cache        map[string]int64 `json:"cache,omitempty"` // counters of rank 0
	MostDeferred uint64           `json:"most_deferred_bytes,omitempty"`
	Absent       string           `json:"absent_arms,omitempty"`
}

// Of is the detail of an all-reduce, nil for any other.
func Of(r *reports.Result) *Allreduce { return reports.DetailOf[Allreduce](r) }

func (*Allreduce) Member(string) string { return "allreduce" }

var results = &reports.Workload{
	Name: Name, Title: "All-reduce",
	Intro: "Times are those of the slowest rank of each iteration, with mapping and unmapping of fresh buffers; " +
		"reused ones stay. Bus bandwidth is the size times 2(n-1)/n over the mean. Below the eager size nothing is " +
		"registered.",
	Dims: []reports.DimDef{
		{Name: "ranks", Help: "processes that take part"},
		{Name: "arm", Help: "how memory is registered: none, cache, prereg, prereg+lazy"},
		{Name: "buffers", Help: "fresh: mapped and unmapped in each iteration; reused"},
		{Name: "offload", Help: "detour of each call of the driver"},
		{Name: "eager_bytes", Unit: "B", Help: "up to which a message is copied, and registers nothing"},
		{Name: "segment_bytes", Unit: "B", Help: "least part of a long message"},
		{Name: "waiting", Help: "for completions: poll or sleep"},
	},
	Latencies: []reports.DimDef{
		{Name: "total", Help: "mapping, all-reduce and unmapping, of the slowest rank"},
		{Name: "reduce", Help: "the all-reduce itself"},
		{Name: "map", Help: "mapping both buffers, with a touch of each page"},
		{Name: "unmap", Help: "unmapping both buffers"},
	},
	Figures: []reports.FigureDef{
		{Name: "bus.bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "size times 2(n-1)/n for n ranks over the mean time, as NCCL's tests count it"},
		{Name: "cpu.ranks", Quantity: reports.QuantityTime,
			Help: "processor time of all ranks, with filling and comparing"},
		{Name: "deferred.most", Quantity: reports.QuantityMemory, Help: "most that was unmapped and still registered"},
	},
	Shown:    []string{"total.p50", "total.mean", "total.p99", "reduce.p50", "map.p50", "unmap.p50", "bus.bw"},
	Schema:   schema,
	Detail:   func() reports.Detail { return new(Allreduce) },
	Describe: describe,
}

var words = map[string]string{"ring": "ring", "halving": "recursive halving and doubling",
	"doubling": "recursive doubling"}

func describe(w *reports.Workload, r *reports.Result) {
	d := Of(r)
	waits := d.Waiting
	if waits == "sleep" {
		waits = "sleep for completions"
	}
	r.Note = fmt.Sprintf("%s, %d ranks in processes of their own that %s, float32 sums, messages up to %s are sent, "+
		"long ones written in segments of %s or more", words[r.Op], d.Ranks, waits, reports.SizeLabel(int64(d.Eager)),
		reports.SizeLabel(int64(d.Segment)))
	if d.Absent != "" {
		r.Note += "; " + view.Printable(d.Absent)
	}
	r.Dims = reports.DimsOf(w.Dims, d.Ranks, d.Arm, d.Buffers, d.Offload, d.Eager, d.Segment, d.Waiting)
	r.Latencies = reports.LatenciesOf(w.Latencies, d.Total, d.Reduce, d.Map, d.Unmap)
	deferred := math.NaN()
	if d.MostDeferred > 0 {
		deferred = float64(d.MostDeferred)
	}
	r.Figures = reports.FiguresOf(w.Figures, d.BusBytesPerSecond, float64(d.CPUNs), deferred)
}
