package rank

import (
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Order is a line from the parent; one member is set.
type Order struct {
	Hello *Hello `json:"hello,omitempty"`
	Join  *Join  `json:"join,omitempty"`
	Run   *Run   `json:"run,omitempty"`
}

// Hello is the first: what the rank is.
type Hello struct {
	Stack   string        `json:"stack"`
	Listen  string        `json:"listen"` // "host:port"
	Rank    int           `json:"rank"`
	Size    int           `json:"size"`
	Eager   int           `json:"eager_bytes"`
	Segment int           `json:"segment_bytes"`
	Wait    bool          `json:"wait"` // sleep for completions
	Timeout time.Duration `json:"timeout_ns"`
}

// Join is the second: where the others are.
type Join struct {
	Addrs []string `json:"addrs"`
	Token uint64   `json:"token"`
}

// Run is one measurement.
type Run struct {
	Algorithm  string `json:"algorithm"`
	Arm        string `json:"arm"`
	Bytes      int    `json:"bytes"` // of the vector, a multiple of 4
	Fresh      bool   `json:"fresh"` // buffers are mapped and unmapped in each iteration
	Offload    string `json:"offload"`
	Deferred   int    `json:"deferred_bytes"`
	Warmup     int    `json:"warmup"`
	Iterations int    `json:"iterations"`
	Verify     bool   `json:"verify"`
	Seed       uint64 `json:"seed"`
}

// Answer is a line to the parent; one member is set.
type Answer struct {
	Addr  string `json:"addr,omitempty"`  // of Hello
	Name  string `json:"name,omitempty"`  // likewise: the stack's full name
	Label string `json:"label,omitempty"` // likewise: of its results
	PID   int    `json:"pid,omitempty"`   // likewise: of the process
	Ready bool   `json:"ready,omitempty"` // of Join
	Times *Times `json:"times,omitempty"` // of Run
	Fault *Fault `json:"fault,omitempty"` // instead of any
}

// Times are nanoseconds, one an iteration.
type Times struct {
	Map    []int64          `json:"map_ns,omitempty"` // both buffers, and a touch of each page
	Reduce []int64          `json:"reduce_ns"`        // the all-reduce
	Unmap  []int64          `json:"unmap_ns,omitempty"`
	Cache  map[string]int64 `json:"cache,omitempty"`
	Most   uint64           `json:"most_deferred_bytes,omitempty"`
	Window int64            `json:"window_ns"` // from behind the warm-up to the end
	CPU    int64            `json:"cpu_ns"`    // user and system, of the whole process in the window
	Noise  reports.Noise    `json:"noise"`     // of the rank's thread and connections in the window
}

// Fault is the end of the rank.
type Fault struct {
	Message     string `json:"message"`
	Corrupt     bool   `json:"corrupt,omitempty"`     // a sum is wrong
	Unsupported bool   `json:"unsupported,omitempty"` // the device or the arm cannot do it
}
