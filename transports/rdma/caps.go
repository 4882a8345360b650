package rdma

import (
	"strings"
	"sync/atomic"
)

// OpSet is a set of send opcodes.
type OpSet uint16

// Ops builds a set.
func Ops(ops ...Opcode) OpSet {
	var s OpSet
	for _, o := range ops {
		s |= 1 << o
	}
	return s
}

// Has tells membership.
func (s OpSet) Has(o Opcode) bool { return o < numOpcodes && s&(1<<o) != 0 }

// Features are optional abilities. An undeclared one answers ErrNotSupported at once.
type Features uint32

const (
	// FeatSRQ: NewSRQ and QPConfig.SRQ.
	FeatSRQ Features = 1 << iota
	// FeatEvents: CQ.Arm and CQ.Wait.
	FeatEvents
	// FeatSolicited: solicited-only notification reaches the peer.
	FeatSolicited
	// FeatInline: the Inline flag, up to MaxInline bytes.
	FeatInline
	// FeatFence: the Fence flag orders after reads.
	FeatFence
	// FeatLastByteLast: the last byte of a write becomes visible after all the
	// others, so a target may watch it in memory.
	FeatLastByteLast
	// FeatRNRRetry: a send without a receive waits and retries (IBTA 9.7.5.2.8).
	FeatRNRRetry
	// FeatReadMultiSGE: a read may scatter into several SGEs.
	FeatReadMultiSGE
	// FeatSinkNeedsRemoteWrite: a read's sink must be registered RemoteWrite too
	// (some iWARP devices). A duty of the caller rather than an ability.
	FeatSinkNeedsRemoteWrite
	// FeatPassiveFirst: the accepting side may send before it received anything.
	// iWARP without the peer-to-peer model holds such sends back (RFC 5044 §7.1.2).
	FeatPassiveFirst
	// FeatSQD: QP.Drain and QP.Resume (the SQD state).
	FeatSQD
	// FeatAsyncEvents: Device.Events reports QP and SRQ events.
	FeatAsyncEvents
	// FeatEmptyRead: a read without elements is answered behind everything sent
	// before it, and may stand among other reads (RFC 5040 §4.4). It needs no key.
	FeatEmptyRead
	// FeatPingPong: QP.PingPong.
	FeatPingPong
	// FeatImmPayload: a send_imm may carry bytes. Without it send_imm is the immediate alone, and one with bytes is
	// refused (RFC 7306 §6: Immediate Data is a message of its own).
	FeatImmPayload
	// FeatKeepsKeys: a registration without remote rights may stay valid on this side when
	// it was closed, and cover bytes around it. A registration cache stands in between.
	FeatKeepsKeys
	numFeatures = iota
)

var featureNames = [numFeatures]string{"srq", "events", "solicited", "inline", "fence", "last_byte_last",
	"rnr_retry", "read_multi_sge", "sink_needs_remote_write", "passive_first", "sqd", "async_events", "empty_read",
	"ping_pong", "imm_payload", "keeps_keys"}

// Has reports whether all features of want are present.
func (f Features) Has(want Features) bool { return f&want == want }

// String lists the names, comma separated.
func (f Features) String() string {
	var names []string
	for i, n := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// Completion is what a successful send-side completion proves.
type Completion uint8

const (
	// CompletionAck: the peer's device acknowledged the message (InfiniBand, RoCE).
	CompletionAck Completion = iota
	// CompletionLocal: the message was handed to the transport below (RFC 5040 §5.5).
	CompletionLocal
)

// String is ack or local.
func (c Completion) String() string {
	if c == CompletionLocal {
		return "local"
	}
	return "ack"
}

// Label says what stands behind a device, for every result.
type Label string

const (
	LabelDevice Label = "device" // real hardware
	LabelSoft   Label = "soft"   // software on a real network path
	LabelModel  Label = "model"  // a simulation
	LabelMem    Label = "mem"    // in-process memory: never "a network"
)

// Caps are a device's abilities and limits, constant for its life.
type Caps struct {
	Label      Label
	Completion Completion
	Ops        OpSet
	Features   Features
	MaxQP      int    // most QPs, with those of other users; 0: no limit known
	MaxQPWR    int    // deepest send or receive queue, work requests
	MaxCQE     int    // deepest completion queue, entries
	MaxSGE     int    // most SGEs a send or receive, at most rdma.MaxSGE
	MaxReadSGE int    // most SGEs a read
	MaxInline  int    // bytes
	MaxRDAtom  int    // most IRD and ORD, outstanding reads and atomics a QP
	MaxSRQWR   int    // deepest shared receive queue
	MaxPrivate int    // private data a connect, accept or reject can carry, bytes
	MaxMsg     uint64 // longest message, bytes
	// Unaided: one-sided operations of the peer are no slower while nobody polls here.
	// Without it they are carried out all the same.
	Unaided bool
	// OnDemand: RegMR takes the right OnDemand.
	OnDemand bool
	// RawQP: the device is a RawQPs. Tiers over it are none.
	RawQP bool
	// OwnReads: the device posts reads of its own below, out of the connection's ORD, so
	// that a connection without reads is worse for more than reads.
	OwnReads bool
	// PingPongNS is what a PingPong itself adds to the round trip that it times, in ns,
	// measured without a device below. 0: not known.
	PingPongNS float64
	// PingPongClock names the clock of PingPong where it is not CLOCK_MONOTONIC.
	PingPongClock string
	// Clock is the device's own where it has one: what it does takes that time and not
	// the host's. nil: CLOCK_MONOTONIC.
	Clock *Clock
	// Priorities is how many values of SendWR.Priority the device tells apart: 0 to
	// Priorities-1, and refuses the others with ErrInvalid. 0: it ignores them.
	Priorities int
}

// Need is what a workload or a case asks of a device.
type Need struct {
	Ops      OpSet
	Features Features
	SGE      int
	Inline   int
	Msg      uint64

	Priorities int
	OnDemand   bool
}

// Missing lists every unmet need as a *MissingError (errors.Is ErrNotSupported), or nil.
func (c *Caps) Missing(n Need) error {
	var gaps []string
	for o := Opcode(0); o < numOpcodes; o++ {
		if n.Ops.Has(o) && !c.Ops.Has(o) {
			gaps = append(gaps, "operation "+o.String())
		}
	}
	if miss := n.Features &^ c.Features; miss != 0 {
		gaps = append(gaps, "feature "+miss.String())
	}
	if n.SGE > c.MaxSGE {
		gaps = append(gaps, "scatter/gather elements")
	}
	if n.Inline > c.MaxInline {
		gaps = append(gaps, "inline bytes")
	}
	if n.Msg > c.MaxMsg {
		gaps = append(gaps, "message length")
	}
	if n.Priorities > c.Priorities {
		gaps = append(gaps, "priorities")
	}
	if n.OnDemand && !c.OnDemand {
		gaps = append(gaps, "on-demand paging")
	}
	if gaps == nil {
		return nil
	}
	return &MissingError{Gaps: gaps}
}

// Clock is the time of a device that has one of its own, ns from its opening. Its methods are safe for concurrent use.
type Clock struct{ ns atomic.Int64 }

// Now reads it.
func (c *Clock) Now() int64 { return c.ns.Load() }

// Set moves it; the device's to call.
func (c *Clock) Set(ns int64) { c.ns.Store(ns) }
