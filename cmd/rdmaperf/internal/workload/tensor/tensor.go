package tensor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/payload"
	"github.com/rdmaperf/rdmaperf/transports"
)

// The workload tensor: what workers of a training and their parameter server do to each
// other, in unary calls. A push is a tensor in the request, a pull one in the response,
// an exchange one each way; what is no tensor is tensorNote bytes. Tensors are cut from
// sequences as the messages of rpc are.
//
// A pass over 64 MiB takes a good part of the time in which they are carried, and the
// server's would be in the latency. So of a long tensor each side compares one of
// tensorParts parts, the next one each time, and all of the first in every phase; with
// VerifyAll all of each, and the latency has it.

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
	// tensorWhole is the longest tensor that is compared byte by byte each time. Arbitrary: a
	// few microseconds.
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

// check is what only this workload asks of a point.
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

// shape is that of a point, and what its calls may be.
func shape(s *engine.Setup) (*engine.Shape, transports.CallConfig, error) {
	if err := check(s.Point); err != nil {
		return nil, transports.CallConfig{}, engine.Refused(err)
	}
	sh, err := drive.CallShape(s, 1)
	if err != nil {
		return nil, transports.CallConfig{}, err
	}
	cfg := drive.CallConfig(sh, 1)
	cfg.MaxRequest = tensorRequest(sh)
	return sh, cfg, nil
}

// Client measures one point.
func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, cfg, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	k, err := drive.ConnectCalls(ctx, r, sh, cfg, drive.Callers(sh, false, tensorCallers(sh)))
	if err != nil {
		return err
	}
	err = k.Close(ctx, k.Run(ctx))
	res, rpc := k.Result(), k.RPC()
	rpc.RequestBytes = int64(tensorRequest(sh))
	res.Detail = rpc
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

// Server is the parameter server.
func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	sh, cfg, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	if err := s.HoldShape(sh, 0); err != nil {
		return err
	}
	fails := drive.NewFailure()
	t := &tensorServer{sh: sh, fail: fails.Fail}
	if err := t.Begin(engine.GenWarmup); err != nil {
		return err
	}
	return drive.ServeCalls(ctx, s, sh, cfg, t, fails)
}

// tensorRequest is the bytes of a request.
func tensorRequest(sh *engine.Shape) int {
	if sh.Call == TensorPull {
		return tensorNote
	}
	return sh.Size
}

// inParts tells whether a tensor of n bytes is compared in parts.
func inParts(sh *engine.Shape, n int) bool { return n > tensorWhole && !sh.VerifyAll }

// comparedTensors: all of a short tensor, and of a long one a part in turn, of which the
// last is the shortest: at least so many bytes.
func comparedTensors(sh *engine.Shape, calls int64) (whole, bytes int64) {
	n := max(tensorRequest(sh), sh.Response)
	if inParts(sh, n) {
		part := (n + tensorParts - 1) / tensorParts
		return 0, calls * int64(n-part*(tensorParts-1))
	}
	return calls, calls * int64(tensorRequest(sh)+sh.Response)
}

// tensorPhase is what a phase has of its own, on either side.
type tensorPhase struct {
	sh      *engine.Shape
	out, in *payload.Sequence // as this side sends and receives
	ops     atomic.Int64
}

func newTensorPhase(sh *engine.Shape, gen int, side string) *tensorPhase {
	request, response := payload.NewSequence(sh.Seed, gen, payload.ToServer, tensorRequest(sh)),
		payload.NewSequence(sh.Seed, gen, payload.ToClient, sh.Response)
	if side == engine.SideServer {
		request, response = response, request
	}
	return &tensorPhase{sh: sh, out: request, in: response}
}

// compare looks at the n-th message of the phase, or at the part of it whose turn it is.
func (p *tensorPhase) compare(n int64, side string, lane int, got transports.Parts, want []byte) error {
	if !p.sh.Verify {
		return nil
	}
	if !inParts(p.sh, len(want)) || n == 0 || got.Len() != len(want) {
		return payload.Differs(p.sh, side, "tensor", lane, got, want)
	}
	part := (len(want) + tensorParts - 1) / tensorParts
	from := min(int(n%tensorParts)*part, len(want)-1)
	want = want[from:min(from+part, len(want))]
	if i, b := got.DiffersAt(from, want); i >= 0 {
		return engine.Corrupted(&engine.CorruptionError{Point: p.sh.String(), Side: side, QP: lane, What: "tensor",
			Offset: from + i, Got: b, Want: want[i]})
	}
	return nil
}

// tensorServer is the parameter server.
type tensorServer struct {
	sh   *engine.Shape
	fail func(error)
	now  atomic.Pointer[tensorPhase]
}

func (s *tensorServer) Begin(gen int) error {
	switch gen {
	case engine.GenWarmup, engine.GenMeasure:
		s.now.Store(newTensorPhase(s.sh, gen, engine.SideServer))
	default: // nothing is called
		s.now.Load().ops.Store(0)
	}
	return nil
}

func (s *tensorServer) End() (int64, error) { return s.now.Load().ops.Load(), nil }
func (s *tensorServer) Close() error        { return nil }

// ServeCall compares a request and answers it.
func (s *tensorServer) ServeCall(r *transports.Served) error {
	p := s.now.Load()
	n := p.in.Number(r.Request)
	if err := p.compare(p.ops.Add(1)-1, engine.SideServer, 0, r.Request, p.in.Cut(n)); err != nil {
		s.fail(err)
		return payload.Lost(err)
	}
	r.Response = p.out.Cut(n)
	return nil
}

// tensorShare is the phase of all callers of a point.
type tensorShare struct {
	sh  *engine.Shape
	mu  sync.Mutex
	gen int
	now *tensorPhase
}

// phase is that of gen; the first caller makes it.
func (s *tensorShare) phase(gen int) *tensorPhase {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || s.gen != gen {
		s.gen, s.now = gen, newTensorPhase(s.sh, gen, engine.SideClient)
	}
	return s.now
}

// tensorCaller is a worker.
type tensorCaller struct {
	share   *tensorShare
	p       *tensorPhase
	conn    transports.CallConn
	k       transports.Caller // of the phase
	index   int
	n, sent int64
	c       transports.Call
}

func tensorCallers(sh *engine.Shape) func(transports.CallConn, int) (engine.Caller, error) {
	share := &tensorShare{sh: sh}
	return func(conn transports.CallConn, index int) (engine.Caller, error) {
		return &tensorCaller{share: share, conn: conn, index: index}, nil
	}
}

func (c *tensorCaller) Begin(ctx context.Context, gen int) (err error) {
	c.p = c.share.phase(gen)
	c.k, err = c.conn.Caller(ctx, transports.CallerConfig{})
	return err
}

func (c *tensorCaller) Prepare(n int64) {
	c.n, c.sent = n, n+payload.Offset(c.index) // neighbours send different tensors
	c.c.Request = c.p.out.Cut(c.sent)
}

func (c *tensorCaller) Call() error { return c.k.Call(&c.c) }

func (c *tensorCaller) Check(int64) (int64, error) {
	defer c.k.Free()
	sh := c.p.sh
	if err := c.p.compare(c.n, engine.SideClient, c.index/sh.Depth, c.c.Response,
		c.p.in.Cut(c.p.out.Of(c.sent))); err != nil {
		return 0, err
	}
	return int64(tensorRequest(sh) + sh.Response), nil
}

func (c *tensorCaller) End() error { return c.k.Close() }
