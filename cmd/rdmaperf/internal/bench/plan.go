package bench

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Polling names, as --polling and Result.Polling spell them.
const (
	PollingBusy     = "busy"
	PollingEvent    = "event"
	PollingAdaptive = "adaptive"
)

// Plan is everything a run asks for, as the client sends it to the server. The
// zero value of a field that has a default means the default.
type Plan struct {
	// Transport is the stack as given to --transport; the server opens the same.
	Transport string  `json:"transport"`
	Points    []Point `json:"points"`

	// Models are those that points of the parameter server workload name. The server
	// needs none.
	Models map[string]*Model `json:"-"`

	// Iterations per QP. When it is 0, Duration decides; exactly one is set.
	Iterations int64         `json:"iterations,omitempty"`
	Duration   time.Duration `json:"duration_ns,omitempty"`

	// The warm-up of a phase ends at whichever comes first. Both 0: no warm-up.
	WarmupIterations int64         `json:"warmup_iterations,omitempty"`
	WarmupDuration   time.Duration `json:"warmup_duration_ns,omitempty"`

	Depth      int    `json:"depth,omitempty"`      // operations outstanding per QP in streams; default 128
	RecvDepth  int    `json:"recv_depth,omitempty"` // receives posted per QP in streams; default 512
	QPs        int    `json:"qps,omitempty"`        // default 1
	Threads    int    `json:"threads,omitempty"`    // workers a side; default 1, with event polling QPs
	Polling    string `json:"polling,omitempty"`    // PollingBusy (default), PollingEvent or PollingAdaptive
	Nice       int    `json:"nice,omitempty"`       // nice value of the workers, 1 to 19, NiceAuto or NiceNone
	Inline     int    `json:"inline,omitempty"`     // messages up to so many bytes are posted inline
	Moderation int    `json:"moderation,omitempty"` // one completion for so many operations; default by size and depth
	Verify     bool   `json:"verify"`
	Seed       uint64 `json:"seed"`

	// Of the head-of-line workload. A ProbeInterval of 0 is a closed loop: each
	// probe starts when the one before is back.
	BulkDepth     int           `json:"bulk_depth,omitempty"` // default 16
	ProbeSize     int           `json:"probe_size,omitempty"` // default 64 bytes
	ProbeInterval time.Duration `json:"probe_interval_ns,omitempty"`
	ProbePriority uint8         `json:"probe_priority,omitempty"` // in every probe's work request; bulk has 0

	// Of its arm app-slicing: bytes of a slice and how many are outstanding, at
	// defaults of DefaultAppSlice and DefaultAppWindow.
	AppSlice  int `json:"app_slice_bytes,omitempty"`
	AppWindow int `json:"app_window,omitempty"`

	HighPriority uint8 `json:"high_priority,omitempty"` // starvation: of the high class; the low one has 0

	// Arrivals of an open loop: ArrivalsConstant (default) or ArrivalsPoisson, whose
	// gaps come from the seed.
	Arrivals string `json:"arrivals,omitempty"`

	// Interval asks for a series over each window that Duration bounds. Of the
	// head-of-line workload, it is that of the loaded probes.
	Interval time.Duration `json:"interval_ns,omitempty"`

	// ClientCPU and ServerCPU pin the worker thread when not negative.
	ClientCPU int `json:"client_cpu"`
	ServerCPU int `json:"server_cpu"`

	// Timeout bounds every single wait that is not the measurement itself, and how
	// long an operation may make no progress. Default 5 s.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
}

// Point is one figure to take. Of the head-of-line workload, Op and Size are those
// of the bulk stream.
type Point struct {
	Workload string `json:"workload"`
	Op       string `json:"op"`
	Size     int    `json:"size_bytes"`
	Arm      string `json:"arm,omitempty"` // head-of-line: one of Arms; paramserver: one of TrainArms

	// Rate makes an open loop of the workload latency: operations a second, of all
	// QPs together. 0 is a closed loop.
	Rate float64 `json:"rate,omitempty"`

	// Bidirectional makes both sides send at once, in throughput.
	Bidirectional bool `json:"bidirectional,omitempty"`

	// Of the parameter server workload: the model's name, the bytes of a parameter,
	// which with the model make Size, and the computation of an iteration as a
	// multiple of its communication alone.
	Model        string  `json:"model,omitempty"`
	TensorBytes  float64 `json:"tensor_bytes,omitempty"`
	ComputeRatio float64 `json:"compute_ratio,omitempty"`

	// HighLoad is what the high class of the starvation workload offers, in percent of
	// what the transport carries.
	HighLoad float64 `json:"high_load_percent,omitempty"`

	// Of workloads of calls: the kind, one of CallKinds, the bytes of an answer, and how
	// many are outstanding on a connection. 0: the plan's depth, or 1.
	Call        string `json:"call,omitempty"`
	Response    int    `json:"response_bytes,omitempty"`
	Outstanding int    `json:"outstanding,omitempty"`

	// KV is what the key-value workload asks for.
	KV KVLoad `json:"kv,omitzero"`

	// QPs replaces the plan's number, for a sweep. 0: the plan's.
	QPs int `json:"point_qps,omitempty"`
}

// String reads "latency send 64 B" or "hol write 1048576 B same-qp".
func (p Point) String() string {
	s := fmt.Sprintf("%s %s %d B", p.Workload, p.Op, p.Size)
	if p.Model != "" {
		s = fmt.Sprintf("%s %s, ratio %v,", p.Workload, p.Model, p.ComputeRatio)
	}
	if p.Call != "" {
		s = fmt.Sprintf("%s %s %d B", p.Workload, p.Call, p.Size)
		if p.Response != p.Size && p.Call != CallOneway && p.Workload == WorkloadRPC {
			s += fmt.Sprintf(" answered by %d B", p.Response)
		}
		if p.Outstanding != 0 {
			s += fmt.Sprintf(", %d outstanding", p.Outstanding)
		}
	}
	if p.KV.Mix != "" {
		s = fmt.Sprintf("%s YCSB %s, %d records", p.Workload, p.KV.Mix, p.KV.Records)
		if p.Outstanding != 0 {
			s += fmt.Sprintf(", %d outstanding", p.Outstanding)
		}
	}
	if p.Arm != "" {
		s += " " + p.Arm
	}
	if p.Workload == WorkloadStarvation {
		s += fmt.Sprintf(" at %v %%", p.HighLoad)
	}
	if p.Rate != 0 {
		s += fmt.Sprintf(" at %v/s", p.Rate)
	}
	if p.Bidirectional {
		s += " both ways"
	}
	if p.QPs != 0 && p.Call != "" {
		s += fmt.Sprintf(" on %d connections", p.QPs)
	} else if p.QPs != 0 {
		s += fmt.Sprintf(" on %d QPs", p.QPs)
	}
	return s
}

// Defaults and limits of a plan. The limits keep a hostile plan from costing a
// server more than its own limits allow; they are far above any sensible run.
const (
	DefaultDepth     = 128 // perftest's -t for bandwidth
	DefaultRecvDepth = 512 // perftest's -r
	DefaultTimeout   = 5 * time.Second

	maxPoints   = 4096
	maxQPs      = 4096
	maxThreads  = 256
	maxDepth    = 1 << 16
	maxDuration = 24 * time.Hour
	maxSize     = 1 << 31 // a message length is 32 bits on every wire
)

// withDefaults fills in what was left to the engine.
func (p Plan) withDefaults() Plan {
	p.QPs = max(p.QPs, 1)
	if p.Polling == "" {
		p.Polling = PollingBusy
	}
	p.Threads = max(p.Threads, 1)
	if p.Arrivals == "" {
		p.Arrivals = ArrivalsConstant
	}
	if p.BulkDepth == 0 {
		p.BulkDepth = DefaultBulkDepth
	}
	if p.ProbeSize == 0 {
		p.ProbeSize = DefaultProbeSize
	}
	if p.AppSlice == 0 {
		p.AppSlice = DefaultAppSlice
	}
	if p.AppWindow == 0 {
		p.AppWindow = DefaultAppWindow
	}
	if p.Timeout == 0 {
		p.Timeout = DefaultTimeout
	}
	return p
}

// Validate checks what can be checked without a device. The error is a usage
// error and names the first wrong field.
func (p *Plan) Validate() error {
	bad := func(what string, v any, why string) error {
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check plan", Err: fmt.Errorf("%s %v: %s", what, v, why)}
	}
	switch {
	case len(p.Points) == 0:
		return bad("points", 0, "nothing to measure")
	case len(p.Points) > maxPoints:
		return bad("points", len(p.Points), fmt.Sprintf("at most %d", maxPoints))
	case p.Iterations < 0 || p.Iterations > 1<<40:
		return bad("iterations", p.Iterations, "want 1 to 2^40")
	case p.Duration < 0 || p.Duration > maxDuration:
		return bad("duration", p.Duration, "want more than 0 and at most 24h")
	case (p.Iterations == 0) == (p.Duration == 0):
		return bad("iterations", p.Iterations, "give either iterations or a duration")
	case p.WarmupIterations < 0 || p.WarmupDuration < 0 || p.WarmupDuration > maxDuration:
		return bad("warm-up", p.WarmupDuration, "want 0 to 24h")
	case p.Depth < 0 || p.Depth > maxDepth:
		return bad("depth", p.Depth, fmt.Sprintf("want 1 to %d", maxDepth))
	case p.RecvDepth < 0 || p.RecvDepth > maxDepth:
		return bad("receive depth", p.RecvDepth, fmt.Sprintf("want 1 to %d", maxDepth))
	case p.QPs < 0 || p.QPs > maxQPs:
		return bad("qps", p.QPs, fmt.Sprintf("want 1 to %d", maxQPs))
	case p.Threads < 0 || p.Threads > maxThreads:
		return bad("threads", p.Threads, fmt.Sprintf("want 1 to %d", maxThreads))
	case p.Threads > p.mostQPs():
		return bad("threads", p.Threads, "a thread needs a QP of its own")
	case p.Polling != "" && p.Polling != PollingBusy && p.Polling != PollingEvent && p.Polling != PollingAdaptive:
		return bad("polling", p.Polling, "want busy, adaptive or event")
	case p.Polling == PollingEvent && p.mostQPs() > maxThreads:
		return bad("qps", p.mostQPs(), fmt.Sprintf("with event polling at most %d", maxThreads))
	case p.Nice < NiceNone || p.Nice > MostNice:
		return bad("nice value", p.Nice, fmt.Sprintf("want 0 to %d", MostNice))
	case p.Nice > 0 && p.hasCalls():
		return bad("nice value", p.Nice, "calls run on threads of the Go runtime, which have the process's; see nice(1)")
	case p.Inline < 0 || p.Inline > maxSize:
		return bad("inline", p.Inline, "want 0 or more bytes")
	case p.Moderation < 0:
		return bad("completion moderation", p.Moderation, "want 1 or more")
	case p.Moderation > 1 && p.Moderation > p.depth():
		return bad("completion moderation", p.Moderation, fmt.Sprintf("above the depth of %d nothing would ever complete", p.depth()))
	case p.Timeout < 0 || p.Timeout > maxDuration:
		return bad("timeout", p.Timeout, "want more than 0 and at most 24h")
	case p.BulkDepth < 0 || p.BulkDepth > maxDepth/2:
		return bad("bulk depth", p.BulkDepth, fmt.Sprintf("want 1 to %d", maxDepth/2))
	case p.ProbeSize < 0 || p.ProbeSize > maxSize:
		return bad("probe size", p.ProbeSize, "want 1 byte to 2 GiB")
	case p.AppSlice != 0 && (p.AppSlice < minAppSlice || p.AppSlice > maxSize):
		return bad("application slice", p.AppSlice, "want 1 KiB to 2 GiB")
	case p.AppWindow < 0 || p.AppWindow > maxDepth/2:
		return bad("application window", p.AppWindow, fmt.Sprintf("want 1 to %d slices", maxDepth/2))
	case p.ProbeInterval < 0 || p.ProbeInterval > maxProbeInterval:
		return bad("probe interval", p.ProbeInterval, fmt.Sprintf("want 0 to %v", maxProbeInterval))
	case p.Arrivals != "" && p.Arrivals != ArrivalsConstant && p.Arrivals != ArrivalsPoisson:
		return bad("arrivals", p.Arrivals, "want constant or poisson")
	case p.Interval < 0 || p.Interval > 0 && p.Duration == 0:
		return bad("interval", p.Interval, "it divides a window that has a duration")
	case p.Interval > 0 && (p.Interval < time.Millisecond || p.Interval > p.Duration || p.Duration/p.Interval >= MaxIntervals):
		return bad("interval", p.Interval, fmt.Sprintf("want 1ms or more, at most the duration, and fewer than %d in it", MaxIntervals))
	case p.hasCalls() && p.Polling == PollingEvent:
		return bad("polling", p.Polling, "how a carrier of calls waits is its layer's mode, as in grpc(fused,event)+iwarp")
	case p.has(WorkloadIncast) && p.Polling == PollingEvent:
		return bad("polling", p.Polling, "one thread serves all clients of an incast and cannot sleep on one, so it needs busy polling")
	case p.has(WorkloadConnect) && p.Polling == PollingEvent:
		return bad("polling", p.Polling, "the first round trip of a connection is polled for, so it needs busy polling")
	case p.has(WorkloadStarvation) && p.Polling == PollingEvent:
		return bad("polling", p.Polling, "the high class is paced by spinning, so it needs busy polling")
	case p.has(WorkloadStarvation) && p.Interval > 0:
		return bad("interval", p.Interval, "the workload starvation has no series")
	case p.has(WorkloadParamServer) && p.Polling == PollingEvent:
		return bad("polling", p.Polling, "a worker computes and communicates at once, so it needs busy polling")
	case p.has(WorkloadParamServer) && p.Interval > 0:
		return bad("interval", p.Interval, "the workload paramserver has iterations, and no windows")
	case p.has(WorkloadHOL) && p.Polling == PollingEvent:
		return bad("polling", p.Polling, "the head-of-line workload paces and watches two things at once, so it needs busy polling")
	}
	for _, pt := range p.Points {
		if err := pt.validate(); err != nil {
			return bad("point", fmt.Sprintf("%q", pt.String()), err.Error())
		}
		if probe := p.withDefaults().ProbeSize; pt.Workload == WorkloadHOL && probe >= pt.Size {
			return bad("point", fmt.Sprintf("%q", pt.String()), errProbeSize(probe, pt.Size).Error())
		}
	}
	return nil
}

// mostQPs is the largest number of QPs of any point.
func (p *Plan) mostQPs() int {
	most := 1
	for _, pt := range p.Points {
		most = max(most, p.qps(pt))
	}
	return most
}

// qps is the number of QPs of a point.
func (p *Plan) qps(pt Point) int {
	if pt.QPs > 0 {
		return pt.QPs
	}
	return max(p.QPs, 1)
}

// threads is the number of workers that share so many QPs. A sweep begins with
// fewer QPs than threads may be, and a thread needs one. In event mode one
// goroutine cannot sleep on two sessions, so each gets its own.
func (p *Plan) threads(qps int) int {
	if p.Polling == PollingEvent {
		return qps
	}
	return min(max(p.Threads, 1), qps)
}

func (p *Plan) depth() int {
	if p.Depth == 0 {
		return DefaultDepth
	}
	return p.Depth
}

func (p Point) validate() error {
	k, ok := transports.ParseKind(p.Op)
	w := findWorkload(p.Workload)
	if err := p.checkRate(); err != nil {
		return err
	}
	switch {
	case w == nil:
		return fmt.Errorf("unknown workload, want one of %v", Workloads())
	case !ok:
		return fmt.Errorf("unknown operation, want one of %s", kindNames(^transports.KindSet(0)))
	case p.Size < 1 || p.Size > maxSize:
		return fmt.Errorf("sizes are 1 byte to 2 GiB")
	case isAtomic(k) && p.Size != atomicSize:
		return fmt.Errorf("atomics are %d bytes", atomicSize)
	case p.HighLoad != 0 && p.Workload != WorkloadStarvation:
		return fmt.Errorf("only the workload %s has a high load", WorkloadStarvation)
	case p.QPs < 0 || p.QPs > maxQPs:
		return fmt.Errorf("%d QPs: want 1 to %d", p.QPs, maxQPs)
	case p.Arm != "" && p.Workload != WorkloadHOL && p.Workload != WorkloadParamServer:
		return fmt.Errorf("only the workloads %s and %s have arms", WorkloadHOL, WorkloadParamServer)
	case p.Workload != WorkloadParamServer && (p.Model != "" || p.TensorBytes != 0 || p.ComputeRatio != 0):
		return fmt.Errorf("only the workload %s has a model", WorkloadParamServer)
	case w.calls == nil && (p.Call != "" || p.Response != 0 || p.Outstanding != 0):
		return fmt.Errorf("the workload %s has no calls", w.name)
	case p.Workload != WorkloadKV && p.KV != (KVLoad{}):
		return fmt.Errorf("only the workload %s has records", WorkloadKV)
	case p.Bidirectional && p.Workload != WorkloadThroughput:
		return fmt.Errorf("only the workload %s goes both ways", WorkloadThroughput)
	case p.Bidirectional && isAtomic(k):
		return fmt.Errorf("atomics go one way: of both ways are send, write, write_imm and read")
	case w.point != nil:
		return w.point(p)
	}
	return nil
}

// atomicSize is the length of every atomic (IBTA 9.4.5).
const atomicSize = 8

func isAtomic(k transports.Kind) bool {
	return k == transports.KindFetchAdd || k == transports.KindCmpSwap
}
