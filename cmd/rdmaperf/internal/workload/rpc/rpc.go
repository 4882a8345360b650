// Package rpc is the workload of calls of bytes without a schema, unary or as exchanges on a stream that lasts a phase.
// Of oneway the server's count of messages ends the window.
//
// Messages are cut from two sequences (package payload), so none is copied to be sent, and both sides compare every
// byte. The server compares before it answers: without verification that pass over the request is not in the latency.
package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

const Name = "rpc"

// Workload implements workload.Workload. Of its two sizes one costs nothing to move, and one nothing else.
type Workload struct {
	kinds    []string
	response string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Results: callsresults.Results,
		Summary: "unary and streaming calls: latency, rate, CPU and memory",
		Examples: "rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload rpc -s 64 -D 3s\n" +
			"rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --rpc unary,stream,oneway -s 32 --response 8 " +
			"--qp-sweep 1,16,64\n" +
			"rdmaperf run --transport 'grpc(fused,event)+iwarp,grpc(fused,bpev)+iwarp' --workload rpc -s 64",
		Note:       "only grpc stacks mean rpc",
		Group:      "Workloads rpc, kv and tensor",
		Calls:      true,
		Slices:     true,
		OwnThreads: true,
		Means:      []string{"outstanding"},
		Takes:      []string{"rate", "rate-sweep"},
		Words:      map[string][]string{"rpc": {"unary", "stream", "oneway"}},
		Sizes:      []int{64, 1 << 20},
	}
}

func (r *Workload) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&r.kinds, "rpc", []string{engine.CallUnary},
		"rpc: comma list of unary, stream (an exchange of messages on a stream that stays), oneway (a stream of "+
			"messages to the server)")
	f.StringVar(&r.response, "response", "", "rpc: bytes of a response (default as the request)")
}

func (r *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	if err := c.CheckCalls(Name, "rpc"); err != nil {
		return nil, err
	}
	sizes := c.SizesOf("", r.Meta().Sizes)
	response := 0
	if r.response != "" {
		var err error
		if response, err = values.Bytes(r.response); err != nil {
			return nil, values.Wrong("response", "%w", err)
		}
		if response == 0 {
			return nil, values.Wrong("response", "starts at 1 byte")
		}
	}
	var points []engine.Point
	for _, kind := range values.Unique(r.kinds) {
		for _, n := range sizes {
			pt := engine.Point{Workload: Name, Op: transports.KindCall.String(), Size: n, Call: kind,
				Response: response}
			switch {
			case kind == engine.CallOneway:
				pt.Response = countBytes
			case response == 0:
				pt.Response = n
			}
			pt.Words = words(pt)
			points = append(points, c.OfCalls(pt)...)
		}
	}
	return workload.Checked(points, check)
}

func words(p engine.Point) string {
	s := fmt.Sprintf("%s %s %d B", Name, p.Call, p.Size)
	if p.Response != p.Size && p.Call != engine.CallOneway {
		s += fmt.Sprintf(" answered by %d B", p.Response)
	}
	return s
}

// countBytes is the Response of a point one way: the number of messages.
const countBytes = 8

func check(p engine.Point) error {
	switch {
	case p.Op != transports.KindCall.String():
		return errors.New("the operation is call")
	case !slices.Contains(engine.CallKinds(), p.Call):
		return fmt.Errorf("unknown kind of call %q, want one of %v", p.Call, engine.CallKinds())
	case p.Response < 1 || p.Response > engine.MaxSize:
		return errors.New("responses are 1 byte to 2 GiB")
	case p.Rate != 0 && p.Call == engine.CallOneway:
		return errors.New("messages one way have no latency, and so no rate")
	}
	return nil
}

// noteBytes is the answer to a call of the workload throughput, whose payload goes one way.
const noteBytes = 8

// CallPoint is pt, of a workload with other operations too. An answer is as long as the request, or short with note.
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

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, err := Shape(&r.Setup, 1)
	if err != nil {
		return err
	}
	return Run(ctx, r, sh, false, func(k *drive.Calls, res *reports.Result) {
		res.Detail = k.RPC()
		if v := res.Verification; v != nil && sh.Verify {
			each := sh.Size // by the server, and the answer by the client
			if sh.Call != engine.CallOneway {
				each += sh.Response
			}
			v.Numbers, v.Whole, v.Bytes = k.Out.Ops, k.Out.Ops, k.Out.Ops*int64(each)
		}
	})
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error { return Answer(ctx, s, 1) }

// Shape is that of calls of bytes, depth of them outstanding where nobody says how many.
func Shape(s *engine.Setup, depth int) (*engine.Shape, error) {
	if err := check(s.Point); err != nil {
		return nil, engine.Refused(err)
	}
	return drive.CallShape(s, depth)
}

// Run takes all slices of a point; complete adds to each result. With note only requests are payload, none timed.
func Run(ctx context.Context, r *engine.Run, sh *engine.Shape, note bool,
	complete func(*drive.Calls, *reports.Result)) error {
	m := BytesOf(sh)
	m.note = note
	k, err := drive.ConnectCalls(ctx, r, sh, drive.CallConfig(sh, 1),
		drive.Callers(sh, note || m.Mode == transports.CallOneWay, m.Callers()))
	if err != nil {
		return err
	}
	for again := true; again; again = k.Again(err) {
		err = k.Run(ctx)
		res := k.Result()
		complete(k, &res)
		r.Add(res)
	}
	return k.Close(ctx, err)
}

// Measure is Run of a point of another workload, which is shown as its other operations are. own adds to each result.
func Measure(ctx context.Context, r *engine.Run, depth int, note bool, own func(*drive.Calls, *reports.Result)) error {
	sh, err := Shape(&r.Setup, depth)
	if err != nil {
		return err
	}
	return Run(ctx, r, sh, note, func(k *drive.Calls, res *reports.Result) {
		if note {
			res.Latency, res.LatencyCorrected = nil, nil
		}
		if k.Out != nil {
			drive.ComparedCalls(k.Measurement, res, k.Out.Ops, k.Out.Ops*int64(sh.Size+sh.Response))
			if own != nil {
				own(k, res)
			}
		}
	})
}

// Answer is the server's side of calls of bytes.
func Answer(ctx context.Context, s *engine.Serve, depth int) error {
	sh, err := Shape(&s.Setup, depth)
	if err != nil {
		return err
	}
	return BytesOf(sh).Serve(ctx, s, drive.CallConfig(sh, 1))
}
