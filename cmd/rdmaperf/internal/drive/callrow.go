package drive

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// CallShape is that of every workload of calls: one goroutine for each call that is
// outstanding on a connection.
func CallShape(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
	sh.Threads, sh.RecvDepth, sh.Moderation, sh.Slots, sh.Inline = 1, 1, 1, 1, 0
	switch {
	case sh.Outstanding > 0:
		sh.Depth = sh.Outstanding
	default:
		sh.Depth = max(p.Depth, 1)
	}
	sh.Arrives(ab)
}

// callLayout is what is under way.
func callLayout(sh *engine.Shape) engine.Layout {
	return engine.Layout{Window: (sh.Size + sh.Response) * sh.Depth}
}

// maxCallers bounds the goroutines of one point.
const maxCallers = 1 << 16

func checkCalls(sh *engine.Shape) error {
	if sh.Threads != 1 || sh.Slots != 1 || sh.Polling != engine.PollingBusy || sh.Depth*sh.QPs > maxCallers {
		return fmt.Errorf("%d threads, %d slots, %s polling, %d calls outstanding on each of %d connections", sh.Threads, sh.Slots, sh.Polling, sh.Depth, sh.QPs)
	}
	return nil
}

// callLimits is what the answers must keep to; requests are checked as all sizes are.
func callLimits(p *engine.Plan, pt engine.Point, caps transports.Caps) error {
	depth := max(pt.Outstanding, 1)
	if pt.Outstanding == 0 {
		depth = max(p.Depth, 1)
	}
	switch {
	case uint64(pt.Response) > caps.MaxMsg:
		return fmt.Errorf("response of %d bytes is above the limit of %d bytes", pt.Response, caps.MaxMsg)
	case depth*p.Qps(pt) > maxCallers:
		return fmt.Errorf("%d calls outstanding on each of %d connections are above the limit of %d", depth, p.Qps(pt), maxCallers)
	}
	return nil
}

// CallConfig is what both sides of a point expect of its calls. secret is what its
// connections show; nil: nothing.
func CallConfig(sh *engine.Shape, secret []byte) transports.CallConfig {
	w := sh.Calls()
	c := transports.CallConfig{MaxRequest: sh.Size, MaxResponse: sh.Response, Callers: sh.Depth*max(w.Handles, 1) + w.Beside, Conns: sh.QPs, Secret: secret}
	if w.Turnover {
		c.Conns = 2*sh.QPs + spareConns
	}
	if w.Longest != nil {
		c.MaxRequest, c.MaxResponse = w.Longest(sh)
	}
	return c
}

// spareConns are connections whose end a server has not seen yet.
const spareConns = 16

// CallFailed classifies the error of a call. What the server refused to go on with
// is the server's to say, as explain finds out.
func CallFailed(sh *engine.Shape, err error) error {
	var exit *reports.ExitError
	if errors.As(err, &exit) {
		return err
	}
	e := transports.AsCallError(err)
	cause := fmt.Errorf("call failed: %w", e)
	switch e.Code {
	case transports.CallUnavailable, transports.CallDataLoss:
		return engine.PeerError(sh.String(), cause, "the server's log, then the same command again")
	}
	return engine.Failed(sh.String(), cause)
}

// IdleWindow is how long both sides are watched doing nothing: some
// hundred pauses of a background poller. Tests shorten it.
var IdleWindow = 250 * time.Millisecond

// CallRow is what the rows of calls have in common.
func CallRow(name string, kind *reports.Kind, work *engine.CallWork) *engine.Workload {
	return &engine.Workload{
		Name: name, Kind: kind, Rated: true, Calls: work, Limits: callLimits,
		NoEvents: "how a carrier of calls waits is its layer's mode, as in grpc(fused,event)+iwarp",
		Shape:    CallShape, Check: checkCalls, Layout: callLayout,
		Run: runCalls, Serve: callPoint, Result: callResult, AllParameters: callParameters,
		Describe: func(p engine.Point) string { return fmt.Sprintf("%s %s %d B", p.Workload, p.Call, p.Size) },
	}
}
