package rpc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// The workload rpc: calls of bytes without a schema, so that the figure is that of
// what carries them. A unary call is a request and a response. A stream is one call
// for the whole phase, and what counts are its exchanges: a message each way, or, of
// oneway, a message to the server, whose count of all of them ends the window.
//
// Requests and responses are cut from two sequences, one each way, so that neither is
// copied to be sent: the sequence begins with the 256 values of a byte in some order,
// and a message is what begins at one of them. So its first byte tells the whole
// message, the next message is another one, and both sides compare every byte. The
// server compares before it answers: a pass over the request is part of the latency,
// the same for every carrier; without verification there is none.

// countBytes is the Response of a point one way: the number of messages.
const countBytes = 8

// validateRPC checks what only this workload asks of a point.
func validateRPC(p engine.Point) error {
	switch {
	case p.Op != transports.KindCall.String():
		return errors.New("the operation is call")
	case !slices.Contains(engine.CallKinds(), p.Call):
		return fmt.Errorf("unknown kind of call %q, want one of %v", p.Call, engine.CallKinds())
	case p.Response < 1 || p.Response > engine.MaxSize:
		return errors.New("responses are 1 byte to 2 GiB")
	case p.Outstanding < 0 || p.Outstanding > engine.MaxDepth:
		return fmt.Errorf("%d calls outstanding: want 1 to %d", p.Outstanding, engine.MaxDepth)
	case p.Rate != 0 && p.Call == engine.CallOneway:
		return errors.New("messages one way have no latency, and so no rate")
	}
	return nil
}

// noteBytes is the answer to a call of the workload throughput, whose payload goes one way.
const noteBytes = 8

// CallPoint is pt, of a workload that has other operations too. A call has an answer as
// long as the request, or with note a short one.
func CallPoint(pt engine.Point, note bool) engine.Point {
	if pt.Op != transports.KindCall.String() {
		return pt
	}
	pt.Call, pt.Response = engine.CallUnary, pt.Size
	if note {
		pt.Response = noteBytes
	}
	return pt
}

// StreamOfCalls counts the bytes of requests alone, and times no call.
var StreamOfCalls = engine.CallWork{Serve: serveRPC, Compared: comparedCalls, Untimed: func(*engine.Shape) bool { return true }, Callers: func(sh *engine.Shape) func(transports.CallConn, int) (engine.Caller, error) {
	callers := rpcCallers(sh)
	return func(conn transports.CallConn, index int) (engine.Caller, error) {
		c, err := callers(conn, index)
		if err != nil {
			return nil, err
		}
		return &noteCaller{c.(*rpcCaller)}, nil
	}
}}

// noteCaller is an rpcCaller whose answers are no payload.
type noteCaller struct{ *rpcCaller }

func (c *noteCaller) Check(ns int64) (int64, error) {
	n, err := c.rpcCaller.Check(ns)
	return n - int64(c.sh.Response), err
}

var Work = engine.CallWork{Serve: serveRPC, Callers: rpcCallers, Compared: comparedCalls, Untimed: func(sh *engine.Shape) bool { return sh.Call == engine.CallOneway }}

// comparedCalls: the server compares each request and the client each response, if there
// is one.
func comparedCalls(sh *engine.Shape, calls int64) (whole, bytes int64) {
	n := int64(sh.Size)
	if sh.Call != engine.CallOneway {
		n += int64(sh.Response)
	}
	return calls, calls * n
}

// CallsAs is the row of a workload's points with the operation call, which are shown as
// its others are. depth is how many calls are outstanding where the plan does not say.
func CallsAs(name string, kind *reports.Kind, work *engine.CallWork, depth int) *engine.Workload {
	w := drive.CallRow(name, kind, work)
	w.Rated = depth == 1
	w.Point = validateRPC
	w.Describe = nil
	w.Shape = func(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
		drive.CallShape(sh, p, ab)
		if sh.Outstanding == 0 && p.Depth == 0 {
			sh.Depth = depth
		}
	}
	w.Result = func(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
		drive.CallFigures(m, res, out)
		drive.ComparedCalls(m, res, out.Ops, out.Ops*int64(m.Sh.Size+m.Sh.Response))
		if !drive.TimesCalls(m) {
			res.Latency, res.LatencyCorrected = nil, nil
		}
	}
	return w
}
