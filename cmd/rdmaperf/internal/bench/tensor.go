package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier/blob"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// The workload tensor: what workers of a training and their parameter server do to each
// other, in unary calls. A push is a tensor in the request, a pull one in the response,
// an exchange one each way; what is no tensor is tensorNote bytes. Tensors are cut from
// phrases as the messages of rpc are.
//
// A pass over 64 MiB takes a good part of the time in which they are carried, and the
// server's would be in the latency. So of a long tensor each side compares one of
// tensorParts parts, the next one each time, and all of the first in every phase.

// Directions of tensors, as --tensor and Point.Call spell them.
const (
	TensorPush     = "push"
	TensorPull     = "pull"
	TensorExchange = "exchange"
)

// TensorCalls lists them.
func TensorCalls() []string { return []string{TensorPush, TensorPull, TensorExchange} }

const (
	tensorNote  = 8 // bytes: what asks for a tensor, or thanks for one
	tensorParts = 64
	// tensorWhole is the longest tensor that is compared whole each time. Arbitrary: a
	// few microseconds.
	tensorWhole = 64 << 10
)

// TensorPoint is a point of this workload.
func TensorPoint(call string, size int) Point {
	pt := Point{Workload: WorkloadTensor, Op: transports.KindCall.String(), Size: size, Call: call, Response: size}
	if call == TensorPush {
		pt.Response = tensorNote
	}
	return pt
}

// validateTensor checks what only this workload asks of a point.
func (p Point) validateTensor() error {
	switch {
	case !slices.Contains(TensorCalls(), p.Call):
		return fmt.Errorf("unknown direction %q of tensors, want one of %v", p.Call, TensorCalls())
	case p.Op != transports.KindCall.String():
		return errors.New("the operation is call")
	case p.Response != TensorPoint(p.Call, p.Size).Response:
		return fmt.Errorf("answers of %d bytes", p.Response)
	case p.Outstanding < 0 || p.Outstanding > maxDepth:
		return fmt.Errorf("%d calls outstanding: want 1 to %d", p.Outstanding, maxDepth)
	}
	return nil
}

// tensorRequest is the bytes of a request.
func (sh *Shape) tensorRequest() int {
	if sh.Call == TensorPull {
		return tensorNote
	}
	return sh.Size
}

var tensorWork = callWork{serve: serveTensors, callers: tensorCallers, result: tensorResult}

// tensorPhase is what a phase has of its own, on either side.
type tensorPhase struct {
	sh      *Shape
	out, in *phrase // as this side sends and receives
	ops     atomic.Int64
}

func newTensorPhase(sh *Shape, gen int, side string) *tensorPhase {
	request, response := newPhrase(sh.Seed, gen, toServer, sh.tensorRequest()), newPhrase(sh.Seed, gen, toClient, sh.Response)
	if side == sideServer {
		request, response = response, request
	}
	return &tensorPhase{sh: sh, out: request, in: response}
}

// compare looks at the n-th message of the phase, or at the part of it whose turn it is.
func (p *tensorPhase) compare(n int64, side string, lane int, got *blob.Message, want []byte) error {
	if !p.sh.Verify {
		return nil
	}
	if len(want) <= tensorWhole || n == 0 || got.Len() != len(want) {
		return differs(p.sh, side, "tensor", lane, got, want)
	}
	part := (len(want) + tensorParts - 1) / tensorParts
	from := min(int(n%tensorParts)*part, len(want)-1)
	want = want[from:min(from+part, len(want))]
	if i, b := got.DiffersAt(from, want); i >= 0 {
		return corrupted(&CorruptionError{Point: p.sh.Point.String(), Side: side, QP: lane, What: "tensor", Offset: from + i, Got: b, Want: want[i]})
	}
	return nil
}

// tensorServer is the parameter server.
type tensorServer struct {
	sh   *Shape
	fail func(error)
	now  atomic.Pointer[tensorPhase]
}

func serveTensors(sh *Shape, r grpc.ServiceRegistrar, fail func(error)) (callService, error) {
	s := &tensorServer{sh: sh, fail: fail}
	blob.Register(r, s)
	return s, s.begin(genWarmup)
}

func (s *tensorServer) begin(gen int) error {
	switch gen {
	case genWarmup, genMeasure:
		s.now.Store(newTensorPhase(s.sh, gen, sideServer))
	default: // nothing is called
		s.now.Load().ops.Store(0)
	}
	return nil
}

func (s *tensorServer) end() (int64, error) { return s.now.Load().ops.Load(), nil }
func (s *tensorServer) close() error        { return nil }

// Unary compares a request and answers it.
func (s *tensorServer) Unary(_ context.Context, in *blob.Message) (*blob.Message, error) {
	defer in.Free()
	p := s.now.Load()
	first, _ := in.First()
	if err := p.compare(p.ops.Add(1)-1, sideServer, 0, in, p.in.of(first)); err != nil {
		s.fail(err)
		return nil, lost(err)
	}
	return &blob.Message{Bytes: p.out.cut(int64(p.in.start[first]))}, nil
}

// Stream refuses: this workload has none.
func (s *tensorServer) Stream(grpc.ServerStream) error {
	return lost(errors.New("tensors are not exchanged on streams"))
}

// tensorShare is the phase of all callers of a point.
type tensorShare struct {
	sh  *Shape
	mu  sync.Mutex
	gen int
	now *tensorPhase
}

// phase is that of gen; the first caller makes it.
func (s *tensorShare) phase(gen int) *tensorPhase {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || s.gen != gen {
		s.gen, s.now = gen, newTensorPhase(s.sh, gen, sideClient)
	}
	return s.now
}

// tensorCaller is a worker.
type tensorCaller struct {
	share   *tensorShare
	p       *tensorPhase
	client  *blob.Client
	index   int
	ctx     context.Context
	n, sent int64
	request blob.Message
	answer  blob.Message
}

func tensorCallers(sh *Shape) func(carrier.Conn, int) (caller, error) {
	share := &tensorShare{sh: sh}
	return func(conn carrier.Conn, index int) (caller, error) {
		return &tensorCaller{share: share, client: blob.NewClient(conn), index: index}, nil
	}
}

func (c *tensorCaller) begin(ctx context.Context, gen int) error {
	c.ctx, c.p = ctx, c.share.phase(gen)
	return nil
}

func (c *tensorCaller) prepare(n int64) {
	c.n, c.sent = n, n+int64(c.index) // neighbours send different tensors
	c.request.Bytes = c.p.out.cut(c.sent)
}

func (c *tensorCaller) call() error { return c.client.Unary(c.ctx, &c.request, &c.answer) }

func (c *tensorCaller) check(int64) (int64, error) {
	defer c.answer.Free()
	sh := c.p.sh
	if err := c.p.compare(c.n, sideClient, c.index/sh.Depth, &c.answer, c.p.in.cut(c.sent)); err != nil {
		return 0, err
	}
	return int64(sh.tensorRequest() + sh.Response), nil
}

func (c *tensorCaller) end() error { return nil }

// tensorResult says what a request was, and what was compared.
func tensorResult(m *measurement, res *reports.Result, _ []caller) {
	res.RPC.RequestBytes = int64(m.sh.tensorRequest())
	if m.sh.Verify && m.sh.Size > tensorWhole {
		res.Parameters["compared"] = fmt.Sprintf("one of %d parts of each tensor in turn, and all of the first", tensorParts)
	}
}
