package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	Port        = 0    // where a listener takes questions; those of sessions follow
	MaxQuestion = 4096 // bytes of a question or an answer
	maxHello    = 16   // by the contract of package transports
	windowPerm  = lite.PermRead | lite.PermWrite | lite.PermAtomic
)

// question is what a dialler sends, as JSON.
type question struct {
	Hello  []byte
	Name   string // of the dialler's window
	Window uint64 // its size, bytes
}

type answer struct {
	Port   int
	Name   string // of the listener's window
	Window uint64
	Refuse string // why there is no session
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // neither type has anything that JSON lacks
	}
	return b
}

// parseQuestion fails with rdma.ErrProtocol.
func parseQuestion(b []byte) (q question, err error) {
	if json.Unmarshal(b, &q) != nil || len(q.Hello) > maxHello {
		return q, fmt.Errorf("%w: a dialler's set-up", rdma.ErrProtocol)
	}
	return q, nil
}

// parseAnswer fails with rdma.ErrProtocol, or with rdma.ErrUnreachable for a refusal. Ports are 1 to sessions.
func parseAnswer(b []byte, sessions int) (a answer, err error) {
	if json.Unmarshal(b, &a) != nil {
		return a, fmt.Errorf("%w: answer to a session's set-up", rdma.ErrProtocol)
	}
	if a.Refuse != "" {
		return a, fmt.Errorf("the listener refuses: %s: %w", a.Refuse, rdma.ErrUnreachable)
	}
	if a.Port <= Port || a.Port > sessions {
		return a, fmt.Errorf("%w: a session of port %d, want 1 to %d", rdma.ErrProtocol, a.Port, sessions)
	}
	return a, nil
}

// ports are those of a listener's sessions, at most 63. It is safe for concurrent use.
type ports struct {
	most int
	mu   sync.Mutex
	used uint64
}

func newPorts(sessions int) *ports { return &ports{most: sessions, used: 1 << Port} }

// take is a port that no session has; rdma.ErrQueueFull when all are taken.
func (p *ports) take() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := bits.TrailingZeros64(^p.used)
	if n > p.most {
		return 0, fmt.Errorf("%d sessions: %w", p.most, rdma.ErrQueueFull)
	}
	p.used |= 1 << n
	return n, nil
}

func (p *ports) give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used &^= 1 << n
}

// Caps are those of sessions over a device, and that there are calls.
func Caps(d *rdma.Caps) transports.Caps {
	kinds := transports.Kinds(transports.KindSend, transports.KindRecv, transports.KindWrite,
		transports.KindRead, transports.KindCall)
	if d.Ops.Has(rdma.OpFetchAdd) {
		kinds |= transports.Kinds(transports.KindFetchAdd)
	}
	if d.Ops.Has(rdma.OpCmpSwap) {
		kinds |= transports.Kinds(transports.KindCmpSwap)
	}
	return transports.Caps{Label: d.Label, Kinds: kinds, LastByteLast: d.Features.Has(rdma.FeatLastByteLast),
		MaxMsg: ring.MaxRecord(ring.MaxSize) - wire.RequestLen, MaxReadDepth: d.MaxRDAtom,
		LocalComplete: d.Completion == rdma.CompletionLocal}
}

// RingFor is the longest message of a session or connection that asks for size bytes, and its ring, bytes.
func RingFor(size int) (message, ringSize int) {
	message = min(size, int(ring.MaxRecord(ring.MaxSize))-wire.RequestLen)
	n, err := ring.SizeFor(uint64(message + wire.RequestLen))
	if err != nil {
		n = ring.MaxSize
	}
	return message, int(n)
}

// normal is a session's configuration with its defaults; rdma.ErrInvalid where it exceeds c.
func normal(cfg transports.Config, c transports.Caps) (transports.Config, error) {
	cfg, err := cfg.Within(c, 1<<32, 0)
	if err == nil && cfg.Events {
		err = &rdma.MissingError{Gaps: []string{"event mode of sessions"}}
	}
	return cfg, err
}

func wantedPerm(kinds transports.KindSet) lite.Perm {
	want := lite.PermRead | lite.PermWrite
	if kinds.Has(transports.KindFetchAdd) || kinds.Has(transports.KindCmpSwap) {
		want |= lite.PermAtomic
	}
	return want
}

// Reach wraps errors of LITE about a peer that left or does not answer in rdma.ErrUnreachable.
func Reach(err error) error {
	for _, gone := range []error{lite.ErrPeerDead, lite.ErrNoPort, lite.ErrNoMember, lite.ErrDeadHandle,
		lite.ErrClosed, lite.ErrTimeout} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", rdma.ErrUnreachable, err)
		}
	}
	return err
}

// postError is an error of LITE as transports.Session has it. It allocates only for a peer that left.
func postError(err error) error {
	switch err {
	case nil, rdma.ErrQueueFull, rdma.ErrNotSupported:
		return err
	case lite.ErrBounds, lite.ErrMemory, lite.ErrTooBig:
		return rdma.ErrInvalid
	}
	return Reach(err)
}

// oneSided is LITE's kind of an operation on the peer's window; ok is false for the others.
func oneSided(k transports.Kind) (kind lite.OpKind, atomic, ok bool) {
	if int(k) >= len(opKinds) {
		return 0, false, false
	}
	o := &opKinds[k]
	return o.kind, o.atomic, o.ok
}

var opKinds = [...]struct {
	kind       lite.OpKind
	atomic, ok bool
}{
	transports.KindWrite:    {lite.OpWrite, false, true},
	transports.KindRead:     {lite.OpRead, false, true},
	transports.KindFetchAdd: {lite.OpFetchAdd, true, true},
	transports.KindCmpSwap:  {lite.OpCmpSwap, true, true},
}

func doneOf(d *lite.Done) transports.Done {
	return transports.Done{Slot: d.Slot, Len: d.Len, Kind: kindOf[d.Kind], Status: d.Status}
}

var kindOf = [...]transports.Kind{lite.OpWrite: transports.KindWrite, lite.OpRead: transports.KindRead,
	lite.OpFetchAdd: transports.KindFetchAdd, lite.OpCmpSwap: transports.KindCmpSwap,
	lite.OpMessage: transports.KindSend}
