package setup

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Normal is a session's configuration with its defaults, held against what the stack can do.
func Normal(cfg transports.Config, c transports.Caps) (transports.Config, error) {
	cfg.SendDepth, cfg.RecvDepth = max(cfg.SendDepth, 1), max(cfg.RecvDepth, 1)
	for _, l := range []struct {
		what     string
		got      int
		from, to int
	}{
		{"window", cfg.Window, 1, 1 << 32},
		{"send depth", cfg.SendDepth, 1, c.MaxDepth},
		{"receive depth", cfg.RecvDepth, 1, c.MaxDepth},
		{"inline bytes", cfg.MaxInline, 0, 0},
		{"read depth", cfg.ReadDepth, 0, c.MaxReadDepth},
	} {
		if l.got < l.from || l.got > l.to {
			return cfg, fmt.Errorf("%s %d, want %d to %d: %w", l.what, l.got, l.from, l.to, rdma.ErrInvalid)
		}
	}
	if cfg.Events {
		return cfg, &rdma.MissingError{Gaps: []string{"event mode of sessions"}}
	}
	return cfg, nil
}

// CheckHello holds the bytes that a dialler gives with a session.
func CheckHello(hello []byte) error {
	if len(hello) > MaxHello {
		return fmt.Errorf("hello of %d bytes, at most %d: %w", len(hello), MaxHello, rdma.ErrInvalid)
	}
	return nil
}

// Want is what a session asks of the peer's window.
func Want(kinds transports.KindSet) lite.Perm {
	want := lite.PermRead | lite.PermWrite
	if kinds.Has(transports.KindFetchAdd) || kinds.Has(transports.KindCmpSwap) {
		want |= lite.PermAtomic
	}
	return want
}

// Reach is err of a set-up, or of a session, as the waist names it: a peer that is not
// there, or left, with its window or without.
func Reach(err error) error {
	for _, gone := range []error{lite.ErrPeerDead, lite.ErrNoPort, lite.ErrNoMember, lite.ErrDeadHandle} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", rdma.ErrUnreachable, err)
		}
	}
	return err
}

// Told is an error of a post as the waist names it. It allocates only for a peer that is gone.
func Told(err error) error {
	switch err {
	case nil, rdma.ErrQueueFull, rdma.ErrNotSupported:
		return err
	case lite.ErrBounds, lite.ErrMemory, lite.ErrTooBig:
		return rdma.ErrInvalid
	}
	return Reach(err)
}

// OneSided tells how LITE calls an operation on the peer's window, and whether it is an
// atomic; ok is false for what is none.
func OneSided(k transports.Kind) (kind lite.OpKind, atomic, ok bool) {
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

// Done is how an operation of LITE ended as sessions tell it.
func Done(d *lite.Done) transports.Done {
	return transports.Done{Slot: d.Slot, Len: d.Len, Kind: kindOf[d.Kind], Status: d.Status}
}

var kindOf = [...]transports.Kind{lite.OpWrite: transports.KindWrite, lite.OpRead: transports.KindRead,
	lite.OpFetchAdd: transports.KindFetchAdd, lite.OpCmpSwap: transports.KindCmpSwap, lite.OpMessage: transports.KindSend}
