package results

import (
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Register is what a registration cost, by one way of having memory registered. Times
// are nanoseconds.
type Register struct {
	Arm     string `json:"arm"`     // none, cache, prereg, prereg+lazy
	Pages   string `json:"pages"`   // base, thp, hugetlb
	Pattern string `json:"pattern"` // which buffers, one after the other
	Offload string `json:"offload"` // the detour of a call of the driver; none
	Threads int    `json:"threads"` // that register at once

	// Batch is how many calls one sample of Register and Deregister is the mean of.
	Batch      int   `json:"batch"`
	Operations int64 `json:"registrations"`

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

// stage is one stage by its name in thresholds; title is for people.
type stage struct {
	name, title string
	of          func(d *Register) *reports.Latency
}

var stages = []stage{
	{"map", "map", func(d *Register) *reports.Latency { return d.Map }},
	{"register", "register", func(d *Register) *reports.Latency { return d.Register }},
	{"use", "use", func(d *Register) *reports.Latency { return d.Use }},
	{"use_again", "use again", func(d *Register) *reports.Latency { return d.Again }},
	{"deregister", "deregister", func(d *Register) *reports.Latency { return d.Deregister }},
	{"unmap", "unmap", func(d *Register) *reports.Latency { return d.Unmap }},
	{"cycle", "register+use+deregister", func(d *Register) *reports.Latency { return d.Full }},
}

// variant tells apart what stands in one table.
func variant(r *reports.Result) string {
	d := Of(r)
	parts := []string{d.Arm, d.Pages + " pages"}
	if d.Offload != "none" {
		parts = append(parts, "offload "+d.Offload)
	}
	if d.Threads > 1 {
		parts = append(parts, view.Plural(int64(d.Threads), "thread"))
	}
	if d.Source != "" {
		parts = append(parts, "source "+d.Source)
	}
	if d.WorkingSet > 0 {
		parts = append(parts, view.Plural(int64(d.WorkingSet), "buffer"))
	}
	return strings.Join(parts, ", ")
}

// Kind describes these results.
var Kind = &reports.Kind{
	Workload: "register",
	Results:  Results,
	Called:   "Registration",
	What:     func(l reports.Load) string { return "registration, " + whats[l.Op] },
	Title:    func(l reports.Load) string { return "Registration, " + whats[l.Op] },
	Conditions: func(reports.Load) string {
		return "one registration at a time on each thread"
	},
	OwnThreads:    true,
	Variant:       variant,
	NamesRows:     true,
	Shape:         variant,
	Medians:       medians,
	OwnLatency:    true,
	OwnRate:       true,
	OwnTable:      true,
	OwnCharts:     true,
	OwnSideBySide: true,
	PageBlocks:    true,
	Tables:        tables,
	Sections:      []*reports.PageSection{{Rank: 40, Of: section}},
}

// whats are the patterns in words.
var whats = map[string]string{"repeated": "the same buffer again", "random": "random addresses and lengths", "overlapping": "overlapping buffers",
	"new": "buffers that are always new", "set": "buffers of a working set", "replaced": "memory whose pages were replaced unseen", "threads": "several threads"}

// medians has the medians of each stage over repeats.
func medians(all []*reports.Result) any {
	d := *Of(all[0])
	to := []**reports.Latency{&d.Map, &d.Register, &d.Use, &d.Again, &d.Deregister, &d.Unmap, &d.Full}
	for i, s := range stages {
		if s.of(&d) != nil {
			*to[i] = reports.MedianLatencies(all, func(r *reports.Result) *reports.Latency { return s.of(Of(r)) })
		}
	}
	d.EachNs = reports.MedianOver(all, func(r *reports.Result) float64 { return Of(r).EachNs })
	return &d
}
