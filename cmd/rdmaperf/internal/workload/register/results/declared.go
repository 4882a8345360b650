package results

import (
	_ "embed"
	"maps"
	"math"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

//go:embed schema.json
var schema string

// Results declares the dimensions and figures of these results.
var Results = &reports.Workload{
	Name: "register", Title: "Registration",
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

// Member implements reports.Detail.
func (*Register) Member(string) string { return "register" }

func describe(w *reports.Workload, r *reports.Result) {
	d := Of(r)
	r.Note = "one registration at a time on each thread"
	for _, way := range slices.Sorted(maps.Keys(d.Absent)) {
		r.Note += "; " + way + " unsupported: " + view.Printable(d.Absent[way])
	}
	r.Dims = reports.DimsOf(w.Dims, d.Arm, d.Pages, d.Offload, d.Threads, reports.NotZero(d.WorkingSet),
		reports.NotZero(d.Capacity), d.Source, d.SourceSays)
	r.Latencies = reports.LatenciesOf(w.Latencies, d.Map, d.Register, d.Use, d.Again, d.Deregister, d.Unmap, d.Full)
	none := math.NaN()
	hits, cache, evictions, each, pairs, replaced, stale, most, bound := none, none, none, none, none, none, none,
		none, none
	if d.SetGets > 0 {
		hits = float64(d.SetHits) / float64(d.SetGets)
	}
	if d.Cache != nil {
		cache, evictions = d.HitRatio, float64(d.Cache["evictions"])
	}
	if d.EachNs > 0 {
		each, pairs = d.EachNs, float64(d.Threads)*1e9/d.EachNs
	}
	if d.Source != "" {
		replaced, stale = float64(d.Replaced), float64(d.Stale)
	}
	if d.Pool != nil && d.Pool.DeferredBound > 0 {
		most, bound = float64(d.Pool.MostDeferred), float64(d.Pool.DeferredBound)
	}
	r.Figures = reports.FiguresOf(w.Figures, hits, cache, evictions, each, pairs, float64(d.Batch),
		float64(d.Operations), replaced, stale, most, bound)
}
