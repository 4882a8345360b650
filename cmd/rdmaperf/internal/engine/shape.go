package engine

import (
	"fmt"
	"time"

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
	// LatencySlots is how many window slots a ping-pong of up to MediumMessage bytes takes in turn, a power of two.
	// Messages above it have four, and above LargeMessage two, so that 1 GiB fits the window limit.
	LatencySlots  = 32
	MediumMessage = 4 << 10 // from here on a copy takes longer than a step in Go
	LargeMessage  = 16 << 20
	// LatencyShifts is how many source offsets it cycles through, so that stale bytes differ at every position.
	LatencyShifts = LatencySlots / 2 // at least as many as one batch prepares
	ShiftStep     = 64               // a cache line
	SlotAlign     = 64
	// CtlSlots is the number of buffers for credits, of CtlSize bytes each. A target has at most four credits under
	// way.
	CtlSlots   = 16
	CtlSize    = 64
	SlotBudget = 16 << 20 // bounds the bytes of one stream's slots: larger than any L2 cache, small enough for many QPs
	// BareBudget is that of a stream that nobody compares: from 64 KiB on one buffer for each QP, as other tools have.
	BareBudget      = 64 << 10
	BatchMax        = 256     // bounds one Post, so that the ring of operations stays in the L1 cache
	ModerationLimit = 8 << 10 // above it every operation is signalled, as perftest does
)

// Setup is what both sides of a point know before they open anything.
type Setup struct {
	Plan  *Plan // with defaults filled in
	Point Point
	Caps  Abilities
}

// Shape is a point of sessions or calls with everything that both sides must agree on. Each side makes it of the setup
// by [Setup.NewShape] and its workload.
type Shape struct {
	Point
	QPs        int
	Threads    int
	Depth      int
	RecvDepth  int
	ReadDepth  int
	Moderation int
	PostList   int
	Inline     int
	Slots      int
	Polling    string
	Loop       string // of a ping-pong, on both sides
	Arrivals   string // of an open loop
	Nice       int    // of the workers' threads; 0: left
	Arrival    string
	Target     string // what the server's thread does; "": as the operation and its arrival say
	Verify     bool
	VerifyAll  bool // every message whole, not a sample
	Seed       uint64
	Timeout    time.Duration

	Idle bool // the server's thread sleeps, because its device needs no polls; in a stream of writes until the barrier

	ImmAlone bool // a send_imm carries its immediate and no bytes
	Counted  bool // operations are counted, and not timed one by one
	Numbers  bool // messages carry their numbers, where they are verified
	// ClientNaps, ServerNaps: with adaptive polling, a side over a device that needs no polls sleeps now and then.
	ClientNaps, ServerNaps bool
	Layout                 Layout            // of a window
	Config                 transports.Config // of a session; zero: [Shape.SessionConfig]
	Private                any               // what this side's workload keeps with the shape, of its own type
}

// NewShape begins the shape of a point that both transports can carry: one slot, and one operation under way.
func (s *Setup) NewShape() (*Shape, error) {
	p, pt := s.Plan, s.Point
	if _, ok := transports.ParseKind(pt.Op); !ok {
		return nil, Refused(fmt.Errorf("unknown operation %q, want one of %s", pt.Op, kindNames(^transports.KindSet(0))))
	}
	if err := checkPoint(p, pt, s.Caps.Both); err != nil {
		return nil, err
	}
	sh := &Shape{Point: pt, QPs: p.Qps(pt), Threads: p.threads(p.Qps(pt)), Depth: 1, RecvDepth: 1, Moderation: 1,
		Slots: 1, Inline: p.Inline, Polling: p.Polling, PostList: p.PostList, Arrivals: p.Arrivals, Verify: p.Verify,
		VerifyAll: p.Verify && p.VerifyAll, Seed: p.Seed, Timeout: p.Timeout}
	sh.ImmAlone = sh.Kind() == transports.KindSendImm && s.Caps.Both.ImmAlone
	return sh, nil
}

// NewSetup is that of a point of a plan with defaults.
func NewSetup(p *Plan, pt Point, client, server transports.Caps) *Setup {
	return &Setup{p, pt, able(client, server)}
}

// Shape is the shape that a workload makes, with what follows from it.
func (s *Setup) Shape(of func(*Setup) (*Shape, error)) (*Shape, error) {
	sh, err := of(s)
	if err == nil {
		s.finish(sh)
	}
	return sh, err
}

// finish fills in what follows from what the workload has chosen.
func (s *Setup) finish(sh *Shape) {
	ab := s.Caps
	adapts := sh.Polling == PollingAdaptive
	sh.ClientNaps, sh.ServerNaps = sh.ClientNaps && adapts && ab.Client.Unaided, sh.ServerNaps && adapts &&
		ab.Server.Unaided
	if adapts && !sh.ClientNaps && !sh.ServerNaps {
		sh.Polling = PollingBusy // nothing to adapt, and the result is to say so
	}
	sh.Nice = sh.niceOf(s.Plan, ab.Client, ab.Server)
	if sh.Config.SendDepth == 0 {
		sh.Config = sh.SessionConfig()
	}
}

// Arrives says how data arrives that no loop watches for in memory: with a message, or with the completion of what
// asked for it.
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

// String is the point in words.
func (sh *Shape) String() string { return sh.Point.String() }

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

// OneSided reports operations whose answer comes without the target's thread.
func OneSided(k transports.Kind) bool { return k == transports.KindRead || IsAtomic(k) }

// ServerSleeps reports that the server's thread sleeps on its completion queue until the barrier arrives.
func (sh *Shape) ServerSleeps() bool { return sh.Idle && !OneSided(sh.Kind()) }

func (sh *Shape) target() string {
	switch {
	case sh.Idle:
		return TargetPassive
	case sh.Target != "":
		return sh.Target
	case !OneSided(sh.Kind()):
		return TargetActive
	case sh.Polling == PollingEvent:
		return TargetPassive
	default:
		return TargetPolling
	}
}

// Window layout, the same on both sides: sources, then destinations, then the buffers for credits.
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

// StreamLayout has a source for each slot.
func (sh *Shape) StreamLayout() Layout { return sh.Behind(sh.Slots * sh.Stride()) }

// Behind is a layout whose slots, and buffers for credits, are behind so many bytes of sources.
func (sh *Shape) Behind(sources int) Layout {
	end := sources + sh.Slots*sh.Stride()
	return Layout{sources, end, end + 2*CtlSlots*CtlSize}
}

func (sh *Shape) RxOff() int { return sh.Layout.RxOff }

func (sh *Shape) RxSlot(i int) int { return sh.RxOff() + i*sh.Stride() }
func (sh *Shape) CtlTx(i int) int  { return sh.RxSlot(sh.Slots) + i*CtlSize }
func (sh *Shape) CtlRx(i int) int  { return sh.CtlTx(CtlSlots) + i*CtlSize }

func (sh *Shape) Window() int { return sh.Layout.Window }

// TotalWindow is the memory of one side's windows, in bytes.
func (sh *Shape) TotalWindow() int64 { return int64(sh.Window()) * int64(sh.QPs) }

// Numbered reports streams whose messages carry numbers.
func (sh *Shape) Numbered() bool { return sh.Verify && sh.Numbers && !sh.ImmAlone }

// SessionConfig is how sessions are set up, on both sides alike, unless the workload has a Config of its own.
func (sh *Shape) SessionConfig() transports.Config {
	return transports.Config{Window: sh.Window(), SendDepth: sh.Depth + CtlSlots, ReadDepth: sh.ReadDepth,
		RecvDepth: max(sh.RecvDepth, CtlSlots), MaxInline: sh.Inline,
		Events: sh.Polling == PollingEvent || sh.ServerSleeps()}
}

// Flags of a data operation.
func (sh *Shape) Flags() transports.OpFlags {
	if sh.Size <= sh.Inline && !OneSided(sh.Kind()) {
		return transports.Inline
	}
	return 0
}
