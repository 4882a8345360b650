package reports

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// SchemaID is the value of Document.Schema that this package writes and reads.
const SchemaID = "rdmaperf/v1"

//go:embed results.schema.json
var schemaJSON []byte

// Schema returns the JSON schema of the result document; the copy is the caller's.
func Schema() []byte { return slices.Clone(schemaJSON) }

// Values of Result.Label: what kind of path was measured.
const (
	LabelDevice = "device" // a hardware device
	LabelSoft   = "soft"   // protocol processing in software, kernel or user space
	LabelModel  = "model"  // a modelled device or network
	LabelMem    = "mem"    // the in-process reference device; never a network
)

// Values of Result.Polling.
const (
	PollingBusy     = "busy"     // the worker spins on its completion queue
	PollingEvent    = "event"    // the worker sleeps until a completion event
	PollingAdaptive = "adaptive" // it spins, and sleeps briefly while its device has much to do
)

// Values of Result.RoundTrip: what one latency sample covers.
const (
	RoundTripHalf = "half" // one way, taken as half of a ping-pong
	RoundTripFull = "full" // from the request until its answer
)

// Document is everything one invocation found out, by results.schema.json, whose names never change meaning.
type Document struct {
	Schema      string      `json:"schema"` // empty is written as SchemaID
	Started     time.Time   `json:"started"`
	Command     []string    `json:"command"` // argv, for reproducing the run
	Environment Environment `json:"environment"`

	// ServerEnvironment is the other side's, when it is another machine.
	ServerEnvironment *Environment `json:"server_environment,omitempty"`

	// Error is set when the run ended early; Results holds what was finished.
	Error   *RunError `json:"error,omitempty"`
	Results []Result  `json:"results"`
	Answer  *Answer   `json:"answer,omitempty"` // what they show; nil where nobody asked

	// Published are figures of others beside them, never mixed with what was measured.
	Published []Published `json:"published,omitempty"`

	// Repeats are the means of points that were measured several times, by SummariseRepeats.
	Repeats []RepeatSummary `json:"repeats,omitempty"`
}

// RunError says why a run ended early.
type RunError struct {
	Operation string `json:"operation"`
	Message   string `json:"message"`
	Hint      string `json:"hint,omitempty"`
	ExitCode  int    `json:"exit_code"`
}

// NewRunError describes err, with operation and hint of an ExitError; nil for nil.
func NewRunError(err error) *RunError {
	if err == nil {
		return nil
	}
	re := &RunError{Operation: "run", Message: err.Error(), ExitCode: Code(err)}
	var e *ExitError
	if errors.As(err, &e) {
		re.Hint, re.Operation = e.Hint, cmp.Or(e.Operation, re.Operation)
		// What stands around an ExitError belongs to the message.
		if err == error(e) && e.Err != nil {
			re.Message = e.Err.Error()
		}
	}
	return re
}

// Result is one measured point: one stack, workload, operation, size and load.
type Result struct {
	Stack     string `json:"stack"`               // full stack name with parameters, outermost first
	Transport string `json:"transport,omitempty"` // as given on the command line
	Label     string `json:"label"`               // LabelDevice, LabelSoft, LabelModel or LabelMem
	Workload  string `json:"workload"`            // latency, throughput, hol, …
	Op        string `json:"op"`                  // send, send_imm, write, write_imm, read, fetch_add, cmp_swap, call
	SizeBytes int64  `json:"size_bytes"`
	Depth     int    `json:"depth"` // operations outstanding per QP, at least 1
	QPs       int    `json:"qps"`   // at least 1
	Threads   int    `json:"threads,omitempty"`
	Polling   string `json:"polling,omitempty"`
	RoundTrip string `json:"round_trip,omitempty"`

	Impairment string `json:"impairment,omitempty"`  // what a path between the ends did to packets, such as loss=1%
	Neighbours int    `json:"neighbours,omitempty"`  // threads of other processes that spun beside the point
	AppWorkNs  int64  `json:"app_work_ns,omitempty"` // what the receiving application computes for each message

	// Rate is the offered load of an open loop in operations a second, and Arrivals how they are spread: constant or
	// poisson. Latency counts from the intended starts then. A closed loop has neither.
	Rate     float64 `json:"rate,omitempty"`
	Arrivals string  `json:"arrivals,omitempty"`

	// OpenLoop says what of the offered load was done; nil for a closed loop.
	OpenLoop *OpenLoop `json:"open_loop,omitempty"`

	// Repeat counts the measurements of one point from 1, when there are several.
	Repeat int `json:"repeat,omitempty"`

	// MeasuredBy is the side whose clock was read: client, server or both.
	MeasuredBy string `json:"measured_by,omitempty"`

	Started    time.Time `json:"started,omitzero"` // when the measured window began
	DurationNs int64     `json:"duration_ns"`      // of the measured window, without warm-up
	Operations int64     `json:"operations"`       // completed inside the window
	Errors     int64     `json:"errors"`
	Verified   bool      `json:"verified"` // what was compared, as Verification says, was right

	// Interrupted: the run was ended in the window, which is shorter than it was to be.
	Interrupted bool `json:"interrupted,omitempty"`

	// Disturbance says what the machine did meanwhile; nil where nobody looked.
	Disturbance *Disturbance `json:"disturbance,omitempty"`

	// Verification says how much that is; nil where the workload does not count it.
	Verification *Verification `json:"verification,omitempty"`

	Latency          *Latency    `json:"latency,omitempty"`
	LatencyCorrected *Latency    `json:"latency_corrected,omitempty"` // closed loop, coordinated omission undone
	LatencyService   *Latency    `json:"latency_service,omitempty"`   // open loop, without the wait for a late start
	Series           *Series     `json:"series,omitempty"`            // how the window went, on request
	Throughput       *Throughput `json:"throughput,omitempty"`

	// RawSamples says where every single latency is, when they were asked for.
	RawSamples []RawSamples `json:"raw_samples,omitempty"`

	// Detail is what only results of one workload have; nil for an unknown workload, whose members Others keeps.
	Detail Detail  `json:"-"`
	Others Members `json:"others,omitempty"`

	Description `json:"-"`

	CPU      *CPU      `json:"cpu,omitempty"`
	Counters *Counters `json:"counters,omitempty"`
	GC       *GC       `json:"gc,omitempty"`

	// Parameters holds every effective option of both sides.
	Parameters map[string]any `json:"parameters,omitempty"`
}

// Series divides the window. The last point takes in what ended behind it.
type Series struct {
	IntervalNs int64         `json:"interval_ns"`
	Points     []SeriesPoint `json:"points"`
}

// SeriesPoint is what ended in one interval. Times are ns, percentiles right within 1.6 %; a throughput has none.
type SeriesPoint struct {
	OffsetNs   int64   `json:"offset_ns"` // of its begin, from the begin of the window
	Operations int64   `json:"operations"`
	P50        float64 `json:"p50,omitempty"`
	P99        float64 `json:"p99,omitempty"`
	Max        float64 `json:"max,omitempty"`
}

// Throughput is the rate over the whole window.
type Throughput struct {
	BytesPerSecond      float64 `json:"bytes_per_second"`
	OperationsPerSecond float64 `json:"operations_per_second"`

	// PeakBytesPerSecond is the highest rate of any span of PeakOverNs; of a duration or more than 20,000 messages, of
	// the parts of that length, at most an eighth too high. Both are 0 where the window was too short for two.
	PeakBytesPerSecond float64 `json:"peak_bytes_per_second,omitempty"`
	PeakOverNs         int64   `json:"peak_over_ns,omitempty"`
}

// NewThroughput divides payload bytes and operations by the window; one without time gives zero.
func NewThroughput(bytes, operations int64, window time.Duration) *Throughput {
	if window <= 0 {
		return &Throughput{}
	}
	s := window.Seconds()
	return &Throughput{BytesPerSecond: float64(bytes) / s, OperationsPerSecond: float64(operations) / s}
}

// CPU is the processor time of both sides in the window, in seconds; of LabelMem that of the one process.
type CPU struct {
	ClientSeconds float64 `json:"client_seconds"`
	ServerSeconds float64 `json:"server_seconds"`
	// MachineSeconds is what everything on the client's machine used, in ticks of 10 ms (proc_stat(5)): kernel drivers
	// work in interrupts that no process is charged for. 0: not known.
	MachineSeconds float64 `json:"machine_seconds,omitempty"`
	// Context switches of that side (ru_nvcsw and ru_nivcsw of getrusage(2)).
	ClientSwitches int64 `json:"client_switches,omitempty"`
	ServerSwitches int64 `json:"server_switches,omitempty"`
}

// BothCPU is the processor time of both sides in seconds.
func (r *Result) BothCPU() float64 {
	if r.Label == LabelMem {
		return r.CPU.ClientSeconds
	}
	return r.CPU.ClientSeconds + r.CPU.ServerSeconds
}

// GC counts garbage collections and heap allocations inside the window.
type GC struct {
	ClientCollections int64 `json:"client_collections"`
	ServerCollections int64 `json:"server_collections"`
	ClientAllocations int64 `json:"client_allocations"`
	ServerAllocations int64 `json:"server_allocations"`
}

// Values of Verification.Mode.
const (
	VerifyAll    = "all"    // every byte of every message that its workload can look at
	VerifySample = "sample" // a sample of whole messages, and the numbers of those that carry one
	VerifyNone   = "none"
)

// Verification is how much of the data in the measured window was compared, by both sides.
type Verification struct {
	Mode     string `json:"mode"`
	Messages int64  `json:"messages"` // operations of the window
	Numbers  int64  `json:"numbers"`  // messages of which at least the number was compared
	Whole    int64  `json:"whole"`    // messages that were compared byte by byte
	Bytes    int64  `json:"bytes"`    // of all comparisons
}

// Add counts what was compared of another point, too; nil is nothing.
func (v *Verification) Add(o *Verification) {
	if o != nil {
		v.Messages, v.Numbers, v.Whole, v.Bytes = v.Messages+o.Messages, v.Numbers+o.Numbers, v.Whole+o.Whole,
			v.Bytes+o.Bytes
	}
}

// String says it in one sentence.
func (v *Verification) String() string {
	if v.Mode == VerifyNone {
		return "nothing was compared of " + view.Plural(v.Messages, "message")
	}
	return fmt.Sprintf("of %s %s compared byte by byte and the numbers of %s, %s", view.Plural(v.Messages, "message"),
		view.Integer(v.Whole), view.Integer(v.Numbers), view.Plural(v.Bytes, "byte"))
}
