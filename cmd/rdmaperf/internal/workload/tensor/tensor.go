// Package tensor is the workload of unary calls that carry tensors: a push in the request, a pull in the response, an
// exchange each way. What is no tensor is tensorNote bytes long. Tensors are cut from sequences as rpc's messages.
//
// A pass over 64 MiB takes a good part of the time of carrying them. So of a long tensor each side compares one of
// tensorParts parts in turn, and all of the first in every phase. With VerifyAll it compares all, and the latency has
// it.
package tensor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/payload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/transports"
)

const Name = "tensor"

type Workload struct {
	calls []string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    callsresults.TensorResults,
		Summary:    "tensors pushed, pulled and exchanged by gRPC calls",
		Examples:   "rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload tensor --tensor exchange -s 1K,64K,1M",
		Group:      "Workloads rpc, kv and tensor",
		Calls:      true,
		OwnThreads: true,
		Takes:      []string{"outstanding", "rate", "rate-sweep"},
		Words:      map[string][]string{"tensor": {"push", "pull", "exchange"}},
		Sizes:      []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20},
	}
}

func (t *Workload) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&t.calls, "tensor", TensorCalls(),
		"tensor: comma list of push (a tensor to the server), pull (a tensor to the client), exchange (one each "+
			"way), of --size bytes (default 1K to 64M)")
}

func (t *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if err := c.CheckCalls(Name, "tensor"); err != nil {
		return nil, err
	}
	sizes := c.SizesOf("", t.Meta().Sizes)
	for _, call := range values.Unique(t.calls) {
		if !slices.Contains(TensorCalls(), call) {
			return nil, values.Wrong("tensor", "%q: want %s", call, strings.Join(TensorCalls(), ", "))
		}
		for _, n := range sizes {
			points = append(points, c.OfCalls(TensorPoint(call, n))...)
		}
	}
	return points, nil
}

// Directions of tensors, as --tensor and Point.Call spell them.
const (
	TensorPush     = "push"
	TensorPull     = "pull"
	TensorExchange = "exchange"
)

func TensorCalls() []string { return []string{TensorPush, TensorPull, TensorExchange} }

const (
	tensorNote  = 8 // bytes: what asks for a tensor, or thanks for one
	tensorParts = 64
	// tensorWhole is the longest tensor that is compared byte by byte each time. Arbitrary: a few microseconds.
	tensorWhole = 64 << 10
)

// TensorPoint is a point of this workload.
func TensorPoint(call string, size int) engine.Point {
	pt := engine.Point{Workload: Name, Op: transports.KindCall.String(), Size: size, Call: call, Response: size,
		Words: fmt.Sprintf("%s %s %d B", Name, call, size)}
	if call == TensorPush {
		pt.Response = tensorNote
	}
	return pt
}

func check(p engine.Point) error {
	switch {
	case !slices.Contains(TensorCalls(), p.Call):
		return fmt.Errorf("unknown direction %q of tensors, want one of %v", p.Call, TensorCalls())
	case p.Op != transports.KindCall.String():
		return errors.New("the operation is call")
	case p.Response != TensorPoint(p.Call, p.Size).Response:
		return fmt.Errorf("answers of %d bytes", p.Response)
	}
	return nil
}

func shape(s *engine.Setup) (*engine.Shape, *rpc.Messages, transports.CallConfig, error) {
	if err := check(s.Point); err != nil {
		return nil, nil, transports.CallConfig{}, engine.Refused(err)
	}
	sh, err := drive.CallShape(s, 1)
	if err != nil {
		return nil, nil, transports.CallConfig{}, err
	}
	cfg := drive.CallConfig(sh, 1)
	cfg.MaxRequest = tensorRequest(sh)
	return sh, &rpc.Messages{Sh: sh, Request: cfg.MaxRequest, Compare: compare}, cfg, nil
}

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, m, cfg, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	k, err := drive.ConnectCalls(ctx, r, sh, cfg, drive.Callers(sh, false, m.Callers()))
	if err != nil {
		return err
	}
	err = k.Close(ctx, k.Run(ctx))
	res, detail := k.Result(), k.RPC()
	detail.RequestBytes = int64(m.Request)
	res.Detail = detail
	if v := res.Verification; v != nil && sh.Verify {
		v.Whole, v.Bytes = comparedTensors(sh, k.Out.Ops)
		v.Numbers = v.Whole
		if inParts(sh, sh.Size) {
			res.Parameters["compared"] = fmt.Sprintf("one of %d parts of each tensor in turn, and all of the first",
				tensorParts)
		}
	}
	r.Add(res)
	return err
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	_, m, cfg, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	return m.Serve(ctx, s, cfg)
}

func tensorRequest(sh *engine.Shape) int {
	if sh.Call == TensorPull {
		return tensorNote
	}
	return sh.Size
}

// inParts tells whether a tensor of n bytes is compared in parts.
func inParts(sh *engine.Shape, n int) bool { return n > tensorWhole && !sh.VerifyAll }

// comparedTensors is a lower bound: the last part of a long tensor is the shortest.
func comparedTensors(sh *engine.Shape, calls int64) (whole, bytes int64) {
	n := max(tensorRequest(sh), sh.Response)
	if inParts(sh, n) {
		part := (n + tensorParts - 1) / tensorParts
		return 0, calls * int64(n-part*(tensorParts-1))
	}
	return calls, calls * int64(tensorRequest(sh)+sh.Response)
}

// compare looks at the n-th message of a phase, or at the part of it whose turn it is.
func compare(sh *engine.Shape, n int64, side string, lane int, got transports.Parts, want []byte) error {
	if !inParts(sh, len(want)) || n == 0 || got.Len() != len(want) {
		return payload.Differs(sh, side, "tensor", lane, got, want)
	}
	part := (len(want) + tensorParts - 1) / tensorParts
	from := min(int(n%tensorParts)*part, len(want)-1)
	want = want[from:min(from+part, len(want))]
	if i, b := got.DiffersAt(from, want); i >= 0 {
		return engine.Corrupted(&engine.CorruptionError{Point: sh.String(), Side: side, QP: lane, What: "tensor",
			Offset: from + i, Got: b, Want: want[i]})
	}
	return nil
}
