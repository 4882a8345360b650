package connect

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type setUp func(ctx context.Context, s *setups, r *engine.Phase, index int, n int64) (times, error)

// setups is the client's side of a phase. Its threads write the recorders between connections, never in a timed part.
type setups struct {
	m     *engine.Measurement
	lim   engine.Limits
	gen   int
	setUp setUp

	mu     sync.Mutex
	stages [numStages]*reports.Recorder
	series *engine.Series
	ops    int64
	end    int64
	err    error // the first failure; a corruption wins
}

func phases(ctx context.Context, m *engine.Measurement, one setUp) (err error) {
	p := m.Plan
	defer engine.ReserveProcs(m.Sh.QPs)()
	phase := func(name string, gen int, lim engine.Limits, every time.Duration) (*engine.Outcome, *engine.PhaseReport,
		error) {
		s := &setups{m: m, lim: lim, gen: gen, setUp: one}
		for i := range s.stages {
			s.stages[i] = reports.NewRecorder()
		}
		if every > 0 && lim.Dur > 0 {
			s.series = engine.NewSeries(every, lim.Dur)
		}
		defer engine.HoldCollector()()
		return m.Around(ctx, engine.PhaseStart{Name: name, Generation: gen}, s.start, nil)
	}
	if p.WarmupIterations > 0 || p.WarmupDuration > 0 {
		if m.Warm, _, err = phase("warm-up", engine.GenWarmup,
			engine.Limits{Ops: p.WarmupIterations, Dur: p.WarmupDuration}, 0); err != nil {
			return err
		}
	}
	m.Out, m.Report, err = phase("measure", engine.GenMeasure, m.Window(), p.Interval)
	m.Judge(err)
	return m.End(ctx, err)
}

func (s *setups) start() *engine.Phase {
	r := &engine.Phase{Done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.Cancel = cancel
	before := engine.ReadUsage()
	begin := engine.Now()
	s.end = begin
	if s.series != nil {
		s.series.Start(begin)
	}
	var ended sync.WaitGroup
	for i := range s.m.Sh.QPs {
		ended.Go(func() {
			runtime.LockOSThread() // as every worker; the thread ends with it
			if err := s.repeat(ctx, r, i, begin); err != nil {
				s.fail(err)
				r.Halt(engine.StopSoon)
			}
		})
	}
	go func() {
		ended.Wait()
		cancel()
		r.Out = engine.Outcome{Rec: s.stages[stageReady], Detail: &s.stages, Series: s.series, Ops: s.ops, Begin: begin,
			Window: time.Duration(s.end - begin), Usage: engine.ReadUsage().Minus(before), Err: s.err}
		close(r.Done)
	}()
	return r
}

func (s *setups) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || reports.Code(err) == reports.ExitCorruption {
		s.err = err
	}
}

type times struct {
	took [numStages]int64
	end  int64
}

// newTimes are of a connection begun at t0, created then, connected at t1, answered at t2, and closed from t3 to t4.
func newTimes(t0, created, t1, t2, t3, t4 int64) times {
	return times{end: t4, took: [numStages]int64{stageCreate: created - t0, stageConnect: t1 - created,
		stageFirst: t2 - t1, stageDisconnect: t4 - t3, stageReady: t2 - t0, stageFull: t2 - t0 + t4 - t3}}
}

func (s *setups) repeat(ctx context.Context, r *engine.Phase, index int, begin int64) error {
	for n := int64(0); s.lim.Ops == 0 || n < s.lim.Ops; n++ {
		t, err := s.setUp(ctx, s, r, index, n)
		if err == engine.ErrStop {
			return nil
		}
		if err != nil {
			return err
		}
		s.record(&t.took, t.end)
		if r.Stop.Load() != 0 || s.lim.Dur > 0 && t.end-begin >= int64(s.lim.Dur) {
			return nil
		}
	}
	return nil
}

func bySessions(ctx context.Context, r *engine.Run, m *engine.Measurement) (setUp, error) {
	tr, err := engine.SessionsOf(r.Stack)
	if err != nil {
		return nil, err
	}
	addr, at, err := m.Address(ctx)
	if err != nil {
		return nil, err
	}
	token, secret := engine.SessionToken(r.Plan.Token, at.Token), m.Secret(at.Token)
	return func(ctx context.Context, s *setups, r *engine.Phase, index int, n int64) (t times, err error) {
		hello := binary.BigEndian.AppendUint32(slices.Clone(token), uint32(index))
		cfg := s.m.Sh.Config
		cfg.Secret = secret
		bound, cancel := context.WithTimeout(ctx, s.m.Sh.Timeout)
		defer cancel()
		var created int64
		cfg.Created = func() { created = engine.Now() }
		t0 := engine.Now()
		session, err := tr.Dial(bound, addr, hello, cfg)
		t1 := engine.Now()
		if err != nil {
			if r.Stop.Load() != 0 {
				return t, engine.ErrStop
			}
			return t, engine.TransportError("connect session", err)
		}
		created = cmp.Or(created, t0) // a transport that tells nothing has one stage
		t2, err := s.first(session, r, index, n)
		t3 := engine.Now()
		closing := session.Close()
		t4 := engine.Now()
		switch {
		case err != nil:
			return t, err
		case closing != nil:
			return t, engine.Failed("close session", closing)
		}
		return newTimes(t0, created, t1, t2, t3, t4), nil
	}, nil
}

func (s *setups) record(took *[numStages]int64, t int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.stages {
		r.Record(took[i])
	}
	s.ops++
	s.end = max(s.end, t)
	if s.series != nil {
		s.series.Sample(s.end, took[stageReady])
	}
}

// first is a round trip of bytes of this connection alone. It returns when they were there; then they are compared.
func (s *setups) first(session transports.Session, r *engine.Phase, index int, n int64) (int64, error) {
	sh := s.m.Sh
	mem := session.Local()
	state := engine.PatternState(sh.Seed, s.gen, index, int(n))
	engine.FillPattern(mem[:sh.Size], state)
	back := sh.RxSlot(0)
	ops := [...]transports.Op{
		{Kind: transports.KindWrite, Flags: transports.Unsignaled, Remote: uint64(back), Len: uint32(sh.Size)},
		{Kind: transports.KindRead, Local: uint64(back), Remote: uint64(back), Len: uint32(sh.Size)},
	}
	lost := func(operation string, err error) error {
		return engine.PeerError(sh.String(), fmt.Errorf("connection %d: %s: %w", index, operation, err),
			"the log of the server side")
	}
	if k, err := session.Post(ops[:]); k < len(ops) {
		return 0, lost("post", err)
	}
	var done [4]transports.Done
	var spins int
	limit := engine.Now() + int64(sh.Timeout)
	for {
		k, err := session.Poll(done[:])
		t := engine.Now()
		if err != nil {
			return t, lost("poll", err)
		}
		for i := range done[:k] {
			if d := &done[i]; d.Status != rdma.StatusSuccess {
				return t, lost("first "+d.Kind.String(), &rdma.StatusError{WC: rdma.WC{Status: d.Status}})
			}
			if done[i].Kind == transports.KindRead {
				return t, s.compare(mem[back:back+sh.Size], state, index)
			}
		}
		if spins++; spins%engine.SpinCheck == 0 {
			switch {
			case r.Stop.Load() == engine.StopNow:
				return t, engine.ErrStop
			case t > limit:
				return t, lost("first round trip", errors.New("no progress"))
			}
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // as offers, but a setup is one wait
		}
	}
}

func (s *setups) compare(got []byte, state uint64, index int) error {
	if !s.m.Sh.Verify {
		return nil
	}
	i, want := engine.MatchPattern(got, state)
	if i < 0 {
		return nil
	}
	return engine.Corrupted(&engine.CorruptionError{Point: s.m.Sh.String(), Side: engine.SideClient, QP: index,
		What: "first answer", Offset: i, Want: want, Got: got[i]})
}

type calls struct {
	tr      transports.CallTransport
	addr    string
	cfg     transports.CallConfig
	callers func(transports.CallConn, int) (engine.Caller, error)
}

func byCalls(ctx context.Context, r *engine.Run, m *engine.Measurement) (setUp, error) {
	tr, err := engine.CallsOf(r.Stack)
	if err != nil {
		return nil, err
	}
	addr, at, err := m.Address(ctx)
	if err != nil {
		return nil, err
	}
	c := &calls{tr, addr, callConfig(m.Sh), rpc.BytesOf(m.Sh).Callers()}
	c.cfg.Secret = m.Secret(at.Token)
	return c.setUp, nil
}

func (c *calls) setUp(ctx context.Context, s *setups, r *engine.Phase, index int, n int64) (t times, err error) {
	bound, cancel := context.WithTimeout(ctx, s.m.Sh.Timeout)
	defer cancel()
	t0 := engine.Now()
	conn, err := c.tr.DialCalls(bound, c.addr, c.cfg)
	t1 := engine.Now()
	if err != nil {
		if r.Stop.Load() != 0 {
			return t, engine.ErrStop
		}
		return t, drive.ConnectFailed(c.tr, err)
	}
	caller, err := c.callers(conn, index)
	t2 := t1
	if err == nil {
		t2, err = first(bound, caller, s.gen, n)
	}
	t3 := engine.Now()
	closing := conn.Close()
	t4 := engine.Now()
	switch {
	case err != nil && r.Stop.Load() != 0 && reports.Code(err) != reports.ExitCorruption:
		return t, engine.ErrStop
	case err != nil:
		return t, drive.CallFailed(s.m.Sh, fmt.Errorf("connection %d: first call: %w", index, err))
	case closing != nil:
		return t, engine.Failed("close connection", closing)
	}
	return newTimes(t0, t0, t1, t2, t3, t4), nil
}

func first(ctx context.Context, c engine.Caller, gen int, n int64) (answered int64, err error) {
	if err := c.Begin(ctx, gen); err != nil {
		return 0, err
	}
	c.Prepare(n)
	err = c.Call()
	answered = engine.Now()
	if err != nil {
		return answered, err
	}
	if _, err := c.Check(0); err != nil {
		return answered, err
	}
	return answered, c.End()
}
