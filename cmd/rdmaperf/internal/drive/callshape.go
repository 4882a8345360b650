package drive

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// CallShape is that of every workload of calls: a goroutine for each outstanding call of a connection, depth by
// default.
func CallShape(s *engine.Setup, depth int) (*engine.Shape, error) {
	sh, err := s.NewShape()
	if err != nil {
		return nil, err
	}
	if sh.Polling == engine.PollingEvent {
		return nil, engine.Failed("check point",
			errors.New("how a carrier of calls waits is its layer's mode, as in grpc(fused,event)+iwarp"))
	}
	sh.Threads, sh.Inline = 1, 0
	if sh.Depth = cmp.Or(sh.Outstanding, s.Plan.Depth, depth); sh.Depth*sh.QPs > maxCallers {
		return nil, engine.Refused(fmt.Errorf("%d calls outstanding on each of %d connections are above the limit of %d",
			sh.Depth, sh.QPs, maxCallers))
	}
	sh.Arrives(s.Caps)
	sh.Layout.Window = (sh.Size + sh.Response) * sh.Depth // what is under way
	return sh, nil
}

// maxCallers bounds the goroutines of one point.
const maxCallers = 1 << 16

// CallConfig is what both sides of a point expect of its calls. each is how many callers belong to one outstanding
// call.
func CallConfig(sh *engine.Shape, each int) transports.CallConfig {
	return transports.CallConfig{MaxRequest: sh.Size, MaxResponse: sh.Response, Callers: sh.Depth * each, Conns: sh.QPs}
}

// CallFailed classifies the error of a call. One that was cancelled lost its server: who interrupts calls does not ask.
func CallFailed(of fmt.Stringer, err error) error {
	if _, ok := errors.AsType[*reports.ExitError](err); ok {
		return err
	}
	e := transports.AsCallError(err)
	cause := fmt.Errorf("call failed: %w", e)
	switch e.Code {
	case transports.CallDeadlineExceeded:
		return engine.PeerError(of.String(), cause, "the server's log, or a longer --timeout")
	case transports.CallUnavailable, transports.CallDataLoss, transports.CallCanceled:
		return engine.PeerError(of.String(), cause, "the server's log, then the same command again")
	}
	return engine.Failed(of.String(), cause)
}

// IdleWindow is how long both sides are watched doing nothing: some hundred pauses of a background poller.
var IdleWindow = 250 * time.Millisecond
