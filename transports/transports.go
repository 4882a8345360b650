// Package transports is what a workload sees: operations inside a negotiated pair of windows, with no keys, addresses
// or queue pairs; and calls. A [Transport] turns a device or a socket into [Session]s, a [CallTransport] carries calls
// between a [Caller] and a [CallHandler]; a [Stack] may be both, and Caps.Kinds says what it is.
//
// A session belongs to one goroutine. Post copies the ops; the window bytes an op names belong to the transport until
// its Done is polled. Received bytes stay valid until their range is posted again. Of the bytes of calls, see [Call]
// and [Served]. A call belongs to the goroutine that makes it, where the fastest ones finish without any other.
//
// One window a side, sized at set-up; offsets only. Methods of calls are numbers: no metadata and no schema. What needs
// gRPC's own has it from grpcrdma/carrier.
package transports

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Kind is what an operation does.
type Kind uint8

const (
	KindSend     Kind = iota // message into the peer's next receive
	KindSendImm              // KindSend that also carries Imm; with Caps.ImmAlone, nothing else
	KindWrite                // local bytes to the peer's window
	KindWriteImm             // KindWrite that also consumes a receive and carries Imm
	KindRead                 // bytes of the peer's window to the local one
	KindFetchAdd             // 8 bytes
	KindCmpSwap              // 8 bytes
	KindCall                 // request and response
	KindRecv                 // room for one inbound message; its Done is the arrival
	numKinds
)

var kindNames = [numKinds]string{"send", "send_imm", "write", "write_imm", "read", "fetch_add", "cmp_swap", "call",
	"recv"}

// String is the name used by --op and in results.
func (k Kind) String() string { return nameIn(kindNames[:], k, "kind?") }

// ParseKind is the inverse of String for everything --op accepts.
func ParseKind(s string) (Kind, bool) {
	for k := KindSend; k < KindRecv; k++ {
		if kindNames[k] == s {
			return k, true
		}
	}
	return 0, false
}

// FullRoundTrip tells kinds whose latency is a full round trip (the answer comes
// back by itself); send and write are halved.
func (k Kind) FullRoundTrip() bool { return k >= KindRead && k <= KindCall }

// KindSet is a set of kinds.
type KindSet uint16

// Kinds builds a set.
func Kinds(ks ...Kind) KindSet {
	var s KindSet
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

// Has tells membership.
func (s KindSet) Has(k Kind) bool { return s&(1<<k) != 0 }

// OpFlags modify one operation.
type OpFlags uint8

const (
	// Unsignaled: no Done on success.
	Unsignaled OpFlags = 1 << iota
	// Inline: the bytes are taken during Post.
	Inline
	// Fence: after all earlier reads.
	Fence
)

// Op is one operation, without pointers. Slot is the caller's index and comes back in Done.
type Op struct {
	Local    uint64 // offset in Session.Local
	Remote   uint64 // offset in the peer's window
	Add      uint64 // fetch_add: addend; cmp_swap: expected
	Swap     uint64 // cmp_swap: new value
	Len      uint32 // bytes
	Slot     uint32
	Imm      uint32
	Kind     Kind
	Flags    OpFlags
	Priority uint8
}

// Done is one finished operation.
type Done struct {
	Slot   uint32
	Len    uint32 // recv, read: bytes that arrived
	Imm    uint32
	Kind   Kind
	Status rdma.Status
	HasImm bool
}

// PingPongStep is one side's step of a ping-pong: post an operation, look until something
// happens, and answer it. Several are taken in one call (rdma.PingPongStep says why).
type PingPongStep struct {
	Ask    Op // posted first, with HasAsk
	Answer Op // posted when the wait has ended, with HasAnswer
	Until  rdma.Until
	// Of UntilRecv with an answer: the Slot of the receive that it answers. The answer stays where it is when another
	// one completed, or one of another length, or with another immediate.
	Slot  uint32
	Watch uint64 // UntilByte: offset in Local of the byte that is not Was any more
	Was   byte
	Looks uint32 // for completions, at most

	HasAsk    bool  // cleared when it is posted
	HasAnswer bool  // cleared when it is posted
	Met       bool  // result: the wait ended
	Took      int64 // result, without an answer: ns from before Ask until then
	Start     int64 // when Ask was posted, ns of the provider's own clock
}

// Session is one connection with a window at each end. It is not safe for concurrent use.
type Session interface {
	// Local is the own window: mapped memory that the peer can reach.
	Local() []byte
	// RemoteLen is the size of the peer's window in bytes.
	RemoteLen() uint64
	// Post starts operations in order. n < len(ops) comes with the reason:
	// rdma.ErrQueueFull means poll and try the rest again.
	Post(ops []Op) (n int, err error)
	// Poll moves up to len(dst) finished operations into dst and never blocks. It
	// also drives the transport, so a side that only watches memory calls it too.
	Poll(dst []Done) (n int, err error)
	// PingPong takes steps of a ping-pong, one after the other, or the first of them. A step that is not met, or whose
	// answer was not posted, is the last: nothing of those behind it was posted. n operations are in dst, whatever the
	// error, and a failed one leaves its step unmet. ErrState: nothing was done, and Post and Poll tell more.
	// ErrNotSupported without Caps.PingPong.
	PingPong(vs []PingPongStep, dst []Done) (n int, err error)
	// Wait blocks until Poll may have something, or ctx ends (event mode).
	Wait(ctx context.Context) error
	// Close ends the connection and frees the window.
	Close() error
}

// Config is how a session is set up. Both ends use the same values.
type Config struct {
	Window    int  // bytes of the local window
	SendDepth int  // operations outstanding, not counting receives
	RecvDepth int  // receives outstanding
	MaxInline int  // bytes
	ReadDepth int  // reads and atomics outstanding (IRD and ORD); 0 takes the device's most
	Events    bool // Wait will be used

	// NoReads: neither end will post reads or atomics, so that a transport need not ask
	// for room for them: siw looks through it before every post.
	NoReads bool

	// Secret is what whoever connects has to show, where a transport makes more than a
	// session of a connection, as LITE does; a session shows its hello. Empty: nothing.
	Secret []byte

	// Created is called by Dial, when not nil, as soon as everything local is made
	// (window, queues, queue pair or its like) and before the first packet.
	Created func()
}

// Within is the configuration with its defaults: depths of 1, and the most reads. rdma.ErrInvalid where it exceeds
// caps, a window that of window bytes, or a read depth is less than reads.
func (c Config) Within(caps Caps, window, reads int) (Config, error) {
	c.SendDepth, c.RecvDepth = max(c.SendDepth, 1), max(c.RecvDepth, 1)
	c.ReadDepth = cmp.Or(c.ReadDepth, caps.MaxReadDepth)
	for _, l := range []struct {
		what     string
		got      int
		from, to int
	}{
		{"window", c.Window, 1, window},
		{"send depth", c.SendDepth, 1, caps.MaxDepth},
		{"receive depth", c.RecvDepth, 1, caps.MaxDepth},
		{"inline bytes", c.MaxInline, 0, caps.MaxInline},
		{"read depth", c.ReadDepth, reads, caps.MaxReadDepth},
	} {
		if l.got < l.from || l.got > l.to {
			return c, fmt.Errorf("%s %d, want %d to %d: %w", l.what, l.got, l.from, l.to, rdma.ErrInvalid)
		}
	}
	return c, nil
}

// Transport is a Stack that makes sessions.
type Transport interface {
	Stack
	// Dial connects to a Listener; hello (at most 16 bytes) reaches its Accept.
	Dial(ctx context.Context, addr string, hello []byte, cfg Config) (Session, error)
	// Listen takes sessions at "host:port"; port 0 picks one.
	Listen(ctx context.Context, addr string, cfg Config) (Listener, error)
}

// Listener takes sessions.
type Listener interface {
	// Accept returns the next session and the dialler's hello. Its receives can be posted before the peer's first
	// message only through Config.RecvDepth room: the peer must not send before both sides agreed to start.
	Accept(ctx context.Context) (Session, []byte, error)
	Addr() string
	Close() error
}

// Caps are a transport's abilities and limits.
type Caps struct {
	Label         rdma.Label
	Kinds         KindSet
	LastByteLast  bool        // a write's last byte lands last: the target may watch memory
	InProcess     bool        // in-process only (mem)
	SameHost      bool        // both ends must live on one machine
	Events        bool        // Wait works
	PingPong      bool        // Session.PingPong works
	PingPongNS    float64     // what one adds to the round trip that it times, ns; 0: not known
	PingPongClock string      // by which clock; "": CLOCK_MONOTONIC
	Clock         *rdma.Clock // the device's own, by which all its work is timed; nil: CLOCK_MONOTONIC
	Unaided       bool        // reads and atomics of the peer are served as fast while this side sleeps
	MaxMsg        uint64      // bytes
	MaxInline     int         // bytes
	MaxSessions   int         // at once; 0: no limit known
	MaxDepth      int         // operations outstanding
	MaxReadDepth  int         // reads and atomics outstanding
	Priorities    int         // levels of Op.Priority that are told apart; 0: it is ignored
	ImmAlone      bool        // a KindSendImm carries its immediate and no bytes: Op.Len is 0
	LocalComplete bool        // success means handed to the transport below, not arrived
	CallModes     CallModeSet // of KindCall
	MaxConns      int         // connections of calls at once; 0: no limit known
	MaxCall       uint64      // bytes of a request and of a response; 0: MaxMsg
	MaxCalls      int         // outstanding on a connection; 0: no limit known
}

func nameIn[T ~uint8](names []string, v T, unknown string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return unknown
}
