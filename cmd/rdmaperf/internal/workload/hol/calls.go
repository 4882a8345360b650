package hol

import (
	"context"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/payload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Methods of the server, and groups of callers.
const (
	methodProbe = iota
	methodBulk
)

func callShape(s *engine.Setup) (*engine.Shape, transports.CallConfig, error) {
	if err := check(s.Point); err != nil {
		return nil, transports.CallConfig{}, engine.Refused(err)
	}
	sh, err := drive.CallShape(s, 1)
	if err != nil {
		return nil, transports.CallConfig{}, err
	}
	sh.QPs, sh.Depth = connections(sh.Variant), setUp(sh).BulkDepth
	sh.Layout.Window = (sh.Size + sh.Response) * sh.Depth
	cfg := drive.CallConfig(sh, 1)
	cfg.MaxResponse = max(setUp(sh).ProbeSize, sh.Response)
	cfg.Callers++ // the probes'
	return sh, cfg, nil
}

func byCalls(ctx context.Context, r *engine.Run) error {
	sh, cfg, err := callShape(&r.Setup)
	if err != nil {
		return err
	}
	s, of := setUp(sh), callers(sh)
	probes := drive.CallGroup{First: sh.QPs - 1, Conns: 1, Each: 1, New: of(methodProbe)}
	if s.ProbeInterval > 0 && s.ProbeOne {
		probes.Gap = s.ProbeInterval
	} else if s.ProbeInterval > 0 {
		probes.Rate = 1e9 / float64(s.ProbeInterval)
	}
	bulk := drive.CallGroup{Conns: 1, Each: sh.Depth, Untimed: true, New: of(methodBulk)}
	k, err := drive.ConnectCalls(ctx, r, sh, cfg, probes, bulk)
	if err != nil {
		return err
	}
	both := drive.CallPhase{Lead: methodProbe, Beside: methodBulk}
	for again := true; again; again = k.Again(err) {
		h := newHOL(sh)
		if err = k.Warmed(ctx, both); err == nil {
			err = h.callsAlone(ctx, k)
		}
		if err == nil {
			err = k.Measure(ctx, reports.SamplesProbeLoaded, both)
		}
		err = k.Resident(ctx, err)
		res := k.Result()
		probeParameters(sh, res.Parameters)
		if k.Out != nil {
			h.complete(k, &res)
		}
		r.Add(res)
	}
	return k.Close(ctx, err)
}

func (h *HOL) callsAlone(ctx context.Context, k *drive.Calls) error {
	o, err := k.Ahead(ctx, "probes alone", engine.GenAlone, reports.SamplesProbeAlone,
		drive.CallPhase{Lead: methodProbe})
	if err != nil {
		return err
	}
	h.ProbeAlone, h.AloneLoop = o.Rec.Snapshot(), openLoop(k.Measurement, o, o.Ops, o.Window)
	if o, err = k.Ahead(ctx, "bulk alone", engine.GenBulk, "", drive.CallPhase{Lead: methodBulk}); err != nil {
		return err
	}
	h.BulkAloneBytesPerSecond = bulkRate(k.Sh, o.Ops, o.Window)
	return nil
}

func serveCalls(ctx context.Context, s *engine.Serve) error {
	sh, cfg, err := callShape(&s.Setup)
	if err != nil {
		return err
	}
	if err := s.HoldShape(sh, 0); err != nil {
		return err
	}
	fails := drive.NewFailure()
	svc := &server{sh: sh, fail: fails.Fail}
	svc.now.Store(newTexts(sh, engine.GenWarmup))
	return drive.ServeCalls(ctx, s, sh, cfg, svc, fails)
}

// complete adds to a result. Its operations are those of the bulk.
func (h *HOL) complete(k *drive.Calls, res *reports.Result) {
	sh, out := k.Sh, k.Out
	bulk, ok := out.Detail.(*drive.CallsBeside)
	if !ok || out.Rec == nil {
		return
	}
	h.ProbeLoaded, h.LoadedLoop = out.Rec.Snapshot(), openLoop(k.Measurement, out, out.Ops, out.Window)
	h.Probes = out.Ops
	h.BulkLoadedBytesPerSecond = bulkRate(sh, bulk.Ops, bulk.Window)
	res.Operations, res.DurationNs = bulk.Ops, int64(bulk.Window)
	res.Latency, res.LatencyService, res.LatencyCorrected, res.Throughput, res.OpenLoop = nil, nil, nil, nil, nil
	res.Detail = h
	drive.ComparedCalls(k.Measurement, res, bulk.Ops+h.Probes,
		bulk.Ops*int64(sh.Size+sh.Response)+2*h.Probes*h.ProbeSizeBytes)
}

type texts struct {
	in, out [2]*payload.Sequence
}

func newTexts(sh *engine.Shape, gen int) *texts {
	t := new(texts)
	for method, size := range [...]struct{ request, answer int }{methodProbe: {setUp(sh).ProbeSize,
		setUp(sh).ProbeSize}, methodBulk: {sh.Size, sh.Response}} {
		seed := sh.Seed + uint64(method) // a probe is no part of a bulk message
		t.in[method] = payload.NewSequence(seed, gen, payload.ToServer, size.request)
		t.out[method] = payload.NewSequence(seed, gen, payload.ToClient, size.answer)
	}
	return t
}

type caller struct {
	sh     *engine.Shape
	conn   transports.CallConn
	k      transports.Caller // of the phase
	share  *rpc.PerPhase[texts]
	t      *texts
	method uint8
	index  int
	n      int64
	c      transports.Call
}

func callers(sh *engine.Shape) func(method uint8) func(transports.CallConn, int) (engine.Caller, error) {
	share := new(rpc.PerPhase[texts])
	return func(method uint8) func(transports.CallConn, int) (engine.Caller, error) {
		return func(conn transports.CallConn, index int) (engine.Caller, error) {
			return &caller{sh: sh, conn: conn, share: share, method: method, index: index}, nil
		}
	}
}

func (c *caller) Begin(ctx context.Context, gen int) (err error) {
	c.t = c.share.Of(gen, func(gen int) *texts { return newTexts(c.sh, gen) })
	c.c = transports.Call{Method: c.method}
	if c.method == methodProbe {
		c.c.Priority = setUp(c.sh).ProbePriority
	}
	c.k, err = c.conn.Caller(ctx, transports.CallerConfig{Mode: transports.CallUnary})
	return err
}

func (c *caller) Prepare(n int64) {
	c.n = n + payload.Offset(c.index) // neighbours send different messages
	c.c.Request = c.t.in[c.method].Cut(c.n)
}

func (c *caller) Call() error { return c.k.Call(&c.c) }

func (c *caller) Check(int64) (int64, error) {
	if c.sh.Verify {
		what := [...]string{methodProbe: "answer to a probe", methodBulk: "answer to a bulk call"}[c.method]
		if err := payload.Differs(c.sh, engine.SideClient, what, 0, c.c.Response,
			c.t.out[c.method].Cut(c.t.in[c.method].Of(c.n))); err != nil {
			return 0, err
		}
	}
	c.k.Free()
	return int64(len(c.c.Request)), nil
}

func (c *caller) End() error {
	if _, err := c.k.End(); err != nil {
		return err
	}
	return c.k.Close()
}

type server struct {
	sh   *engine.Shape
	fail func(error)
	now  atomic.Pointer[texts]
	ops  atomic.Int64
}

func (s *server) Begin(gen int) error {
	s.now.Store(newTexts(s.sh, gen))
	s.ops.Store(0)
	return nil
}

func (s *server) End() (int64, error) { return s.ops.Load(), nil }
func (s *server) Close() error        { return nil }

func (s *server) ServeCall(r *transports.Served) error {
	if r.Method > methodBulk {
		return &transports.CallError{Code: transports.CallUnimplemented,
			Text: "methods are those of probes and of bulk"}
	}
	t := s.now.Load()
	in := t.in[r.Method]
	n := in.Number(r.Request)
	if s.sh.Verify {
		what := [...]string{methodProbe: "probe", methodBulk: "bulk call"}[r.Method]
		if err := payload.Differs(s.sh, engine.SideServer, what, 0, r.Request, in.Cut(n)); err != nil {
			s.fail(err)
			return payload.Lost(err)
		}
	}
	s.ops.Add(1)
	r.Response = t.out[r.Method].Cut(n)
	return nil
}
