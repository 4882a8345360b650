package drive_test

import (
	"context"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// plain takes PingPong away from a transport.
func plain(tr transports.Transport) transports.Transport { return &enginetest.Fault{Transport: tr} }

// The provider's loop runs where both ends have it, and else at neither; no sample is without time.
func TestTheLoopIsTheSameAtBothEnds(t *testing.T) {
	var points []engine.Point
	for k := transports.KindSend; k < transports.KindCall; k++ {
		points = append(points, engine.Point{Workload: latency.Name, Op: k.String(), Size: 8},
			engine.Point{Workload: latency.Name, Op: k.String(), Size: 8, Rate: 1e5})
	}
	for name, bend := range map[string]func(c, s transports.Transport) (transports.Transport, transports.Transport){
		"both":   func(c, s transports.Transport) (transports.Transport, transports.Transport) { return c, s },
		"client": func(c, s transports.Transport) (transports.Transport, transports.Transport) { return c, plain(s) },
		"server": func(c, s transports.Transport) (transports.Transport, transports.Transport) { return plain(c), s },
	} {
		t.Run(name, func(t *testing.T) {
			results, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
				return bend(enginetest.SessionEnds(t, enginetest.MemEnds))
			}, enginetest.QuickPlan(points...))
			if err != nil || len(results) != len(points) {
				t.Fatalf("%d results, %v", len(results), err)
			}
			for _, r := range results {
				if l := r.Latency; l == nil || l.Count != 300 || l.Min <= 0 || !r.Verified {
					t.Errorf("%s: latency %+v, verified %v", r.Op, l, r.Verified)
				}
				want := engine.LoopPlain
				if name == "both" {
					want = engine.LoopProvider
				}
				if r.Parameters["loop"] != want {
					t.Errorf("%s: loop %v, want %v", r.Op, r.Parameters["loop"], want)
				}
			}
		})
	}
}

// A byte that changes on the way, and a completion that never comes, are found by the loop in the provider, too.
func TestBatchesFindFaults(t *testing.T) {
	for fault, want := range map[memdev.Fault]int{memdev.FaultFlipByte: reports.ExitCorruption,
		memdev.FaultDropCompletion: reports.ExitPeer} {
		for _, op := range []string{"send", "write", "read"} {
			t.Run(fault.String()+"/"+op, func(t *testing.T) {
				plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: op, Size: 64})
				plan.Timeout = 300e6
				_, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
					f := memdev.NewFabric(memdev.Config{Seed: 1})
					f.Arm(fault, memdev.Trigger{After: 150, Device: "client"})
					return enginetest.OpenMem(t, f, "client"), enginetest.OpenMem(t, f, "server")
				}, plan)
				if reports.Code(err) != want {
					t.Errorf("error %v (exit %d), want exit %d", err, reports.Code(err), want)
				}
			})
		}
	}
}

// late is a server's transport whose sessions refuse every write for a full queue until they are polled.
type late struct {
	transports.Transport
	refused int
}

func (t *late) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	l, err := t.Transport.Listen(ctx, addr, cfg)
	return &lateListener{l, t}, err
}

type lateListener struct {
	transports.Listener
	t *late
}

func (l *lateListener) Accept(ctx context.Context) (transports.Session, []byte, error) {
	s, hello, err := l.Listener.Accept(ctx)
	return &lateSession{Session: s, t: l.t}, hello, err
}

type lateSession struct {
	transports.Session
	t           *late
	asked, room bool
}

func (s *lateSession) Post(ops []transports.Op) (int, error) {
	if ops[0].Kind == transports.KindWrite {
		if !s.room {
			s.t.refused++
			s.asked = true
			return 0, rdma.ErrQueueFull
		}
		s.asked, s.room = false, false
	}
	return s.Session.Post(ops)
}

func (s *lateSession) Poll(dst []transports.Done) (int, error) {
	s.room = s.asked
	return s.Session.Poll(dst)
}

// The next ping can arrive before the acknowledgement of the last pong.
func TestAnswersWaitForRoomInTheQueue(t *testing.T) {
	var server *late
	results, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
		c, s := enginetest.SessionEnds(t, enginetest.MemEnds)
		server = &late{Transport: plain(s)}
		return c, server
	}, enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "write", Size: 64}))
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 1 || results[0].Latency == nil || results[0].Latency.Count != 300 {
		t.Errorf("results = %+v, want one with 300 samples", results)
	}
	if server.refused < 300 {
		t.Errorf("%d answers had to wait, want every one", server.refused)
	}
}

// A message that lost its immediate, or has another's or one that nobody gave it, is found in every workload.
func TestImmediatesAreWhereTheyBelong(t *testing.T) {
	const size, at = 200, 40
	for _, pt := range []engine.Point{
		{Workload: throughput.Name, Op: "write_imm", Size: size},
		{Workload: throughput.Name, Op: "write_imm", Size: size, Bidirectional: true},
		{Workload: throughput.Name, Op: "send", Size: size},
		{Workload: throughput.Name, Op: "send", Size: size, Bidirectional: true},
		{Workload: latency.Name, Op: "write_imm", Size: size},
	} {
		for _, bent := range []bool{false, true} {
			f, n := &enginetest.Fault{}, 0
			f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
				changed := append([]transports.Op(nil), ops...)
				for i := range changed {
					op := &changed[i]
					if op.Len != size || op.Kind != transports.KindSend && op.Kind != transports.KindWriteImm {
						continue
					}
					if n++; n != at || !bent {
						continue
					}
					switch {
					// the receive lies elsewhere
					case op.Kind == transports.KindWriteImm && pt.Workload == throughput.Name:
						op.Imm++
					case op.Kind == transports.KindWriteImm:
						op.Kind = transports.KindSend
					default:
						op.Kind, op.Imm = transports.KindWriteImm, at-1
					}
				}
				return s.Post(changed)
			}
			if pt.Bidirectional && pt.Op == "write_imm" { // whose receives lie elsewhere
				f.Post = nil
				f.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
					k, err := s.Poll(dst)
					for i := range dst[:k] {
						if dst[i].HasImm {
							n++
							dst[i].HasImm = n != at || !bent
						}
					}
					return k, err
				}
			}
			plan := enginetest.QuickPlan(pt)
			plan.Loop = engine.LoopPlain
			_, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
			if found := reports.Code(err) == reports.ExitCorruption; n < at || found != bent || !found && err != nil {
				t.Errorf("%s %s, both ways %v, bent %v: %v after %d", pt.Workload, pt.Op, pt.Bidirectional, bent, err,
					n)
			}
		}
	}
}
