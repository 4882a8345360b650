package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A Runner is what the two sides of a workload do at a point.
type Runner interface {
	// Client measures one point and hands what it measured to r, also beside an error. It is called for every repeat.
	Client(ctx context.Context, r *Run) error
	// Server is the other side of a point, until Peer.Receive says that the client's ended. It checks the point, which
	// may come from anybody, before it opens anything.
	Server(ctx context.Context, s *Serve) error
}

// ClientOnly is what a workload embeds whose points have Alone set.
type ClientOnly struct{}

// Server refuses.
func (ClientOnly) Server(_ context.Context, s *Serve) error {
	return PeerError("check point", fmt.Errorf("the workload %q has no server", s.Point.Workload),
		"the same rdmaperf version on both sides")
}

// Table is the workloads that points may name. Each side has its own.
type Table map[string]Entry

// Entry is one workload.
type Entry struct {
	Runner
	Results *reports.Workload // declares its results; nil: they have nothing of their own
}

// Names lists the workloads.
func (t Table) Names() []string { return slices.Sorted(maps.Keys(t)) }

// Abilities are those of the stacks of a point.
type Abilities struct {
	Client, Server transports.Caps
	Both           transports.Caps // what both can do
}

func able(client, server transports.Caps) Abilities {
	return Abilities{client, server, common(client, server)}
}

// Kinds of calls, as --rpc and Point.Call spell them.
const (
	CallUnary  = "unary"
	CallStream = "stream"
	CallOneway = "oneway"
)

// CallKinds lists them.
func CallKinds() []string { return []string{CallUnary, CallStream, CallOneway} }

// CallService is what a server of a point offers.
type CallService interface {
	transports.CallHandler
	// Begin is called before the phase's first call.
	Begin(gen int) error
	// End is called behind its last: how many were served, and what was wrong.
	End() (ops int64, err error)
	// Close frees what serve made, after the last handler returned.
	Close() error
}

// Caller is one goroutine's side of a workload. Errors of calls are given as they are, others as they shall be shown.
type Caller interface {
	// Begin is called before a phase; ctx is that of its calls.
	Begin(ctx context.Context, gen int) error
	// Prepare chooses the n-th call of the phase, outside the time.
	Prepare(n int64)
	// Call makes it; this alone is timed.
	Call() error
	// Check compares the answer, outside the time; it returns the bytes of payload both ways. ns is of the call.
	Check(ns int64) (bytes int64, err error)
	// End is called behind the last call of the phase, inside the window.
	End() error
}

// CallsOf is the stack as workloads of calls need it. Its Caps said that it carries them.
func CallsOf(s transports.Stack) (transports.CallTransport, error) {
	t, err := transports.Calls(s)
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + s.Name(),
			Err: errors.New("it carries no calls"), Hint: "--transport 'grpc(tcp)'"}
	}
	return t, nil
}

// SessionsOf is the stack as workloads of sessions need it.
func SessionsOf(s transports.Stack) (transports.Transport, error) {
	t, err := transports.Sessions(s)
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + s.Name(),
			Err: errors.New("it has no sessions"), Hint: "another --transport"}
	}
	return t, nil
}
