// Package connect is the workload of connection set-up: how long each stage takes, and how many come about a second.
//
// Every thread opens a connection, makes a first round trip, closes it, and begins again. The round trip is a write and
// a read of the same bytes in one Post, because a message may not be sent before both sides agreed to start. By calls
// it is a call of the point's size both ways. The point's QPs are the connections that are set up at once.
package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

const Name = "connect"

const (
	stageCreate     = iota // window, queues and QP; nothing was sent
	stageConnect           // the transport's own set-up
	stageFirst             // the first round trip
	stageDisconnect        // closing, until all is given back
	stageReady             // from the start to the end of the first round trip
	stageFull              // all of it
	numStages
)

// Connect is the life of a connection in stages, in nanoseconds.
type Connect struct {
	AtOnce int `json:"at_once"` // connections set up concurrently
	// window, queues and QP, before the first packet; 0 of calls, where connect has it
	Create         reports.Latency `json:"create"`
	Connect        reports.Latency `json:"connect"`          // the transport's set-up
	FirstRoundTrip reports.Latency `json:"first_round_trip"` // a write and a read of the same bytes, or a call
	Disconnect     reports.Latency `json:"disconnect"`       // closing, until all is given back
	Full           reports.Latency `json:"full"`             // all of it
}

// Of is the detail of connection set-up, nil for any other.
func Of(r *reports.Result) *Connect { return reports.DetailOf[Connect](r) }

func (*Connect) Member(string) string { return "connect" }

var results = &reports.Workload{
	Name: Name, Title: "Connection set-up", Timed: true, Rated: true,
	Intro: "The life of a connection in stages. The first answer is there after the first three; an operation is all " +
		"until then.",
	Latencies: []reports.DimDef{
		{Name: "create", Help: "window, queues and queue pair, before the first packet"},
		{Name: "connect", Help: "the transport's set-up"},
		{Name: "first", Help: "the first round trip"},
		{Name: "disconnect", Help: "closing, until all is given back"},
		{Name: "full", Help: "all stages"},
	},
	Shown:  []string{"connect.p50", "connect.p99", "first.p50", "full.p50", "full.p99", "rate"},
	Detail: func() reports.Detail { return new(Connect) },
	Describe: func(w *reports.Workload, r *reports.Result) {
		r.Note = "a thread for each connection at once, one listening thread"
		if r.Op == "call" {
			r.Note = "a thread for each connection at once, the server's threads as its stack has them"
		}
		c := Of(r)
		r.Latencies = reports.LatenciesOf(w.Latencies, &c.Create, &c.Connect, &c.FirstRoundTrip, &c.Disconnect, &c.Full)
	},
}

type Workload struct {
	atOnce string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    results,
		Summary:    "connection set-up time, stage by stage",
		Examples:   "rdmaperf run --transport tcp,iwarp --workload connect --concurrency 1,16",
		Group:      "Workloads incast and connect",
		OwnThreads: true,
		Ops:        []string{"read", "call"},
		Sizes:      []int{64},
	}
}

func (f *Workload) Flags(set *pflag.FlagSet) {
	values.ListVar(set, &f.atOnce, "concurrency", "1",
		"connect: how many connections are set up at once, a thread each; a comma list or FROM:TO:STEP is a point each")
}

func (f *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	atOnce, err := c.OwnThreads(Name, "concurrency", f.atOnce, noEvents)
	if err != nil {
		return nil, err
	}
	m := f.Meta()
	return workload.Checked(c.Product(m.Ops, m.Sizes, func(op string, size int) (points []engine.Point) {
		pt := engine.Point{Workload: Name, Op: op, Size: size}
		if op != transports.KindCall.String() {
			pt.Needs.Kinds, pt.Needs.Why = transports.Kinds(transports.KindWrite), "of the first round trip"
		}
		for _, pt.QPs = range atOnce {
			points = append(points, rpc.CallPoint(pt, false))
		}
		return points
	}), check)
}

const noEvents = "the first round trip of a connection is polled for, so it needs busy polling"

func check(p engine.Point) error {
	switch {
	case p.Call == "" && p.Op != transports.KindRead.String():
		return errors.New("the first round trip is a write and a read: the operation is read, or call")
	case p.Call != "" && (p.Call != engine.CallUnary || p.Response != p.Size):
		return errors.New("the first call is unary, with an answer as long as its request")
	case p.Call != "" && p.Outstanding != 0:
		return errors.New("a connection makes one call")
	case p.QPs > engine.MaxThreads:
		return fmt.Errorf("%d at once: want 1 to %d", p.QPs, engine.MaxThreads)
	}
	return nil
}

func shape(s *engine.Setup) (*engine.Shape, error) {
	if err := check(s.Point); err != nil {
		return nil, engine.Refused(err)
	}
	if s.Point.Call != "" {
		sh, err := rpc.Shape(s, 1)
		if err == nil {
			sh.Depth, sh.Layout.Window = 1, sh.Size+sh.Response
		}
		return sh, err
	}
	if s.Plan.Polling == engine.PollingEvent {
		return nil, engine.Refused(errors.New(noEvents))
	}
	sh, err := s.NewShape()
	if err != nil {
		return nil, err
	}
	if sh.QPs > engine.MaxThreads { // the plan's number
		return nil, engine.Refused(fmt.Errorf("%d at once: want 1 to %d", sh.QPs, engine.MaxThreads))
	}
	sh.Threads, sh.Polling = sh.QPs, engine.PollingBusy
	sh.Arrives(s.Caps)
	sh.Layout = sh.StreamLayout()
	return sh, nil
}

// callConfig allows for connections whose end the server has not seen yet.
func callConfig(sh *engine.Shape) transports.CallConfig {
	cfg := drive.CallConfig(sh, 1)
	cfg.Conns = 2*sh.QPs + 16
	return cfg
}

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	sh, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Measurement(sh)
	if err != nil {
		return err
	}
	open := bySessions
	if sh.Call != "" {
		open = byCalls
	}
	setUp, err := open(ctx, r, m)
	if err != nil {
		return err
	}
	err = phases(ctx, m, setUp)
	res := m.Result()
	if sh.Call == "" {
		sh.Barrier(res.Parameters)
	} else {
		res.Parameters, res.Polling, res.Threads = drive.CallParameters(m), "", sh.QPs
	}
	if m.Out != nil {
		complete(m, &res)
	}
	r.Add(res)
	return err
}

func complete(m *engine.Measurement, res *reports.Result) {
	out := m.Out
	s := out.Detail.(*[numStages]*reports.Recorder)
	res.Latency, res.RoundTrip = new(s[stageReady].Snapshot()), reports.RoundTripFull
	res.Throughput = reports.NewThroughput(0, out.Ops, out.Window)
	if v := res.Verification; m.Sh.Verify && v != nil { // the answer to each first round trip
		v.Whole, v.Numbers, v.Bytes = out.Ops, out.Ops, out.Ops*int64(m.Sh.Size)
	}
	if m.Sh.Call != "" {
		drive.ComparedCalls(m, res, out.Ops, out.Ops*int64(m.Sh.Size+m.Sh.Response))
	}
	res.Detail = &Connect{AtOnce: m.Sh.QPs, Create: s[stageCreate].Snapshot(), Connect: s[stageConnect].Snapshot(),
		FirstRoundTrip: s[stageFirst].Snapshot(), Disconnect: s[stageDisconnect].Snapshot(),
		Full: s[stageFull].Snapshot()}
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	sh, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	if sh.Call != "" {
		return rpc.BytesOf(sh).Serve(ctx, s, callConfig(sh))
	}
	return serve(ctx, s, sh)
}

func serve(ctx context.Context, s *engine.Serve, sh *engine.Shape) error {
	if err := s.HoldShape(sh, 0); err != nil {
		return err
	}
	cfg := sh.Config
	cfg.Events = s.Stack.Caps().Events
	l, token, err := s.Listen(ctx, cfg)
	if err != nil {
		return err
	}
	defer l.Close()
	if !cfg.Events {
		defer engine.ReserveProcs(sh.QPs)()
	}
	return s.Phases(ctx, func(ph *engine.PhaseStart) error {
		defer engine.HoldCollector()()
		changes := s.Counters(ph)
		h := &hosts{listener: l, events: cfg.Events, token: token, tenants: make([]context.CancelFunc, sh.QPs),
			places: make(chan struct{}, 2*sh.QPs)}
		r := h.start()
		_, err := s.UntilStop(ctx, ph, r)
		r.Halt(engine.StopSoon)
		out := r.Wait()
		if err = cmp.Or(err, out.Err); err != nil {
			return err
		}
		return s.Report(out, engine.PhaseReport{Counters: changes()})
	})
}

// hosts takes connections and keeps each until the client's thread has the next one. Each has a goroutine, because a
// transport may need polls to answer; it sleeps where it can, to leave the CPU to the one that accepts. A client that
// opens more than it said waits for places.
type hosts struct {
	listener transports.Listener
	events   bool // Wait works
	token    []byte
	tenants  []context.CancelFunc // by the client's thread: ends its connection here
	places   chan struct{}
	group    sync.WaitGroup
}

func (h *hosts) start() *engine.Phase {
	r := &engine.Phase{Done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.Cancel = cancel
	before := engine.ReadUsage()
	go func() {
		var o engine.Outcome
		for ctx.Err() == nil && o.Err == nil {
			o.Ops, o.Err = h.take(ctx, o.Ops)
		}
		if ctx.Err() != nil {
			o.Err = nil // told to
		}
		cancel() // and with it every tenant
		h.group.Wait()
		o.Usage = engine.ReadUsage().Minus(before)
		r.Out = o
		close(r.Done)
	}()
	return r
}

func (h *hosts) take(ctx context.Context, n int64) (int64, error) {
	select {
	case h.places <- struct{}{}:
	case <-ctx.Done():
		return n, ctx.Err()
	}
	s, hello, err := h.listener.Accept(ctx)
	if err != nil {
		<-h.places
		return n, engine.TransportError("accept session", err)
	}
	index, ok := engine.HelloIndex(hello, h.token, len(h.tenants))
	if !ok {
		s.Close()
		<-h.places
		return n, nil
	}
	if leave := h.tenants[index]; leave != nil {
		leave()
	}
	stay, leave := context.WithCancel(ctx)
	h.tenants[index] = leave
	h.group.Go(func() {
		defer func() { <-h.places }()
		defer leave()
		h.host(stay, s)
	})
	return n + 1, nil
}

func (h *hosts) host(ctx context.Context, s transports.Session) {
	var done [4]transports.Done
	for ctx.Err() == nil {
		n, err := s.Poll(done[:])
		if err == nil && n == 0 && h.events {
			err = s.Wait(ctx)
		}
		if err != nil {
			break // the peer closed it, which is what it is for
		}
		runtime.Gosched()
	}
	s.Close() // what is left of a connection that the peer closed is no failure
}
