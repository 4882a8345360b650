package bench

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Arrival names: how a side learns that the peer's data is there.
const (
	ArrivalMessage    = "message"    // the receive completes
	ArrivalMemory     = "memory"     // the thread watches the last byte of its window slot
	ArrivalNotify     = "notify"     // an empty send behind the write
	ArrivalCompletion = "completion" // the initiator's own completion
)

// Target names: what the server's thread does for one-sided work.
const (
	TargetActive  = "active"  // takes part: echoes, watches, returns credits
	TargetPolling = "polling" // only polls, so that a soft transport makes progress
	TargetPassive = "passive" // sleeps
)

const (
	// latencySlots is how many window slots a ping-pong of small messages cycles
	// through, a power of two: twice as many as are sent before what was sent and
	// answered is looked at, up to mediumMessage. From there on, where one is sent, it is
	// four, so that a slot is never written again before its last use completed. Messages
	// above largeMessage, whose completions are long done by then, make do with two, so
	// that a message of 1 GiB fits the default window limit. The first trip after a way
	// through Go takes 1.1 of the time of those from the third on, where code is translated:
	// 64 bytes over kernel siw had a p50 of 0.991 (send) and 0.986 (write) with 16 steps in a
	// call instead of eight, in turns of 2048 trips in one process, and no less with 32
	// (medians of 8 processes each). That the queues have more entries then did not show.
	latencySlots  = 32
	mediumMessage = 4 << 10 // arbitrary: there a step in C or Go is nothing to the copy
	largeMessage  = 16 << 20
	// latencyShifts is how many source offsets it cycles through, so that stale
	// bytes of an earlier message differ at every position.
	latencyShifts = latencySlots / 2 // at least as many as one volley prepares
	shiftStep     = 64               // a cache line
	slotAlign     = 64

	// ctlSlots is the number of small buffers for credits, each ctlSize bytes. A
	// target has at most four credits under way (two halves of the receives, the
	// answer to a barrier, and one more that was being collected).
	ctlSlots = 16
	ctlSize  = 64

	// slotBudget bounds the bytes of one stream's slots. Operations beyond it
	// share slots, which carry the same bytes. 16 MiB, arbitrary: larger than any
	// L2, small enough that many QPs fit.
	slotBudget = 16 << 20
	// bareBudget is that of a stream that nobody compares. Other tools, which compare
	// nothing, have one buffer for each QP, and so has such a stream from 64 KiB on: with
	// sixteen of them, reads over siw in the lab had 0.90 of perftest's rate, with one 1.06
	// (medians of eight pairs).
	bareBudget = 64 << 10

	// batchMax bounds one Post. Arbitrary; the gain from larger ones is lost in
	// the noise, and the rings stay in the L1 cache.
	batchMax = 256

	// moderationLimit: above it every operation is signalled, as perftest does.
	moderationLimit = 8 << 10
)

// Shape is one point with everything that both sides must agree on. The client
// computes it from the plan and both sides' capabilities; the server checks it.
type Shape struct {
	Point
	QPs        int           `json:"qps"`
	Threads    int           `json:"threads"`
	Depth      int           `json:"depth"`
	RecvDepth  int           `json:"recv_depth"`
	ReadDepth  int           `json:"read_depth,omitempty"`
	Moderation int           `json:"moderation"`
	Inline     int           `json:"inline"`
	Slots      int           `json:"slots"`
	Polling    string        `json:"polling"`
	Nice       int           `json:"nice,omitempty"` // of the workers' threads; 0: left
	Arrival    string        `json:"arrival"`
	Verify     bool          `json:"verify"`
	Seed       uint64        `json:"seed"`
	Timeout    time.Duration `json:"timeout_ns"`

	// Idle: the server's thread sleeps, because its device needs no polls to serve
	// reads, atomics and writes; in a stream of writes until the barrier wakes it.
	Idle bool `json:"idle,omitempty"`

	// Head-of-line only. Depth and Slots are those of the bulk stream.
	ProbeSize     int   `json:"probe_size,omitempty"`
	ProbeSlots    int   `json:"probe_slots,omitempty"`
	ProbePriority uint8 `json:"probe_priority,omitempty"`

	// In the arm app-slicing: bytes of a slice, and slices outstanding.
	AppSlice  int `json:"app_slice_bytes,omitempty"`
	AppWindow int `json:"app_window,omitempty"`

	// Parameter server: levels of priority in use. The model is the client's.
	Levels int `json:"levels,omitempty"`
	model  *Model

	HighPriority uint8 `json:"high_priority,omitempty"` // starvation
}

// newShape makes the shape of one point that both transports can carry.
func newShape(p *Plan, pt Point, client, server transports.Caps) (*Shape, error) {
	caps := common(client, server)
	sh := &Shape{Point: pt, QPs: p.qps(pt), Threads: p.threads(p.qps(pt)), Inline: p.Inline,
		Polling: p.Polling, Verify: p.Verify, Seed: p.Seed, Timeout: p.Timeout}
	if err := checkPoint(p, pt, caps); err != nil {
		return nil, err
	}
	findWorkload(pt.Workload).shape(sh, p, caps)
	switch k := sh.kind(); {
	case pt.Workload == WorkloadParamServer || pt.Workload == WorkloadStarvation: // completions of reads behind the data
	case k == transports.KindWrite && pt.Workload != WorkloadLatency:
		sh.Arrival = ArrivalMessage // of the barrier behind the last write
		sh.Idle = server.Unaided && caps.Events && !pt.Bidirectional && pt.Workload == WorkloadThroughput
	case k == transports.KindWrite && caps.LastByteLast && sh.Polling != PollingEvent:
		sh.Arrival = ArrivalMemory
	case k == transports.KindWrite:
		sh.Arrival = ArrivalNotify // nothing to sleep on in memory, or no order in it
	case oneSided(k):
		sh.Arrival = ArrivalCompletion
		sh.Idle = server.Unaided && !pt.Bidirectional
		sh.ReadDepth = sh.Depth
		if caps.MaxReadDepth > 0 {
			sh.ReadDepth = min(sh.Depth, caps.MaxReadDepth)
		}
	default:
		sh.Arrival = ArrivalMessage
	}
	if sh.Polling == PollingAdaptive && !(client.Unaided && sh.lulls(sideClient)) && !(server.Unaided && sh.lulls(sideServer)) {
		sh.Polling = PollingBusy // nothing to adapt, and the result is to say so
	}
	sh.Nice = sh.niceOf(p, client, server)
	return sh, sh.validate()
}

// latencyShape is that of a ping-pong: one operation under way.
func (sh *Shape) latencyShape(*Plan, transports.Caps) {
	sh.Depth, sh.Moderation, sh.Slots = 1, 1, latencySlotsFor(sh.Size)
	sh.RecvDepth = sh.Slots
}

func (sh *Shape) checkLatency() error {
	if sh.Slots != latencySlotsFor(sh.Size) || sh.RecvDepth != sh.Slots {
		return fmt.Errorf("slots %d is out of range", sh.Slots)
	}
	return nil
}

func latencySlotsFor(size int) int {
	switch {
	case size > largeMessage:
		return 2
	case size > mediumMessage:
		return 4
	}
	return latencySlots
}

// volleySteps is how many steps of a ping-pong one call takes at most.
func (sh *Shape) volleySteps() int {
	if sh.Size > mediumMessage {
		return 1
	}
	return latencySlotsFor(sh.Size) / 2
}

// shift is from one source offset to the next. Messages that are prepared together
// have bytes of their own.
func (sh *Shape) shift() int {
	if sh.volleySteps() > 1 {
		return sh.stride()
	}
	return shiftStep
}

// streamDepths chooses what a stream needs. Defaults give way to the device's
// limit; figures that the user gave were checked against it.
func (sh *Shape) streamDepths(p *Plan, caps transports.Caps) {
	sh.Depth = p.depth()
	if sh.RecvDepth = p.RecvDepth; sh.RecvDepth == 0 {
		sh.RecvDepth = max(DefaultRecvDepth, 2*sh.Depth)
	}
	if limit := maxUserDepth(caps); limit > 0 {
		sh.Depth = min(sh.Depth, limit)
		sh.RecvDepth = min(sh.RecvDepth, limit)
	}
	switch sh.Moderation = p.Moderation; {
	case sh.Moderation > 0:
	case sh.Size > moderationLimit:
		sh.Moderation = 1
	default:
		sh.Moderation = max(1, sh.Depth/8) // eight completions in flight keep the pipe full
	}
	sh.Moderation = min(sh.Moderation, sh.Depth)
	budget := slotBudget
	if !p.Verify {
		budget = bareBudget
	}
	sh.Slots = max(1, min(sh.Depth, budget/sh.stride()))
	if sh.Slots >= sh.Moderation {
		sh.Slots -= sh.Slots % sh.Moderation
	} else {
		// The ring of prepared operations repeats after a multiple of both.
		for sh.Moderation%sh.Slots != 0 {
			sh.Slots--
		}
	}
}

// maxUserDepth is the deepest queue a plan can ask for, 0 for no limit.
func maxUserDepth(c transports.Caps) int {
	if c.MaxDepth == 0 {
		return 0
	}
	return max(1, c.MaxDepth-ctlSlots)
}

// common is what both sides can do.
func common(a, b transports.Caps) transports.Caps {
	least := func(x, y int) int {
		if x == 0 || y != 0 && y < x {
			return y
		}
		return x
	}
	c := a
	c.Kinds &= b.Kinds
	c.LastByteLast = a.LastByteLast && b.LastByteLast
	c.Events = a.Events && b.Events
	c.LocalComplete = a.LocalComplete || b.LocalComplete
	c.MaxMsg = min(a.MaxMsg, b.MaxMsg)
	c.MaxInline = min(a.MaxInline, b.MaxInline)
	c.MaxDepth = least(a.MaxDepth, b.MaxDepth)
	c.MaxReadDepth = least(a.MaxReadDepth, b.MaxReadDepth)
	return c
}

// validate checks a shape that came over the wire, so that layout arithmetic
// cannot overflow and no queue is absurd.
func (sh *Shape) validate() error {
	bad := func(what string, v any) error {
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check point", Err: fmt.Errorf("%s %v is out of range", what, v)}
	}
	if err := sh.Point.validate(); err != nil {
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check point", Err: err}
	}
	switch {
	case (sh.kind() >= transports.KindCall) != (sh.calls() != nil):
		return bad("operation", sh.Op)
	case sh.QPs < 1 || sh.QPs > maxQPs:
		return bad("qps", sh.QPs)
	case sh.Threads < 1 || sh.Threads > min(maxThreads, sh.QPs):
		return bad("threads", sh.Threads)
	case sh.Depth < 1 || sh.Depth > maxDepth:
		return bad("depth", sh.Depth)
	case sh.RecvDepth < 1 || sh.RecvDepth > maxDepth:
		return bad("receive depth", sh.RecvDepth)
	case sh.ReadDepth < 0 || sh.ReadDepth > maxDepth:
		return bad("read depth", sh.ReadDepth)
	case sh.Moderation < 1 || sh.Moderation > sh.Depth:
		return bad("completion moderation", sh.Moderation)
	case sh.Slots < 1 || sh.Slots > maxDepth || sh.Slots > 1 && sh.Slots*sh.stride() > max(slotBudget, latencySlots*sh.stride()):
		return bad("slots", sh.Slots)
	case sh.Slots%sh.Moderation != 0 && sh.Moderation%sh.Slots != 0:
		return bad("slots", sh.Slots)
	case sh.Inline < 0 || sh.Inline > maxSize:
		return bad("inline", sh.Inline)
	case sh.Polling != PollingBusy && sh.Polling != PollingEvent && !(sh.Polling == PollingAdaptive && sh.lulls(sideClient)):
		return bad("polling", sh.Polling)
	case sh.Polling == PollingEvent && sh.Threads != sh.QPs:
		return bad("threads", sh.Threads)
	case sh.Nice < 0 || sh.Nice > MostNice:
		return bad("nice value", sh.Nice)
	case sh.Arrival != ArrivalMessage && sh.Arrival != ArrivalMemory && sh.Arrival != ArrivalNotify && sh.Arrival != ArrivalCompletion:
		return bad("arrival", sh.Arrival)
	case sh.AppWindow < 0 || sh.AppWindow > maxDepth:
		return bad("application window", sh.AppWindow)
	case sh.dozes() && (sh.kind() != transports.KindWrite || sh.Workload != WorkloadThroughput || sh.Bidirectional):
		return bad("idle", sh.Idle)
	case sh.Timeout <= 0 || sh.Timeout > maxDuration:
		return bad("timeout", sh.Timeout)
	}
	if check := findWorkload(sh.Workload).check; check != nil {
		if err := check(sh); err != nil {
			return &reports.ExitError{Code: reports.ExitUsage, Operation: "check point", Err: err}
		}
	}
	return nil
}

// kind is the operation; it was parsed before.
func (sh *Shape) kind() transports.Kind {
	k, _ := transports.ParseKind(sh.Op)
	return k
}

// oneSided tells operations whose answer comes without the target's thread.
func oneSided(k transports.Kind) bool { return k == transports.KindRead || isAtomic(k) }

// dozes tells that the server's thread sleeps on its completion queue until the
// barrier arrives.
func (sh *Shape) dozes() bool { return sh.Idle && !oneSided(sh.kind()) }

// lulls tells whether a side over a device that needs no polls sleeps now and then while it
// polls, on request: the client of a stream, and a target that has receives for many more
// messages and so loses nothing where it is late.
func (sh *Shape) lulls(side string) bool {
	if sh.Polling != PollingAdaptive || sh.Workload != WorkloadThroughput || sh.Bidirectional {
		return false
	}
	return side == sideClient || !sh.Idle && sh.Arrival == ArrivalMessage && sh.RecvDepth >= DefaultRecvDepth
}

// target says what the server's thread does.
func (sh *Shape) target() string {
	switch {
	case sh.Idle:
		return TargetPassive
	case sh.Workload == WorkloadParamServer || sh.Workload == WorkloadStarvation:
		return TargetPolling
	case !oneSided(sh.kind()):
		return TargetActive
	case sh.Polling == PollingEvent:
		return TargetPassive
	default:
		return TargetPolling
	}
}

// Window layout, the same on both sides: sources, then destinations, then the
// buffers for credits.
//
//	0        rxOff              ctlTx      ctlRx
//	| source | slot 0 | slot 1 … | out 0 …  | in 0 … |

func (sh *Shape) stride() int { return (sh.Size + slotAlign - 1) &^ (slotAlign - 1) }

func (sh *Shape) rxOff() int {
	if sh.Workload == WorkloadLatency {
		return sh.stride() + (latencyShifts-1)*sh.shift()
	}
	if sh.Workload == WorkloadHOL {
		return sh.probeTx(sh.ProbeSlots)
	}
	return sh.Slots * sh.stride()
}

func (sh *Shape) rxSlot(i int) int { return sh.rxOff() + i*sh.stride() }
func (sh *Shape) ctlTx(i int) int  { return sh.rxSlot(sh.Slots) + i*ctlSize }
func (sh *Shape) ctlRx(i int) int  { return sh.ctlTx(ctlSlots) + i*ctlSize }

// dataEnd is where the destinations end, and what is cleared before a phase.
func (sh *Shape) dataEnd() int {
	if sh.Workload == WorkloadHOL {
		return sh.holRecv(sh.RecvDepth)
	}
	return sh.ctlTx(0)
}

func (sh *Shape) window() int {
	if sh.calls() != nil {
		return (sh.Size + sh.Response) * sh.Depth // what is under way
	}
	if sh.Workload == WorkloadHOL {
		return sh.dataEnd()
	}
	return sh.ctlRx(ctlSlots)
}

// totalWindow is the memory of one side, in bytes.
func (sh *Shape) totalWindow() int64 {
	return int64(sh.window())*int64(sh.QPs) + int64(sh.storeBytes())
}

// ring is the number of prepared operations after which they repeat.
func (sh *Shape) ring() int { return max(sh.Slots, sh.Moderation) }

// batch is the most operations of one Post.
func (sh *Shape) batch() int { return min(sh.Depth, batchMax) }

// config is how sessions are set up, on both sides alike.
func (sh *Shape) config() transports.Config {
	depth := max(sh.Depth, sh.AppWindow)
	if sh.Workload == WorkloadStarvation {
		depth *= 2 // for each of two classes
	}
	return transports.Config{
		Window:    sh.window(),
		SendDepth: depth + sh.ProbeSlots + ctlSlots,
		RecvDepth: sh.receives(),
		MaxInline: sh.Inline,
		ReadDepth: sh.ReadDepth,
		NoReads:   sh.writesOnly(),
		Events:    sh.Polling == PollingEvent || sh.dozes(),
	}
}

// writesOnly tells the points of one operation that is neither a read nor an atomic.
func (sh *Shape) writesOnly() bool {
	return (sh.Workload == WorkloadLatency || sh.Workload == WorkloadThroughput) && !oneSided(sh.kind())
}

// receives is the most that are posted at once.
func (sh *Shape) receives() int {
	if sh.Bidirectional {
		return sh.RecvDepth + slackReceives
	}
	return max(sh.RecvDepth, ctlSlots)
}

// flags of a data operation.
func (sh *Shape) flags() transports.OpFlags {
	if sh.Size <= sh.Inline && !oneSided(sh.kind()) {
		return transports.Inline
	}
	return 0
}

// creditEvery is after how many taken receives the target tells the client.
func (sh *Shape) creditEvery() int { return max(1, sh.RecvDepth/2) }
