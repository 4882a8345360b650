package engine

import (
	"context"
	"errors"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Workloads of calls run on any transports.CallTransport. A call belongs to the
// goroutine that makes it: it blocks there, and some finish there without any other.
// A Session's loop, one goroutine that posts and polls, could only hand calls over and
// their answers back, which costs more than the call. So these workloads have loops of
// their own: a goroutine for each call outstanding, which is timed where it is made.
//
// A new workload is a CallWork in its row of the table. What it serves is a
// transports.CallHandler, and what it calls with are Callers of a connection;
// everything else is here: connections, phases, warm-up, open loop, histograms, series,
// CPU, memory, and ends of all kinds.
type CallWork struct {
	// Serve makes what the server of a point offers. fail ends the point with
	// an error from anywhere, such as a corruption; the first counts.
	Serve func(sh *Shape, fail func(error)) (CallService, error)

	// Callers makes the callers of a point. What it returns is called once for each
	// goroutine; index counts them, connection by connection.
	Callers func(sh *Shape) func(conn transports.CallConn, index int) (Caller, error)

	// Longest are the longest request and response of a point; nil: Size and Response.
	Longest func(sh *Shape) (request, response int)
	Handles int // Callers of each goroutine; 0: 1
	Beside  int // goroutines on a connection beside those of its depth

	// Turnover: connections follow one another, so that a server may have those that just
	// ended beside those that are new.
	Turnover bool

	Untimed func(sh *Shape) bool // calls whose latency means nothing; nil: none

	// Compared says of so many calls how many were compared whole, request and response,
	// and how many bytes that are, where the point verifies; nil: results do not say.
	Compared func(sh *Shape, calls int64) (whole, bytes int64)

	// Result completes the result from the callers of the measured phase.
	Result func(m *Measurement, res *reports.Result, callers []Caller)
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

// Caller is one goroutine's side of a workload. Errors of calls are given as they
// are, those of the engine (a corruption) as they shall be shown.
type Caller interface {
	// Begin is called before a phase; ctx is that of its calls.
	Begin(ctx context.Context, gen int) error
	// Prepare chooses the n-th call of the phase, outside the time.
	Prepare(n int64)
	// Call makes it; this alone is timed.
	Call() error
	// Check looks at the answer, outside the time, and says how many bytes of payload
	// went in both directions. ns is how long the call took.
	Check(ns int64) (bytes int64, err error)
	// End is called behind the last call of the phase, inside the window.
	End() error
}

// Calls is the workload's row of calls; nil for workloads of sessions.
func (sh *Shape) Calls() *CallWork {
	if w := sh.work(); w != nil {
		return w.Calls
	}
	return nil
}

// CallsOf is the stack as workloads of calls need it. Its Caps said that it carries them.
func CallsOf(s transports.Stack) (transports.CallTransport, error) {
	t, err := transports.Calls(s)
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + s.Name(), Err: errors.New("it carries no calls"), Hint: "--transport 'grpc(tcp)'"}
	}
	return t, nil
}

// SessionsOf is the stack as workloads of sessions need it.
func SessionsOf(s transports.Stack) (transports.Transport, error) {
	t, err := transports.Sessions(s)
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + s.Name(), Err: errors.New("it has no sessions"), Hint: "another --transport"}
	}
	return t, nil
}
