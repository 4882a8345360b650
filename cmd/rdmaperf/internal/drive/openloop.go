package drive

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// In an open loop operations start when they are due, or right after the one before; a wait is part of the latency.

const (
	// pollUntil: further ahead than this the thread polls its session, which keeps a soft transport awake; then it only
	// watches the clock, so that no poll of some 500 ns delays the start.
	pollUntil = 2000 // ns
)

// pacer is that of the i-th of n who share a rate a second, and how many ns it begins later: constant arrivals
// interleave.
func pacer(rate float64, poisson bool, seed uint64, i, n int) (p *engine.Pacer, shift int64) {
	if !poisson {
		shift = int64(float64(i) * 1e9 / rate)
	}
	return engine.NewPacer(float64(n)*1e9/rate, poisson, seed+uint64(i)), shift
}

// Paced gives the i-th of n workers its pacer, where a rate is given.
func Paced(w *engine.Worker, sh *engine.Shape, i, n int) {
	if sh.Rate > 0 {
		w.Pace, w.PaceShift = pacer(sh.Rate, sh.Arrivals == engine.ArrivalsPoisson, sh.Seed, i, n)
	}
}

// paced is each with intended starts. A window by duration ends at its deadline also when nothing is due.
func (w *pingPongWorker) paced(divide int64, one func(w *pingPongWorker, l *pingPongLane) (t0, t1 int64,
	err error)) error {
	deadline := w.Open()
	for n := int64(0); w.Lim.Ops == 0 || n < w.Lim.Ops; n++ {
		for _, l := range w.lanes {
			due := w.Pace.Due()
			t, late, err := w.awaitStart(l, min(due, deadline))
			if err != nil {
				w.End = engine.Now()
				w.Overdue(min(w.End, deadline))
				return err
			}
			if t >= deadline {
				w.End = t
				w.Overdue(deadline)
				return nil
			}
			if late {
				w.Late++
			}
			w.Pace.Next()
			t0, t1, err := one(w, l)
			if err != nil {
				w.End = engine.Now()
				w.Rec.AtLeast(w.End-due, 1) // what is under way counts, too
				w.Unanswered++
				w.Overdue(min(w.End, deadline))
				return err
			}
			service := (t1 - t0) / divide
			w.Record(t1, t0-due+service, service)
			w.Service.Record(service)
			w.Ops++
			w.End = t1
			if w.Stopped() {
				return engine.ErrStop
			}
		}
	}
	return nil
}

func openLoop(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	service := out.Service.Snapshot()
	res.LatencyService = &service
	res.OpenLoop = OpenLoopOf(m, out, m.Sh.Rate, m.Sh.Arrivals == engine.ArrivalsPoisson, out.Service.Count(),
		out.Window)
	res.Parameters["rate_achieved"] = res.OpenLoop.AchievedPerSecond
	res.Parameters["late_operations"], res.Parameters["unsent_operations"] = out.Late, out.Unsent
}

// OpenLoopOf says what of a load was done. A window by duration is as long as it was meant to be: what ends behind it
// began inside.
func OpenLoopOf(m *engine.Measurement, o *engine.Outcome, rate float64, poisson bool, completed int64,
	took time.Duration) *reports.OpenLoop {
	if d := m.Plan.Duration; d > 0 && o.Err == nil {
		took = d
	}
	return reports.NewOpenLoop(rate, poisson, completed+o.Unanswered, completed, o.Unsent, o.Late, took)
}

// awaitStart spins until t and returns the time, and whether t had come before. Nothing is under way.
func (w *pingPongWorker) awaitStart(l *pingPongLane, t int64) (at int64, late bool, err error) {
	if at = engine.Now(); at >= t {
		return at, true, nil
	}
	for at < t {
		if w.Stopped() {
			return at, false, engine.ErrStop
		}
		if t-at > pollUntil {
			n, err := l.S.Poll(w.Done)
			if n > 0 {
				err = errors.New("a completion that nothing asked for")
			}
			if err != nil {
				return at, false, w.Lost(&l.Lane, "poll", err)
			}
		}
		at = engine.Now()
	}
	return at, false, nil
}

// nullSession completes every operation in Post and answers every message: a sample on it is the loop's own share.
type nullSession struct {
	mem   []byte
	done  [2 * engine.LatencySlots]transports.Done
	n     int
	recvs [engine.LatencySlots]uint32
	taken int // receives used
}

func (s *nullSession) Local() []byte              { return s.mem }
func (s *nullSession) RemoteLen() uint64          { return uint64(len(s.mem)) }
func (s *nullSession) Wait(context.Context) error { return nil }
func (s *nullSession) Close() error               { return nil }

func (s *nullSession) PingPong([]transports.PingPongStep, []transports.Done) (int, error) {
	return 0, rdma.ErrNotSupported
}

func (s *nullSession) Post(ops []transports.Op) (int, error) {
	for i := range ops {
		op := &ops[i]
		if op.Kind == transports.KindRecv {
			continue // slots come round in order
		}
		s.done[s.n] = transports.Done{Slot: op.Slot, Kind: op.Kind}
		s.done[s.n+1] = transports.Done{Slot: s.recvs[s.taken%engine.LatencySlots], Kind: transports.KindRecv,
			Len: op.Len}
		s.n += 2
		s.taken++
	}
	return len(ops), nil
}

func (s *nullSession) Poll(dst []transports.Done) (int, error) {
	n := copy(dst, s.done[:s.n])
	s.n = 0
	return n, nil
}

// loopOverhead is the median of the loop's own share of a round trip, in ns, not halved; 0 when not known.
var loopOverhead = sync.OnceValue(func() float64 { return MeasureOverhead(engine.Limits{Dur: 50 * time.Millisecond}) })

func MeasureOverhead(lim engine.Limits) float64 {
	sh := &engine.Shape{Point: engine.Point{Op: transports.KindSend.String(), Size: 64}, QPs: 1, Threads: 1, Depth: 1,
		RecvDepth: engine.LatencySlots, Moderation: 1, Slots: engine.LatencySlots, Polling: engine.PollingBusy,
		Arrival: engine.ArrivalMessage, Timeout: engine.DefaultTimeout}
	sh.Layout = PingPongLayout(sh)
	s := &nullSession{mem: make([]byte, sh.Window())}
	for i := range s.recvs {
		s.recvs[i] = uint32(i)
	}
	w := &pingPongWorker{Worker: engine.NewWorker(sh, engine.SideClient, -1)}
	l, err := newPingPongLane(w.Worker, engine.NewLane(s, sh, 0))
	if err != nil {
		return 0
	}
	defer l.ref.Free()
	w.lanes = []*pingPongLane{l}
	w.Rec, w.Lim, w.Stop = reports.NewRecorder(), lim, new(atomic.Uint32)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := w.each(1, messages.sample); err != nil {
		return 0
	}
	return w.Rec.Snapshot().P50
}
