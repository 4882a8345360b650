package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// setups is the client's side of a phase. Its threads share the recorders, which
// are written between connections, never inside a timed part.
type setups struct {
	m     *measurement
	addr  string
	token []byte
	lim   limits
	gen   int

	mu     sync.Mutex
	stages [numStages]*reports.Recorder
	series *series
	ops    int64
	end    int64
	err    error // the first failure; a corruption wins
}

// runConnect takes a point of connection set-up through its phases.
func (m *measurement) runConnect(ctx context.Context) error {
	c, sh, p := m.c, m.sh, &m.c.plan
	answer, err := c.ask(ctx, sh, &message{Type: msgPoint, Shape: sh}, msgListening)
	if err != nil {
		return err
	}
	addr, err := c.dataAddr(sh, answer)
	if err != nil {
		return err
	}
	if _, err := c.hear(ctx, sh, msgConnected); err != nil {
		return err
	}
	reserveProcs(sh.QPs)
	defer releaseProcs(sh.QPs)
	phase := func(name string, gen int, lim limits, every time.Duration) (*outcome, error) {
		s := &setups{m: m, addr: addr, token: answer.Listening.Token, lim: lim, gen: gen}
		for i := range s.stages {
			s.stages[i] = reports.NewRecorder()
		}
		if every > 0 && lim.dur > 0 {
			s.series = newSeries(every, lim.dur)
		}
		return s.phase(ctx, name)
	}
	if p.WarmupIterations > 0 || p.WarmupDuration > 0 {
		if m.warm, err = phase("warm-up", genWarmup, limits{p.WarmupIterations, p.WarmupDuration}, 0); err != nil {
			return err
		}
	}
	if m.out, err = phase("measure", genMeasure, limits{p.Iterations, p.Duration}, p.Interval); err != nil {
		m.fail(ctx)
		return err
	}
	m.verified = sh.Verify
	_, err = c.ask(ctx, sh, &message{Type: msgEnd}, msgEnded)
	return err
}

func (s *setups) phase(ctx context.Context, name string) (*outcome, error) {
	c, sh := s.m.c, s.m.sh
	release := holdCollector()
	defer release()
	changes := countersAround(c.counters, s.gen)
	if _, err := c.ask(ctx, sh, &message{Type: msgPhase, Phase: &phaseStart{Name: name, Generation: s.gen}}, msgReady); err != nil {
		return nil, err
	}
	out, err := s.m.watch(ctx, s.start())
	if moved := changes(); moved != nil {
		s.m.counters.Client = moved
	}
	if err != nil {
		return out, err
	}
	fctx := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		fctx, cancel = context.WithTimeout(context.Background(), grace)
		defer cancel()
	}
	answer, err := c.ask(fctx, sh, &message{Type: msgStop, Stop: &phaseStop{}}, msgReport)
	if err != nil {
		return out, err
	}
	if s.gen == genMeasure {
		s.m.report = answer.Report
	}
	if ctx.Err() != nil {
		return out, interrupted()
	}
	return out, nil
}

// start lets one thread go for each connection at once.
func (s *setups) start() *run {
	r := &run{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	before := readUsage()
	begin := now()
	s.end = begin
	if s.series != nil {
		s.series.start(begin)
	}
	var ended sync.WaitGroup
	for i := range s.m.sh.QPs {
		ended.Add(1)
		go func() {
			defer ended.Done()
			runtime.LockOSThread() // as every worker; the thread ends with it
			if err := s.repeat(ctx, r, i, begin); err != nil {
				s.fail(err)
				r.halt(stopSoon)
			}
		}()
	}
	go func() {
		ended.Wait()
		cancel()
		r.out = outcome{rec: s.stages[stageReady], stages: &s.stages, series: s.series, ops: s.ops, begin: begin,
			window: time.Duration(s.end - begin), usage: readUsage().minus(before), err: s.err}
		close(r.done)
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

// repeat is one thread's loop.
func (s *setups) repeat(ctx context.Context, r *run, index int, begin int64) error {
	hello := binary.BigEndian.AppendUint32(append([]byte(nil), s.token...), uint32(index))
	cfg := s.m.sh.config()
	var created int64
	cfg.Created = func() { created = now() }
	for n := int64(0); s.lim.ops == 0 || n < s.lim.ops; n++ {
		var took [numStages]int64
		created = 0
		t0 := now()
		session, err := s.m.c.tr.Dial(ctx, s.addr, hello, cfg)
		t1 := now()
		if err != nil {
			if r.stop.Load() != 0 {
				return nil
			}
			return transportError("connect session", err)
		}
		if created == 0 { // a transport that tells nothing has one stage
			created = t0
		}
		t2, err := s.first(session, r, index, n)
		t3 := now()
		closing := session.Close()
		t4 := now()
		switch {
		case err == errStop:
			return nil
		case err != nil:
			return err
		case closing != nil:
			return failed("close session", closing)
		}
		took = [numStages]int64{stageCreate: created - t0, stageConnect: t1 - created, stageFirst: t2 - t1, stageDisconnect: t4 - t3,
			stageReady: t2 - t0, stageFull: t2 - t0 + t4 - t3}
		s.record(&took, t4)
		if r.stop.Load() != 0 || s.lim.dur > 0 && t4-begin >= int64(s.lim.dur) {
			return nil
		}
	}
	return nil
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
		s.series.sample(s.end, took[stageReady])
	}
}

// first is the first round trip: bytes of this connection alone, to the server's
// window and back. It returns when they were there; they are compared after that.
func (s *setups) first(session transports.Session, r *run, index int, n int64) (int64, error) {
	sh := s.m.sh
	mem := session.Local()
	state := patternState(sh.Seed, s.gen, index, int(n))
	fillPattern(mem[:sh.Size], state)
	back := sh.rxSlot(0)
	ops := [...]transports.Op{
		{Kind: transports.KindWrite, Flags: transports.Quiet, Remote: uint64(back), Len: uint32(sh.Size)},
		{Kind: transports.KindRead, Local: uint64(back), Remote: uint64(back), Len: uint32(sh.Size)},
	}
	lost := func(operation string, err error) error {
		return peerError(sh.Point.String(), fmt.Errorf("connection %d: %s: %w", index, operation, err), "the log of the server side")
	}
	if k, err := session.Post(ops[:]); k < len(ops) {
		return 0, lost("post", err)
	}
	var done [4]transports.Done
	var spins int
	patience := now() + int64(sh.Timeout)
	for {
		k, err := session.Poll(done[:])
		t := now()
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
		if spins++; spins%spinLook == 0 {
			switch {
			case r.stop.Load() == stopNow:
				return t, errStop
			case t > patience:
				return t, lost("first round trip", errors.New("no progress"))
			}
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // as offers, but a setup is one wait
		}
	}
}

func (s *setups) compare(got []byte, state uint64, index int) error {
	if !s.m.sh.Verify {
		return nil
	}
	i, want := matchPattern(got, state)
	if i < 0 {
		return nil
	}
	return corrupted(&CorruptionError{Point: s.m.sh.Point.String(), Side: sideClient, QP: index, What: "first answer", Offset: i, Want: want, Got: got[i]})
}
