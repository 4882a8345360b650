package engine

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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

// Loops of a ping-pong, as --loop and results spell them: rdmaperf's own post, polls and clock, or the provider's.
const (
	LoopPlain    = "plain"
	LoopProvider = "provider"
)

// Plan is everything a run asks for, as the client sends it. A zero field that has a default means the default.
type Plan struct {
	Token []byte `json:"-"` // what the server wants known; it is never sent
	// TLS is what the control channel is wrapped in; nil: nothing. Without a ServerName it is the host that is dialled.
	TLS *tls.Config  `json:"-"`
	Log *slog.Logger `json:"-"` // told of waits for other clients; nil: nobody is
	// Run names what an exclusive server serves together; "": this process. NoWait refuses to wait for another.
	Run       string `json:"run,omitempty"`
	NoWait    bool   `json:"no_wait,omitempty"`
	Transport string `json:"transport"` // the stack as given to --transport; the server opens the same
	Points    Points `json:"points"`
	Workloads Table  `json:"-"` // those that the points may name. Each side has its own table
	// Iterations per QP. When it is 0, Duration decides; exactly one is set.
	Iterations int64         `json:"iterations,omitempty"`
	Duration   time.Duration `json:"duration_ns,omitempty"`
	// Rounds is how many slices a point has, 0 for one. Between them other stacks take at most Between.
	Rounds  int           `json:"rounds,omitempty"`
	Between time.Duration `json:"between_ns,omitempty"`
	// The warm-up of a phase ends at whichever comes first. Both 0: no warm-up.
	WarmupIterations int64         `json:"warmup_iterations,omitempty"`
	WarmupDuration   time.Duration `json:"warmup_duration_ns,omitempty"`

	Depth     int    `json:"depth,omitempty"`      // operations outstanding per QP in streams; default 128
	RecvDepth int    `json:"recv_depth,omitempty"` // receives posted per QP in streams; default 512
	QPs       int    `json:"qps,omitempty"`        // default 1
	Threads   int    `json:"threads,omitempty"`    // workers a side; default 1, with event polling QPs
	Polling   string `json:"polling,omitempty"`    // PollingBusy (default), PollingEvent or PollingAdaptive
	// of ping-pongs: LoopPlain or LoopProvider; "": the provider's where both ends have it
	Loop       string `json:"loop,omitempty"`
	Nice       int    `json:"nice,omitempty"`       // nice value of the workers, 1 to 19, NiceAuto or NiceNone
	Inline     int    `json:"inline,omitempty"`     // messages up to so many bytes are posted inline
	Moderation int    `json:"moderation,omitempty"` // one completion for so many operations; default by size and depth
	PostList   int    `json:"post_list,omitempty"`  // operations of one post in streams, at most; 0: BatchMax
	Verify     bool   `json:"verify"`
	VerifyAll  bool   `json:"verify_all,omitempty"` // every message whole, not a sample
	Seed       uint64 `json:"seed"`
	// Arrivals of an open loop: ArrivalsConstant (default) or ArrivalsPoisson, whose gaps come from the seed.
	Arrivals  string        `json:"arrivals,omitempty"`
	Interval  time.Duration `json:"interval_ns,omitempty"` // asks for a series over each window that Duration bounds
	ClientCPU int           `json:"client_cpu"`            // CPU of the worker thread, as ServerCPU; negative: not pinned
	ServerCPU int           `json:"server_cpu"`
	// Timeout bounds every wait that is not the measurement, and an operation without progress. Default 5 s.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
}

// Points are at most maxPoints where they come from a peer.
type Points []Point

// UnmarshalJSON stops behind maxPoints: an empty point is three bytes of a line and hundreds of memory.
func (p *Points) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	*p = nil
	t, err := d.Token()
	switch {
	case err == nil && t == nil:
		return nil
	case t != json.Delim('['):
		return errors.New("points are a list")
	}
	for d.More() {
		if len(*p) == maxPoints {
			return fmt.Errorf("more than %d points", maxPoints)
		}
		var pt Point
		if err := d.Decode(&pt); err != nil {
			return err
		}
		*p = append(*p, pt)
	}
	return nil
}

// Point is one figure to take.
type Point struct {
	Workload string `json:"workload"`
	Op       string `json:"op"`
	Size     int    `json:"size_bytes"`
	Variant  string `json:"arm,omitempty"` // one of several ways of doing the same, by a name of the workload's
	// Rate makes an open loop of the workload latency: operations a second, of all QPs together. 0 is a closed loop.
	Rate float64 `json:"rate,omitempty"`
	// AppWork is how long the server computes for each message that it receives, in latency and throughput.
	AppWork       time.Duration `json:"app_work_ns,omitempty"`
	Depth         int           `json:"point_depth,omitempty"`   // replaces the plan's, in throughput; 0: the plan's
	Bidirectional bool          `json:"bidirectional,omitempty"` // makes both sides send at once, in throughput
	// Of calls: one of CallKinds, the bytes of an answer, and how many are outstanding on a connection (0: the
	// default).
	Call        string  `json:"call,omitempty"`
	Response    int     `json:"response_bytes,omitempty"`
	Outstanding int     `json:"outstanding,omitempty"`
	Options     Options `json:"options,omitempty"`    // what only the workload of the point knows: see [Options]
	QPs         int     `json:"point_qps,omitempty"`  // replaces the plan's number, for a sweep; 0: the plan's
	Neighbours  int     `json:"neighbours,omitempty"` // threads that spin beside it, started by who runs the plan
	Alone       bool    `json:"alone,omitempty"`      // it needs no server
	// Time is how long it takes, for the deadline. 0: the warm-up and Windows (0: 1) times the duration of the plan.
	Time    time.Duration `json:"time_ns,omitempty"`
	Windows int           `json:"windows,omitempty"`
	Words   string        `json:"words,omitempty"` // how it reads; "": workload, operation and size
	Needs   Needs         `json:"needs,omitzero"`  // of the stacks, beside its operation
}

// String reads "latency send 64 B" or "hol write 1048576 B same-qp".
func (p Point) String() string {
	s := cmp.Or(p.Words, fmt.Sprintf("%s %s %d B", p.Workload, p.Op, p.Size))
	for _, more := range []struct {
		there bool
		text  string
		value any
	}{
		{p.Outstanding != 0, ", %v outstanding", p.Outstanding},
		{p.Rate != 0, " at %v/s", p.Rate},
		{p.Depth != 0, " at depth %v", p.Depth},
		{p.Neighbours != 0, " with %v busy neighbours", p.Neighbours},
		{p.AppWork != 0, " with %v of application work", p.AppWork},
		{p.Bidirectional, " both %v", "ways"},
		{p.QPs != 0 && p.Call != "", " on %v connections", p.QPs},
		{p.QPs != 0 && p.Call == "", " on %v QPs", p.QPs},
	} {
		if more.there {
			s += fmt.Sprintf(more.text, more.value)
		}
	}
	return s
}

// Defaults and limits of a plan. The limits keep a hostile plan from costing a server more than it allows.
const (
	DefaultDepth     = 128 // perftest's -t for bandwidth
	DefaultRecvDepth = 512 // perftest's -r
	DefaultTimeout   = 5 * time.Second
	minRate          = 0.1 // operations a second: a pause of 10 s
	MaxRate          = 1e8
	MaxRounds        = 1000
	maxPoints        = 4096
	maxRun           = 64 // bytes
	maxQPs           = 4096
	MaxThreads       = 256
	MaxDepth         = 1 << 16
	maxDuration      = 24 * time.Hour
	maxAppWork       = time.Second
	maxWindows       = 16
	MaxSize          = 1 << 31 // a message length is 32 bits on every wire
)

// WithDefaults fills in what was left to the engine.
func (p Plan) WithDefaults() Plan {
	p.QPs, p.Threads = max(p.QPs, 1), max(p.Threads, 1)
	p.Polling, p.Arrivals = cmp.Or(p.Polling, PollingBusy), cmp.Or(p.Arrivals, ArrivalsConstant)
	p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
	return p
}

// Validate checks what can be checked without a device. The usage error names the first wrong flag of run.
func (p *Plan) Validate() error {
	depth, qps := p.StreamDepth(), p.mostQPs()
	upTo := func(most int) string { return fmt.Sprintf("want 1 to %d", most) }
	for _, c := range []struct {
		wrong bool
		what  string
		value any
		why   string
	}{
		{len(p.Points) == 0, "points", 0, "nothing to measure"},
		{len(p.Run) > maxRun, "run", p.Run[:min(len(p.Run), maxRun)], "a shorter name"},
		{len(p.Points) > maxPoints, "points", len(p.Points), fmt.Sprintf("at most %d", maxPoints)},
		{p.Iterations < 0 || p.Iterations > 1<<40, "--iters", p.Iterations, "want 1 to 2^40"},
		{p.Duration < 0 || p.Duration > maxDuration, "--duration", p.Duration, "want more than 0 and at most 24h"},
		{(p.Iterations == 0) == (p.Duration == 0), "--iters", p.Iterations, "give either iterations or a duration"},
		{p.Rounds < 0 || p.Rounds > MaxRounds || p.Between < 0 || p.Between > maxDuration, "--rounds", p.Rounds,
			upTo(MaxRounds)},
		{p.WarmupIterations < 0 || p.WarmupDuration < 0 || p.WarmupDuration > maxDuration, "--warmup", p.WarmupDuration,
			"want 0 to 24h"},
		{p.Depth < 0 || p.Depth > MaxDepth, "--tx-depth", p.Depth, upTo(MaxDepth)},
		{p.RecvDepth < 0 || p.RecvDepth > MaxDepth, "--rx-depth", p.RecvDepth, upTo(MaxDepth)},
		{p.QPs < 0 || p.QPs > maxQPs, "--qp", p.QPs, upTo(maxQPs)},
		{p.Threads < 0 || p.Threads > MaxThreads, "--threads", p.Threads, upTo(MaxThreads)},
		{p.Threads > qps, "--threads", p.Threads, "a thread needs a QP of its own"},
		{!slices.Contains([]string{"", PollingBusy, PollingEvent, PollingAdaptive}, p.Polling), "--polling", p.Polling,
			"want busy, adaptive or event"},
		{p.Polling == PollingEvent && qps > MaxThreads, "--qp", qps, fmt.Sprintf("with event polling at most %d",
			MaxThreads)},
		{!slices.Contains([]string{"", LoopPlain, LoopProvider}, p.Loop), "--loop", p.Loop, "want plain or provider"},
		{p.Loop == LoopProvider && p.Polling == PollingEvent, "--loop", p.Loop,
			"it polls: want busy polling, or the plain loop"},
		{p.Nice < NiceNone || p.Nice > MostNice, "--nice", p.Nice, fmt.Sprintf("want 0 to %d", MostNice)},
		{p.Nice > 0 && slices.ContainsFunc(p.Points, func(pt Point) bool { return pt.Call != "" }), "--nice", p.Nice,
			"calls run on threads of the Go runtime, which have the process's; see nice(1)"},
		{p.Inline < 0 || p.Inline > MaxSize, "--inline_size", p.Inline, "want 0 or more bytes"},
		{p.PostList < 0, "--post_list", p.PostList, "want 1 or more"},
		{p.Moderation < 0, "--cq-mod", p.Moderation, "want 1 or more"},
		{p.Moderation > 1 && p.Moderation > depth, "--cq-mod", p.Moderation,
			fmt.Sprintf("above the depth of %d nothing would ever complete", depth)},
		{p.Timeout < 0 || p.Timeout > maxDuration, "--timeout", p.Timeout, "want more than 0 and at most 24h"},
		{!slices.Contains([]string{"", ArrivalsConstant, ArrivalsPoisson}, p.Arrivals), "--arrivals", p.Arrivals,
			"want constant or poisson"},
		{p.Interval < 0 || p.Interval > 0 && p.Duration == 0, "--interval", p.Interval,
			"it divides a window that has a duration"},
		{p.Interval > 0 && (p.Interval < time.Millisecond || p.Interval > p.Duration ||
			p.Duration/p.Interval >= MaxIntervals), "--interval", p.Interval,
			fmt.Sprintf("want 1ms or more, at most the duration, and fewer than %d in it", MaxIntervals)},
	} {
		if c.wrong {
			return &reports.ExitError{Code: reports.ExitUsage, Operation: "check plan",
				Err: fmt.Errorf("%s %v: %s", c.what, c.value, c.why), Hint: "rdmaperf run --help all"}
		}
	}
	for _, pt := range p.Points {
		err := pt.Validate()
		if _, ok := p.Workloads[pt.Workload]; !ok {
			err = fmt.Errorf("unknown workload, want one of %v", p.Workloads.Names())
		}
		if err != nil {
			return pt.Wrong(err)
		}
	}
	return nil
}

// Wrong is the usage error of a point of a plan.
func (p Point) Wrong(err error) error {
	return &reports.ExitError{Code: reports.ExitUsage, Operation: "check plan",
		Err: fmt.Errorf("point %q: %w", short(p.String()), err), Hint: "rdmaperf run --help all"}
}

func (p *Plan) mostQPs() int {
	most := 1
	for _, pt := range p.Points {
		most = max(most, p.Qps(pt))
	}
	return most
}

// Qps is the number of QPs of a point.
func (p *Plan) Qps(pt Point) int {
	if pt.QPs > 0 {
		return pt.QPs
	}
	return max(p.QPs, 1)
}

// threads is the number of workers of so many QPs. In event mode one goroutine cannot sleep on two sessions.
func (p *Plan) threads(qps int) int {
	if p.Polling == PollingEvent {
		return qps
	}
	return min(max(p.Threads, 1), qps)
}

func (p *Plan) StreamDepth() int { return cmp.Or(p.Depth, DefaultDepth) }

// Validate checks what all workloads ask of a point, without a device.
func (p Point) Validate() error {
	k, ok := transports.ParseKind(p.Op)
	switch {
	case p.Rate != 0 && !(p.Rate >= minRate && p.Rate <= MaxRate): // not a number, too
		return fmt.Errorf("rate %v: want %v to %v a second", p.Rate, minRate, MaxRate)
	case p.QPs < 0 || p.QPs > maxQPs:
		return fmt.Errorf("%d QPs: want 1 to %d", p.QPs, maxQPs)
	case p.Depth < 0 || p.Depth > MaxDepth:
		return fmt.Errorf("a depth of %d: want 1 to %d", p.Depth, MaxDepth)
	case p.Outstanding < 0 || p.Outstanding > MaxDepth:
		return fmt.Errorf("%d calls outstanding: want 1 to %d", p.Outstanding, MaxDepth)
	case p.AppWork < 0 || p.AppWork > maxAppWork:
		return fmt.Errorf("application work of %v: want 0 to %v", p.AppWork, maxAppWork)
	case p.Time < 0 || p.Time > maxDuration || p.Windows < 0 || p.Windows > maxWindows:
		return fmt.Errorf("%v in %d windows: want at most %v and %d", p.Time, p.Windows, maxDuration, maxWindows)
	case !ok:
		return nil
	case p.Size < 1 || p.Size > MaxSize:
		return fmt.Errorf("sizes are 1 byte to 2 GiB")
	case IsAtomic(k) && p.Size != AtomicSize:
		return fmt.Errorf("atomics are %d bytes", AtomicSize)
	case p.AppWork > 0 && !TakesReceives(k):
		return fmt.Errorf("application work is for messages that the server receives: send, send_imm and write_imm, " +
			"in latency and throughput")
	case p.Bidirectional && (IsAtomic(k) || k == transports.KindSendImm):
		return fmt.Errorf("atomics and send_imm go one way: of both ways are send, write, write_imm and read")
	case (k == transports.KindCall) != (p.Call != ""):
		return fmt.Errorf("the kind of call is %q", p.Call)
	}
	return nil
}

// AtomicSize is the length of every atomic (IBTA 9.4.5).
const AtomicSize = 8

// ImmAloneSize is the size of a point of send_imm where nothing but the immediate travels (RFC 7306 §6.2).
const ImmAloneSize = 8

func IsAtomic(k transports.Kind) bool {
	return k == transports.KindFetchAdd || k == transports.KindCmpSwap
}
