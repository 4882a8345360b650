package rdma

import (
	"context"
	"sync"
)

// Device is one RDMA device: a provider, or a tier over one. All methods are safe for concurrent use.
type Device interface {
	// Name is the stack name with parameters, as results print it: "iwarp(crc)".
	Name() string
	// Caps are constant for the Device's life.
	Caps() Caps

	// AllocPD makes a protection domain; FreePD fails with ErrBusy while an MR, QP or SRQ uses it (ibv_alloc_pd(3)).
	AllocPD() (PD, error)
	FreePD(pd PD) error
	// NewCQ makes a completion queue of at least depth entries (1..Caps.MaxCQE).
	NewCQ(depth int) (CQ, error)
	// NewSRQ makes a shared receive queue; ErrNotSupported without FeatSRQ.
	NewSRQ(cfg SRQConfig) (SRQ, error)
	// NewQP makes a queue pair in INIT. Receives may be posted at once.
	NewQP(cfg QPConfig) (QP, error)
	// RegMR registers the buffer, which may be a part of a mapping and begin at any byte, in a domain with rights and a
	// key that cannot be guessed. The memory must outlive the MR.
	RegMR(pd PD, buf Buffer, access Access) (MR, error)

	// Listen takes connections at addr ("host:port"; port 0 picks one). The
	// backlog bounds requests that wait for Accept; more are refused.
	Listen(ctx context.Context, addr string, backlog int) (Listener, error)
	// Event takes the oldest unread asynchronous event without blocking;
	// ok=false when there is none (ibv_get_async_event(3)). At most 128 are kept; the oldest give way.
	Event() (ev Event, ok bool)
	// Close ends the device; ErrBusy while objects are open.
	Close() error
}

// SRQConfig sizes a shared receive queue.
type SRQConfig struct {
	PD    PD
	Depth int // work requests
}

// QPConfig sizes a queue pair. Zero depths mean 1.
type QPConfig struct {
	PD        PD
	SendCQ    CQ // required
	RecvCQ    CQ // required; may be SendCQ
	SRQ       SRQ
	SendDepth int    // work requests
	RecvDepth int    // work requests; unused with SRQ
	MaxInline int    // bytes the QP must be able to take inline
	SigAll    bool   // every send completes, whatever its flags (sq_sig_all)
	Access    Access // remote rights the QP admits at all; 0 means all (qp_access_flags)
}

// ConnParam is what the two ends tell each other (rdma_connect(3), RFC 6581).
// As an argument it is this side's wish; as a result it is what holds.
type ConnParam struct {
	PrivateData []byte // argument: to the peer; result: from the peer (a copy the caller owns)
	IRD         int    // reads and atomics the peer may have outstanding here (responder_resources)
	ORD         int    // reads and atomics we may have outstanding there (initiator_depth)
	RNRRetry    int    // FeatRNRRetry: 0..6 tries, 7 for ever
}

// QP is one end of a reliable connection. PostSend and PostRecv may be called
// from different goroutines; each from one at a time is fastest.
type QP interface {
	// Num identifies the QP on its device; WC.QPNum carries it.
	Num() uint32
	// Connect joins the QP to the listener at addr and returns what was
	// negotiated. The deadline of ctx bounds every step; without one, 10 s.
	Connect(ctx context.Context, addr string, p ConnParam) (ConnParam, error)
	// PostSend takes work in order. n < len(wrs) always comes with an error that
	// says why wrs[n] was refused; the first n stand (ibv_post_send(3)).
	PostSend(wrs []SendWR) (n int, err error)
	// PostRecv likewise. ErrInvalid on a QP with an SRQ.
	PostRecv(wrs []RecvWR) (n int, err error)
	// PingPong takes steps of a ping-pong, one after the other; vs is the caller's again on return. A step that is not
	// met, or whose answer was not posted, is the last: those behind it are not met and nothing of theirs was posted. n
	// completions are in dst, whatever the error, and a failed one leaves its step unmet. The QP must complete both its
	// queues into one CQ, and nobody else may poll that meanwhile. ErrState: the QP is in no state for it, nothing was
	// done, and PostSend and CQ.Poll tell more. ErrNotSupported without FeatPingPong.
	PingPong(vs []PingPongStep, dst []WC) (n int, err error)
	// Drain moves RTS to SQD, Resume moves SQD to RTS; ErrNotSupported without FeatSQD.
	Drain() error
	Resume() error
	// Fail moves the QP to ERR: everything outstanding completes flushed.
	Fail() error
	// Disconnect ends the connection in order: what was posted before it is sent if
	// the peer takes it before ctx ends; the QP is then in ERR on both sides.
	Disconnect(ctx context.Context) error
	// State is a snapshot.
	State() QPState
	// Close destroys the QP. Outstanding work completes flushed, exactly once,
	// before Close returns; those completions stay pollable.
	Close() error
}

// SRQ is a receive queue that several QPs share.
type SRQ interface {
	PostRecv(wrs []RecvWR) (n int, err error)
	// Arm asks for one EventSRQLimit when fewer than limit receives remain; 0 disarms (ibv_modify_srq(3)).
	Arm(limit int) error
	// Close fails with ErrBusy while a QP uses it.
	Close() error
}

// CQ collects completions.
type CQ interface {
	// Poll moves up to len(dst) completions into dst and never blocks. On a
	// software provider it also drives the QPs of this CQ. It allocates nothing.
	Poll(dst []WC) (n int, err error)
	// Arm asks for one event on the next completion, or on the next solicited or failed one. One shot; a stronger
	// request wins (ibv_req_notify_cq(3)). A completion already waiting raises no event: arm, poll, then wait.
	Arm(solicitedOnly bool) error
	// Wait blocks until the armed event fires or ctx ends (ibv_get_cq_event(3)).
	Wait(ctx context.Context) error
	// Close fails with ErrBusy while a QP uses it.
	Close() error
}

// MR is a registration.
type MR interface {
	LKey() uint32
	RKey() uint32 // STag on iWARP
	Addr() uint64 // base address, for SGEs and for the peer's RemoteAddr
	Len() uint64
	Access() Access
	// Close revokes the keys. When it returns, the device touches the memory no more.
	Close() error
}

// Listener takes connection requests.
type Listener interface {
	Accept(ctx context.Context) (ConnRequest, error)
	Addr() string // "host:port" with the real port
	Close() error
}

// ConnRequest is a peer that waits for an answer. Exactly one of Accept and
// Reject must be called; a request left alone is refused after 10 s.
type ConnRequest interface {
	// Param is what the peer asks: its private data, and IRD/ORD seen from this side.
	Param() ConnParam
	RemoteAddr() string
	// Accept joins qp (in INIT, receives already posted if the peer sends at once).
	Accept(ctx context.Context, qp QP, p ConnParam) (ConnParam, error)
	// Reject refuses with private data.
	Reject(ctx context.Context, privateData []byte) error
}

// EventType is the kind of an asynchronous event (ibv_get_async_event(3)).
type EventType uint8

const (
	EventQPFatal        EventType = iota + 1 // the stream below failed
	EventQPAccess                            // the peer broke a registration's rules
	EventQPRequest                           // the peer broke the protocol
	EventSQDrained                           // Drain finished
	EventSRQLimit                            // the armed limit was reached
	EventLastWQEReached                      // a QP with SRQ went to ERR and takes no more receives
	EventCQError                             // a CQ overran
	EventPeerDisconnect                      // the peer ended the connection in order
)

var eventNames = [...]string{"", "qp fatal", "qp access", "qp request", "sq drained", "srq limit", "last wqe reached",
	"cq error", "disconnected"}

// String is the event in words.
func (e EventType) String() string { return nameIn(eventNames[:], e, "event?") }

// Event is one asynchronous event. QPNum is 0 for SRQ and CQ events. Detail is
// the provider's code (iWARP: Terminate as 0xLECC).
type Event struct {
	Type   EventType
	QPNum  uint32
	Detail uint32
}

// MaxEvents is how many asynchronous events a device keeps for Device.Event.
const MaxEvents = 128

// EventRing holds the asynchronous events of a device until they are taken; the oldest
// gives way to one that finds it full. The zero value is empty. Safe for concurrent use.
type EventRing struct {
	mu          sync.Mutex
	events      [MaxEvents]Event
	head, count int
}

// Put adds an event.
func (r *EventRing) Put(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[(r.head+r.count)%MaxEvents] = e
	if r.count == MaxEvents {
		r.head = (r.head + 1) % MaxEvents
		return
	}
	r.count++
}

// Event takes the oldest one, as Device.Event does.
func (r *EventRing) Event() (Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 {
		return Event{}, false
	}
	e := r.events[r.head]
	r.head = (r.head + 1) % MaxEvents
	r.count--
	return e, true
}

// Counts are what one layer of a stack counted so far, for reports.
type Counts struct {
	Layer  string           // its name, without parameters: "sched"
	Values map[string]int64 // by name
	Detail bool             // they say how the work was done, not that something was unusual
}

// Counting is what a Device, or a transport over one, is beside that when it counts something: a tier. It belongs to
// the control path, and is the one optional interface of the waist.
type Counting interface {
	// Counts are the layer's own and those of what stands below it, outermost first. It
	// is safe for concurrent use, and costs locks and memory.
	Counts() []Counts
}

// CountsOf is what a layer and all below it count; nil for one that does not.
func CountsOf(layer any) []Counts {
	if c, ok := layer.(Counting); ok {
		return c.Counts()
	}
	return nil
}

type parkKey struct{}

// Parked returns a context under which [CQ].Wait parks its goroutine in Go's own network poller. A goroutine that it
// makes runnable then runs on the thread that the kernel woke. Without it Wait may block its thread in the kernel,
// which wakes a goroutine that is locked to its thread without a hand-over.
func Parked(ctx context.Context) context.Context { return context.WithValue(ctx, parkKey{}, true) }

// Parks reports whether ctx comes from [Parked].
func Parks(ctx context.Context) bool { return ctx.Value(parkKey{}) != nil }
