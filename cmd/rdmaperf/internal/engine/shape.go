package engine

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
	// LatencySlots is how many window slots a ping-pong of small messages cycles
	// through, a power of two: twice as many as are sent before what was sent and
	// answered is looked at, up to MediumMessage. From there on, where one is sent, it is
	// four, so that a slot is never written again before its last use completed. Messages
	// above LargeMessage, whose completions are long done by then, make do with two, so
	// that a message of 1 GiB fits the default window limit. The first round trip after a way
	// through Go takes 1.1 of the time of those from the third on, where code is translated:
	// 64 bytes over kernel siw had a p50 of 0.991 (send) and 0.986 (write) with 16 steps in a
	// call instead of eight, in turns of 2048 round trips in one process, and no less with 32
	// (medians of 8 processes each). That the queues have more entries then did not show.
	LatencySlots  = 32
	MediumMessage = 4 << 10 // arbitrary: there a step in C or Go is nothing to the copy
	LargeMessage  = 16 << 20
	// LatencyShifts is how many source offsets it cycles through, so that stale
	// bytes of an earlier message differ at every position.
	LatencyShifts = LatencySlots / 2 // at least as many as one batch prepares
	ShiftStep     = 64               // a cache line
	SlotAlign     = 64

	// CtlSlots is the number of small buffers for credits, each CtlSize bytes. A
	// target has at most four credits under way (two halves of the receives, the
	// answer to a barrier, and one more that was being collected).
	CtlSlots = 16
	CtlSize  = 64

	// SlotBudget bounds the bytes of one stream's slots. Operations beyond it
	// share slots, which carry the same bytes. 16 MiB, arbitrary: larger than any
	// L2, small enough that many QPs fit.
	SlotBudget = 16 << 20
	// BareBudget is that of a stream that nobody compares. Other tools, which compare
	// nothing, have one buffer for each QP, and so has such a stream from 64 KiB on: with
	// sixteen of them, reads over siw in the lab had 0.90 of perftest's rate, with one 1.06
	// (medians of eight pairs).
	BareBudget = 64 << 10

	// BatchMax bounds one Post. Arbitrary; the gain from larger ones is lost in
	// the noise, and the rings stay in the L1 cache.
	BatchMax = 256

	// ModerationLimit: above it every operation is signalled, as perftest does.
	ModerationLimit = 8 << 10
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
	PostList   int           `json:"post_list,omitempty"`
	Inline     int           `json:"inline"`
	Slots      int           `json:"slots"`
	Polling    string        `json:"polling"`
	Loop       string        `json:"loop,omitempty"`     // of a ping-pong, on both sides
	Arrivals   string        `json:"arrivals,omitempty"` // of an open loop
	Nice       int           `json:"nice,omitempty"`     // of the workers' threads; 0: left
	Arrival    string        `json:"arrival"`
	Verify     bool          `json:"verify"`
	VerifyAll  bool          `json:"verify_all,omitempty"` // every message whole, not a sample
	Seed       uint64        `json:"seed"`
	Timeout    time.Duration `json:"timeout_ns"`

	// Idle: the server's thread sleeps, because its device needs no polls to serve
	// reads, atomics and writes; in a stream of writes until the barrier wakes it.
	Idle bool `json:"idle,omitempty"`

	// ImmAlone: a send_imm carries its immediate and no bytes.
	ImmAlone bool `json:"imm_alone,omitempty"`

	// Private is what this side's row keeps with the shape, of its own type.
	Private any `json:"-"`

	Row  *Workload `json:"-"` // of Workload; each side has its own table
	laid Layout    // once asked for
}

// NewShape makes the shape of one point that both transports can carry.
func NewShape(p *Plan, pt Point, client, server transports.Caps) (*Shape, error) {
	ab := Abilities{client, server, common(client, server)}
	sh := &Shape{Point: pt, QPs: p.Qps(pt), Threads: p.threads(p.Qps(pt)), Inline: p.Inline,
		Polling: p.Polling, PostList: p.PostList, Arrivals: p.Arrivals, Verify: p.Verify, VerifyAll: p.Verify && p.VerifyAll, Seed: p.Seed, Timeout: p.Timeout,
		Row: p.Workloads.Of(pt)}
	if err := checkPoint(p, pt, ab.Both); err != nil {
		return nil, err
	}
	sh.ImmAlone = sh.Kind() == transports.KindSendImm && ab.Both.ImmAlone
	sh.work().Shape(sh, p, ab)
	if sh.Polling == PollingAdaptive && !(client.Unaided && sh.Sleeps(SideClient)) && !(server.Unaided && sh.Sleeps(SideServer)) {
		sh.Polling = PollingBusy // nothing to adapt, and the result is to say so
	}
	sh.Nice = sh.niceOf(p, client, server)
	return sh, sh.Validate()
}

// Arrives says how data arrives that no loop watches for in memory: with a message, or
// with the completion of what asked for it. A device that needs no polls serves the
// latter while the server's thread sleeps.
func (sh *Shape) Arrives(ab Abilities) {
	sh.Arrival = ArrivalMessage // of a write: of the barrier behind the last one
	if !OneSided(sh.Kind()) {
		return
	}
	sh.Arrival = ArrivalCompletion
	sh.Idle = ab.Server.Unaided
	sh.ReadDepth = sh.Depth
	if ab.Both.MaxReadDepth > 0 {
		sh.ReadDepth = min(sh.Depth, ab.Both.MaxReadDepth)
	}
}

// MaxUserDepth is the deepest queue a plan can ask for, 0 for no limit.
func MaxUserDepth(c transports.Caps) int {
	if c.MaxDepth == 0 {
		return 0
	}
	return max(1, c.MaxDepth-CtlSlots)
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
	c.PingPong = a.PingPong && b.PingPong
	c.LastByteLast = a.LastByteLast && b.LastByteLast
	c.Events = a.Events && b.Events
	c.ImmAlone = a.ImmAlone || b.ImmAlone
	c.LocalComplete = a.LocalComplete || b.LocalComplete
	c.MaxMsg = min(a.MaxMsg, b.MaxMsg)
	c.MaxInline = min(a.MaxInline, b.MaxInline)
	c.MaxDepth = least(a.MaxDepth, b.MaxDepth)
	c.MaxReadDepth = least(a.MaxReadDepth, b.MaxReadDepth)
	return c
}

// Admit finds the workload of a shape that came over the wire, and checks the shape.
func (sh *Shape) Admit(t Table) error {
	if sh.Row = t.Of(sh.Point); sh.Row == nil || sh.Row.Runner != nil {
		return PeerError("check point", fmt.Errorf("the workload %q is not known here", sh.Workload), "the same rdmaperf version on both sides")
	}
	return sh.Validate()
}

// Validate checks a shape that came over the wire, so that layout arithmetic
// cannot overflow and no queue is absurd.
func (sh *Shape) Validate() error {
	bad := func(what string, v any) error {
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check point", Err: fmt.Errorf("%s %v is out of range", what, v)}
	}
	if err := sh.Point.Validate(sh.Row); err != nil {
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check point", Err: err}
	}
	switch {
	case (sh.Kind() >= transports.KindCall) != (sh.Calls() != nil):
		return bad("operation", sh.Op)
	case sh.ImmAlone && (sh.Kind() != transports.KindSendImm || sh.Size != ImmAloneSize):
		return bad("size", sh.Size)
	case sh.QPs < 1 || sh.QPs > maxQPs:
		return bad("qps", sh.QPs)
	case sh.Threads < 1 || sh.Threads > min(MaxThreads, sh.QPs):
		return bad("threads", sh.Threads)
	case sh.Depth < 1 || sh.Depth > MaxDepth:
		return bad("depth", sh.Depth)
	case sh.RecvDepth < 1 || sh.RecvDepth > MaxDepth:
		return bad("receive depth", sh.RecvDepth)
	case sh.ReadDepth < 0 || sh.ReadDepth > MaxDepth:
		return bad("read depth", sh.ReadDepth)
	case sh.Moderation < 1 || sh.Moderation > sh.Depth:
		return bad("completion moderation", sh.Moderation)
	case sh.PostList < 0:
		return bad("post list", sh.PostList)
	case sh.Slots < 1 || sh.Slots > MaxDepth || sh.Slots > 1 && sh.Slots*sh.Stride() > max(SlotBudget, LatencySlots*sh.Stride()):
		return bad("slots", sh.Slots)
	case sh.Numbered() && (sh.Moderation > sh.Slots || TakesReceives(sh.Kind()) && sh.RecvDepth > sh.Slots):
		return bad("slots", sh.Slots)
	case sh.Inline < 0 || sh.Inline > MaxSize:
		return bad("inline", sh.Inline)
	case sh.Polling != PollingBusy && sh.Polling != PollingEvent && !(sh.Polling == PollingAdaptive && sh.Sleeps(SideClient)):
		return bad("polling", sh.Polling)
	case sh.Loop != "" && sh.Loop != LoopPlain && (sh.Loop != LoopProvider || sh.Polling == PollingEvent):
		return bad("loop", sh.Loop)
	case sh.Polling == PollingEvent && sh.Threads != sh.QPs:
		return bad("threads", sh.Threads)
	case sh.Nice < 0 || sh.Nice > MostNice:
		return bad("nice value", sh.Nice)
	case sh.Arrival != ArrivalMessage && sh.Arrival != ArrivalMemory && sh.Arrival != ArrivalNotify && sh.Arrival != ArrivalCompletion:
		return bad("arrival", sh.Arrival)
	case sh.ServerSleeps() && (sh.Kind() != transports.KindWrite || !sh.work().Idles || sh.Bidirectional):
		return bad("idle", sh.Idle)
	case sh.Timeout <= 0 || sh.Timeout > maxDuration:
		return bad("timeout", sh.Timeout)
	}
	if check := sh.work().Check; check != nil {
		if err := check(sh); err != nil {
			return &reports.ExitError{Code: reports.ExitUsage, Operation: "check point", Err: err}
		}
	}
	return nil
}

// String is the point in words.
func (sh *Shape) String() string { return sh.describe(sh.Row) }

// Kind is the operation; it was parsed before.
func (sh *Shape) Kind() transports.Kind {
	k, _ := transports.ParseKind(sh.Op)
	return k
}

// Payload is how many bytes of memory an operation moves.
func (sh *Shape) Payload() int {
	if sh.ImmAlone {
		return 0
	}
	return sh.Size
}

// OneSided tells operations whose answer comes without the target's thread.
func OneSided(k transports.Kind) bool { return k == transports.KindRead || IsAtomic(k) }

// ServerSleeps tells that the server's thread sleeps on its completion queue until the
// barrier arrives.
func (sh *Shape) ServerSleeps() bool { return sh.Idle && !OneSided(sh.Kind()) }

// Sleeps tells whether a side over a device that needs no polls sleeps now and then while it
// polls, on request.
func (sh *Shape) Sleeps(side string) bool {
	sleep := sh.work().Sleeps
	return sleep != nil && sh.Polling == PollingAdaptive && sleep(sh, side)
}

// target says what the server's thread does.
func (sh *Shape) target() string {
	switch {
	case sh.Idle:
		return TargetPassive
	case sh.work().OnlyPolled:
		return TargetPolling
	case !OneSided(sh.Kind()):
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
//	0        RxOff              CtlTx      CtlRx
//	| source | slot 0 | slot 1 … | out 0 …  | in 0 … |

func (sh *Shape) Stride() int { return (sh.Size + SlotAlign - 1) &^ (SlotAlign - 1) }

// Layout are offsets into a window.
type Layout struct {
	RxOff   int // where the destinations begin
	DataEnd int // and end: what is cleared before a phase
	Window  int // bytes of all
}

// place is the layout.
func (sh *Shape) place() *Layout {
	if sh.laid.Window == 0 {
		sh.laid = sh.work().Layout(sh)
	}
	return &sh.laid
}

// StreamLayout has a source for each slot.
func (sh *Shape) StreamLayout() Layout { return sh.Behind(sh.Slots * sh.Stride()) }

// Behind is a layout whose slots, and buffers for credits, are behind so many bytes of sources.
func (sh *Shape) Behind(sources int) Layout {
	end := sources + sh.Slots*sh.Stride()
	return Layout{sources, end, end + 2*CtlSlots*CtlSize}
}

func (sh *Shape) RxOff() int { return sh.place().RxOff }

func (sh *Shape) RxSlot(i int) int { return sh.RxOff() + i*sh.Stride() }
func (sh *Shape) CtlTx(i int) int  { return sh.RxSlot(sh.Slots) + i*CtlSize }
func (sh *Shape) CtlRx(i int) int  { return sh.CtlTx(CtlSlots) + i*CtlSize }

// DataEnd is where the destinations end, and what is cleared before a phase.
func (sh *Shape) dataEnd() int { return sh.place().DataEnd }
func (sh *Shape) Window() int  { return sh.place().Window }

// TotalWindow is the memory of one side, in bytes.
func (sh *Shape) TotalWindow() int64 {
	return int64(sh.Window())*int64(sh.QPs) + int64(sh.stored())
}

// stored is what the server keeps beside windows, in bytes.
func (sh *Shape) stored() int {
	if stored := sh.work().Stored; stored != nil {
		return stored(sh)
	}
	return 0
}

// Config is how sessions are set up, on both sides alike.
func (sh *Shape) Config() transports.Config {
	c := transports.Config{
		Window:    sh.Window(),
		SendDepth: sh.Depth + CtlSlots,
		RecvDepth: max(sh.RecvDepth, CtlSlots),
		MaxInline: sh.Inline,
		ReadDepth: sh.ReadDepth,
		Events:    sh.Polling == PollingEvent || sh.ServerSleeps(),
	}
	if more := sh.work().Config; more != nil {
		more(sh, &c)
	}
	return c
}

// SideThreads is how many workers a side has.
func (sh *Shape) SideThreads(side string) int {
	if sh.work().OneTarget && side == SideServer {
		return 1
	}
	return sh.Threads
}

// streaming tells workloads whose operations are counted and not timed one by one.
func (sh *Shape) streaming() bool { return sh.work().Stream }

// Flags of a data operation.
func (sh *Shape) Flags() transports.OpFlags {
	if sh.Size <= sh.Inline && !OneSided(sh.Kind()) {
		return transports.Inline
	}
	return 0
}
