package register

import (
	"cmp"
	_ "embed"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Register is what a registration cost, by one way of having memory registered. Times are nanoseconds.
type Register struct {
	Arm     string `json:"arm"`     // none, cache, prereg, prereg+lazy
	Pages   string `json:"pages"`   // base, thp, hugetlb
	Pattern string `json:"pattern"` // which buffers, one after the other
	Offload string `json:"offload"` // the detour of a call of the driver; none
	Threads int    `json:"threads"` // that register at once

	// Batch is how many calls one sample of Register and Deregister is the mean of.
	Batch      int   `json:"batch"`
	Operations int64 `json:"registrations"`

	// Took is the time of these operations, of whole cycles where every buffer is new; duration_ns in documents.
	Took time.Duration `json:"-"`

	Map        *reports.Latency `json:"map,omitempty"`
	Register   *reports.Latency `json:"register,omitempty"`
	Use        *reports.Latency `json:"use,omitempty"`       // the device places up to 4 KiB there
	Again      *reports.Latency `json:"use_again,omitempty"` // a second time, of buffers that are always new
	Deregister *reports.Latency `json:"deregister,omitempty"`
	Unmap      *reports.Latency `json:"unmap,omitempty"`
	Full       *reports.Latency `json:"cycle,omitempty"` // all of them
	EachNs     float64          `json:"each_ns,omitempty"`

	WorkingSet int     `json:"working_set,omitempty"`      // buffers
	Capacity   int     `json:"capacity_regions,omitempty"` // most that the cache keeps
	SetHits    int64   `json:"set_hits,omitempty"`         // in the window
	SetGets    int64   `json:"set_gets,omitempty"`
	HitRatio   float64 `json:"hit_ratio"` // of the whole life of the cache

	// Of memory of others, whose pages are replaced by system calls.
	Source     string `json:"source,omitempty"`        // how the cache is to notice
	SourceSays string `json:"source_in_use,omitempty"` // what the system granted
	Replaced   int64  `json:"replaced,omitempty"`      // times
	Stale      int64  `json:"stale_hits,omitempty"`    // of them, uses that went to the old pages

	Cache map[string]int64 `json:"cache,omitempty"` // its counters
	Pool  *Pool            `json:"pool,omitempty"`

	// Absent are the arms that were asked for and are not possible here, with why.
	Absent map[string]string `json:"absent_arms,omitempty"`
}

// Lacks says why an arm that was asked for is not possible here, or "".
func (r *Register) Lacks(arm string) string { return r.Absent[arm] }

// Pool is what became of memory that was unmapped.
type Pool struct {
	Maps          uint64 `json:"maps"`
	Revived       uint64 `json:"revived"`
	Flushes       uint64 `json:"flushes"`
	MostDeferred  uint64 `json:"most_deferred_bytes"`
	DeferredBound uint64 `json:"deferred_bound_bytes"`
}

// Of is the detail of a registration, nil for any other.
func Of(r *reports.Result) *Register { return reports.DetailOf[Register](r) }

//go:embed schema.json
var schema string

var results = &reports.Workload{
	Name: Name, Title: "Registration",
	Intro: "Arm none asks the device each time; cache keeps registrations behind their use; prereg registers memory " +
		"when it is mapped; lazy keeps what was unmapped for a while. The offload is the detour of a process that " +
		"has another kernel register for it. A sample of register and deregister is the mean of a batch.",
	Dims: []reports.DimDef{
		{Name: "arm", Help: "how memory is registered: none, cache, prereg, prereg+lazy"},
		{Name: "pages", Help: "base, thp, hugetlb"},
		{Name: "offload", Help: "detour of each call of the driver"},
		{Name: "threads", Help: "that register at once"},
		{Name: "working_set", Help: "buffers"},
		{Name: "capacity_regions", Help: "most that the cache keeps"},
		{Name: "source", Help: "how the cache notices that pages were replaced"},
		{Name: "source_in_use", Help: "what the system granted of it"},
	},
	Latencies: []reports.DimDef{
		{Name: "map", Help: "mapping a buffer"},
		{Name: "register", Help: "registering it"},
		{Name: "use", Help: "a device places up to 4 KiB there"},
		{Name: "use_again", Help: "a second use"},
		{Name: "deregister", Help: "deregistering it"},
		{Name: "unmap", Help: "unmapping it"},
		{Name: "cycle", Help: "all of it"},
	},
	Figures: []reports.FigureDef{
		{Name: "set.hits", Quantity: reports.QuantityRatio, Better: reports.More,
			Help: "hits of the cache in the window"},
		{Name: "cache.hits", Quantity: reports.QuantityRatio, Better: reports.More,
			Help: "hits of the cache in its whole life"},
		{Name: "cache.evictions", Quantity: reports.QuantityCount, Help: "regions that the cache gave up"},
		{Name: "each.ns", Quantity: reports.QuantityTime, Help: "a registration and a deregistration, of each thread"},
		{Name: "pairs.rate", Quantity: reports.QuantityRate, Better: reports.More,
			Help: "registrations and deregistrations a second, of all threads"},
		{Name: "batch", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "calls that one sample of register and deregister is the mean of"},
		{Name: "registrations", Quantity: reports.QuantityCount, Better: reports.Neither, Help: "in the window"},
		{Name: "replaced", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "times that pages were replaced by system calls"},
		{Name: "stale", Quantity: reports.QuantityCount, Help: "of these, uses that went to the old pages"},
		{Name: "deferred.most", Quantity: reports.QuantityMemory, Help: "most that was unmapped and still registered"},
		{Name: "deferred.bound", Quantity: reports.QuantityMemory, Better: reports.Neither,
			Help: "what that may be at most"},
	},
	Shown: []string{"register.p50", "register.p99", "deregister.p50", "cycle.p50", "map.p50", "use.p50",
		"use_again.p50", "unmap.p50",
		"set.hits", "cache.hits", "cache.evictions", "each.ns", "pairs.rate", "replaced", "stale", "deferred.most"},
	Schema:   schema,
	Detail:   func() reports.Detail { return new(Register) },
	Describe: describe,
}

func (*Register) Member(string) string { return Name }

func describe(w *reports.Workload, r *reports.Result) {
	d := Of(r)
	r.Note = "one registration at a time on each thread"
	for _, way := range slices.Sorted(maps.Keys(d.Absent)) {
		r.Note += "; " + way + " unsupported: " + view.Printable(d.Absent[way])
	}
	r.Dims = reports.DimsOf(w.Dims, d.Arm, d.Pages, d.Offload, d.Threads, reports.NotZero(d.WorkingSet),
		reports.NotZero(d.Capacity), d.Source, d.SourceSays)
	r.Latencies = reports.LatenciesOf(w.Latencies, d.Map, d.Register, d.Use, d.Again, d.Deregister, d.Unmap, d.Full)
	pool := cmp.Or(d.Pool, &Pool{})
	r.Figures = reports.FiguresOf(w.Figures, where(d.SetGets > 0, float64(d.SetHits)/float64(d.SetGets)),
		where(d.Cache != nil, d.HitRatio), where(d.Cache != nil, float64(d.Cache["evictions"])),
		where(d.EachNs > 0, d.EachNs), where(d.EachNs > 0, float64(d.Threads)*1e9/d.EachNs),
		float64(d.Batch), float64(d.Operations),
		where(d.Source != "", float64(d.Replaced)), where(d.Source != "", float64(d.Stale)),
		where(pool.DeferredBound > 0, float64(pool.MostDeferred)),
		where(pool.DeferredBound > 0, float64(pool.DeferredBound)))
}

func where(has bool, v float64) float64 {
	if !has {
		return math.NaN()
	}
	return v
}
