package session

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
