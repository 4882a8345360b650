package results

import (
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
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

	// Took is the time of these operations, of threads at once; the document has it as duration_ns. It is that of whole
	// cycles where every buffer is new.
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
