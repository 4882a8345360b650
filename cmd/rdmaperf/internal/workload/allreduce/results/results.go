package results

import "github.com/rdmaperf/rdmaperf/reports"

// Allreduce is what an all-reduce took. Times are nanoseconds, of the slowest rank in
// each iteration.
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

	// BusBytesPerSecond is the size times 2(n-1)/n for n ranks over the mean time: what
	// the slowest link of a ring carries, as NCCL's tests count it (PERFORMANCE.md there).
	BusBytesPerSecond float64 `json:"bus_bytes_per_second"`

	CPUNs        int64            `json:"cpu_ns"`          // of all ranks in all iterations, with filling and comparing
	Cache        map[string]int64 `json:"cache,omitempty"` // counters of rank 0
	MostDeferred uint64           `json:"most_deferred_bytes,omitempty"`
	Absent       string           `json:"absent_arms,omitempty"`
}

// Of is the detail of an all-reduce, nil for any other.
func Of(r *reports.Result) *Allreduce { return reports.DetailOf[Allreduce](r) }

var (
	words = map[string]string{"ring": "ring", "halving": "recursive halving and doubling",
		"doubling": "recursive doubling"}
	waits = map[string]string{"poll": "poll", "sleep": "sleep for completions"}
)
