package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Workloads of calls run gRPC's own clients and servers on a carrier. A call belongs
// to the goroutine that makes it: it blocks there, and a fused one finishes there
// without any other. A Session's loop, one goroutine that posts and polls, could
// only hand calls over and their answers back, which costs more than the call. So
// these workloads have loops of their own: a goroutine for each call outstanding,
// which is timed where it is made.
//
// A new workload is a callWork in its row of the table. What it serves is generated
// code or a service description registered on a grpc.ServiceRegistrar, and what it
// calls are stubs on a carrier.Conn; everything else is here: connections, phases,
// warm-up, open loop, histograms, series, CPU, memory, and ends of all kinds.
type callWork struct {
	// serve registers what the server of a point offers. fail ends the point with
	// an error from anywhere, such as a corruption; the first counts.
	serve func(sh *Shape, r grpc.ServiceRegistrar, fail func(error)) (callService, error)

	// callers makes the callers of a point. What it returns is called once for each
	// goroutine; index counts them, connection by connection.
	callers func(sh *Shape) func(conn carrier.Conn, index int) (caller, error)

	untimed func(sh *Shape) bool // calls whose latency means nothing; nil: none

	// result completes the result from the callers of the measured phase.
	result func(m *measurement, res *reports.Result, callers []caller)
}

// callService is what a server of a point offers.
type callService interface {
	// begin is called before the phase's first call.
	begin(gen int) error
	// end is called behind its last: how many were served, and what was wrong.
	end() (ops int64, err error)
	// close frees what serve made, after the last handler returned.
	close() error
}

// caller is one goroutine's side of a workload. Errors of gRPC are given as they
// are, those of the engine (a corruption) as they shall be shown.
type caller interface {
	// begin is called before a phase; ctx is that of its calls.
	begin(ctx context.Context, gen int) error
	// prepare chooses the n-th call of the phase, outside the time.
	prepare(n int64)
	// call makes it; this alone is timed.
	call() error
	// check looks at the answer, outside the time, and says how many bytes of payload
	// went in both directions. ns is how long the call took.
	check(ns int64) (bytes int64, err error)
	// end is called behind the last call of the phase, inside the window.
	end() error
}

// calls is the workload's row of calls; nil for workloads of sessions.
func (sh *Shape) calls() *callWork {
	if w := findWorkload(sh.Workload); w != nil {
		return w.calls
	}
	return nil
}

// callShape is that of every workload of calls: one goroutine for each call that is
// outstanding on a connection.
func (sh *Shape) callShape(p *Plan, _ transports.Caps) {
	sh.Threads, sh.RecvDepth, sh.Moderation, sh.Slots, sh.Inline = 1, 1, 1, 1, 0
	switch {
	case sh.Outstanding > 0:
		sh.Depth = sh.Outstanding
	default:
		sh.Depth = max(p.Depth, 1)
	}
}

// maxCallers bounds the goroutines of one point.
const maxCallers = 1 << 16

func (sh *Shape) checkCalls() error {
	if sh.Threads != 1 || sh.Slots != 1 || sh.Polling != PollingBusy || sh.Depth*sh.QPs > maxCallers {
		return fmt.Errorf("%d threads, %d slots, %s polling, %d calls outstanding on each of %d connections", sh.Threads, sh.Slots, sh.Polling, sh.Depth, sh.QPs)
	}
	return nil
}

// callLimits is what the answers must keep to; requests are looked at as all sizes are.
func callLimits(p *Plan, pt Point, caps transports.Caps) error {
	depth := max(pt.Outstanding, 1)
	if pt.Outstanding == 0 {
		depth = max(p.Depth, 1)
	}
	switch {
	case uint64(pt.Response) > caps.MaxMsg:
		return fmt.Errorf("response of %d bytes is above the limit of %d bytes", pt.Response, caps.MaxMsg)
	case depth*p.qps(pt) > maxCallers:
		return fmt.Errorf("%d calls outstanding on each of %d connections are above the limit of %d", depth, p.qps(pt), maxCallers)
	}
	return nil
}

// carrierOf is the transport as workloads of calls need it. Its Caps said that it
// carries calls.
func carrierOf(tr transports.Transport) (*carrier.Carrier, error) {
	for {
		switch t := tr.(type) {
		case *carrier.Carrier:
			return t, nil
		case interface{ Unwrap() transports.Transport }:
			tr = t.Unwrap()
		default:
			return nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + tr.Name(), Err: errors.New("it carries no calls"), Hint: "--transport 'grpc(tcp)'"}
		}
	}
}

// callFailed classifies the error of a call. What the server refused to go on with
// is the server's to say, as explain finds out.
func callFailed(sh *Shape, err error) error {
	var exit *reports.ExitError
	if errors.As(err, &exit) {
		return err
	}
	s, _ := status.FromError(err)
	cause := fmt.Errorf("call failed: %s: %s", s.Code(), s.Message())
	switch s.Code() {
	case codes.Unavailable, codes.DataLoss:
		return peerError(sh.Point.String(), cause, "the server's log, then the same command again")
	}
	return failed(sh.Point.String(), cause)
}

// idleWindow is how long both sides are watched doing nothing. Arbitrary: some
// hundred pauses of a background poller. Tests shorten it.
var idleWindow = 250 * time.Millisecond
