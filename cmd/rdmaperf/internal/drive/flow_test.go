package drive_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

var streams = [2]engine.NewSide{drive.NewFlow, drive.NewFlow}

// Both sides send exactly what was asked, verified, by every operation on every stack, busy and sleeping.
func TestBothWaysAreExact(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		client, _ := e(t)
		caps := client.Caps()
		for _, polling := range []string{engine.PollingBusy, engine.PollingEvent} {
			t.Run(name+"/"+polling, func(t *testing.T) {
				plan := enginetest.QuickPlan()
				plan.Polling, plan.QPs, plan.Iterations, plan.WarmupIterations = polling, 2, 70, 10
				for _, k := range []transports.Kind{transports.KindSend, transports.KindWrite, transports.KindWriteImm,
					transports.KindRead} {
					for _, size := range []int{1, 3, 64, 5000, 64 << 10} {
						if caps.Kinds.Has(k) && (polling == engine.PollingBusy || size == 64) {
							plan.Points = append(plan.Points, engine.Point{Workload: throughput.Name, Op: k.String(),
								Size: size, Bidirectional: true})
						}
					}
				}
				results, err := enginetest.RunPoints(t, e, plan)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range results {
					b := reports.DetailOf[drive.Bidirectional](&r)
					if b == nil || b.FromClient.Operations != 140 || b.FromServer.Operations != 140 ||
						r.Operations != 280 || !r.Verified || r.MeasuredBy != "both" {
						t.Fatalf("%s: %+v, of both %d, verified %v, want 140 each way", plan.Points[i], b, r.Operations,
							r.Verified)
					}
					sum := b.FromClient.BytesPerSecond + b.FromServer.BytesPerSecond
					if b.FromServer.BytesPerSecond <= 0 || r.Throughput.BytesPerSecond != sum {
						t.Errorf("%s: throughput %v, want the sum %v", plan.Points[i], r.Throughput.BytesPerSecond, sum)
					}
				}
			})
		}
	}
}

// Whatever the depths and the moderation, a stream does exactly what was asked, and nobody waits for ever.
func TestStreamsAreExactForAnyShape(t *testing.T) {
	client, server := enginetest.SessionEnds(t, enginetest.MemEnds)
	addr := enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)})
	for ways := int64(1); ways <= 2; ways++ {
		rapid.Check(t, func(rt *rapid.T) {
			depth := rapid.IntRange(1, 70).Draw(rt, "depth")
			plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name,
				Op:   rapid.SampledFrom([]string{"send", "write", "write_imm", "read"}).Draw(rt, "op"),
				Size: rapid.SampledFrom([]int{1, 2, 4, 5, 63, 64, 65, 700}).Draw(rt, "size"), Bidirectional: ways == 2})
			plan.Depth = depth
			plan.Moderation = rapid.IntRange(0, depth).Draw(rt, "moderation")
			plan.RecvDepth = rapid.IntRange(1, 90).Draw(rt, "receives")
			plan.Iterations = rapid.Int64Range(1, 400).Draw(rt, "operations")
			plan.WarmupIterations = rapid.Int64Range(0, 50).Draw(rt, "warm-up")
			plan.QPs = rapid.IntRange(1, 3).Draw(rt, "qps")
			plan.Threads = rapid.IntRange(1, plan.QPs).Draw(rt, "threads")
			r, err := enginetest.Try(t.Context(), addr, client, plan)
			if err != nil {
				rt.Fatal(err)
			}
			if want := ways * plan.Iterations * int64(plan.QPs); r.Operations != want || !r.Verified {
				rt.Fatalf("%d operations, verified %v, want %d, true", r.Operations, r.Verified, want)
			}
		})
	}
}

// A duration holds for both sides, and an interval divides the client's.
func TestBothWaysLastAsLongAsAsked(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		t.Run(name, func(t *testing.T) {
			plan := enginetest.QuickPlan()
			for _, op := range []string{"send", "write", "read"} {
				plan.Points = append(plan.Points, engine.Point{Workload: throughput.Name, Op: op, Size: 4096,
					Bidirectional: true})
			}
			plan.Iterations, plan.Duration, plan.Interval = 0, 60*time.Millisecond, 20*time.Millisecond
			results, err := enginetest.RunPoints(t, e, plan)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				b := reports.DetailOf[drive.Bidirectional](&r)
				if b.FromClient.DurationNs < int64(plan.Duration) || b.FromServer.DurationNs <= 0 ||
					b.FromServer.Operations == 0 || !r.Verified {
					t.Errorf("%s: %+v, verified %v", r.Op, b, r.Verified)
				}
				var sum int64
				for _, p := range r.Series.Points {
					sum += p.Operations
				}
				if sum != b.FromClient.Operations {
					t.Errorf("%s: %d operations in the intervals, want the client's %d", r.Op, sum,
						b.FromClient.Operations)
				}
			}
		})
	}
}

// An interrupt ends both directions in order, and what was done counts.
func TestBothWaysCanBeInterrupted(t *testing.T) {
	client, server := enginetest.SessionEnds(t, enginetest.TcpEnds)
	addr := enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)})
	for range 2 {
		plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: "send", Size: 64, Bidirectional: true})
		plan.Iterations = 1 << 40
		r, err := enginetest.CutShort(t, addr, client, plan)
		b := reports.DetailOf[drive.Bidirectional](&r)
		if !errors.Is(err, engine.ErrInterrupted) || b == nil || b.FromServer.Operations == 0 ||
			b.FromClient.Operations == 0 {
			t.Errorf("%v, %+v, want an interrupt with both directions", err, b)
		}
	}
}

// One changed bit is found by the side that got it, in either direction.
func TestBothWaysFindAChangedBit(t *testing.T) {
	const size, at = 200, 137
	point := engine.Point{Workload: throughput.Name, Op: "send", Size: size, Bidirectional: true}
	plan := enginetest.QuickPlan(point)
	client, server := enginetest.SessionEnds(t, enginetest.MemEnds)
	sh := enginetest.ShapeOf(t, plan, client.Caps(), server.Caps(), drive.ThroughputShape)
	inbound := &enginetest.Fault{}
	inbound.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
		n, err := s.Poll(dst)
		for _, d := range dst[:n] {
			if d.Kind == transports.KindRecv && d.Len == size {
				s.Local()[sh.RxSlot(int(d.Slot))+at] ^= 0x10
			}
		}
		return n, err
	}
	for side, f := range map[string]*enginetest.Fault{engine.SideServer: enginetest.FlipAfter(150, at),
		engine.SideClient: inbound} {
		_, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
		var bad *engine.CorruptionError
		if reports.Code(err) != reports.ExitCorruption || !errors.As(err, &bad) || bad.Side != side ||
			bad.Offset != at {
			t.Errorf("%v (%+v), want a corruption at %d seen by the %s", err, bad, at, side)
		}
	}
}

// A client that says it is done and is not costs the server its timeout at most.
func TestServerLeavesAnUnfinishedConversation(t *testing.T) {
	client, server := enginetest.Pair(t, enginetest.MemEnds,
		enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: "send", Size: 8, Bidirectional: true}),
		drive.ThroughputShape, streams)
	for _, c := range []*engine.Group{server, client} {
		if err := c.Side.Prepare(1); err != nil {
			t.Fatal(err)
		}
	}
	r := server.Start(engine.Limits{}, false)
	if said, err := drive.SendStart(client.Side); !said || err != nil {
		t.Fatal(said, err)
	}
	r.Halt(engine.StopSoon)
	c := &engine.ServedClient{Plan: engine.Plan{Timeout: 50 * time.Millisecond}, Ctl: new(engine.Control),
		Server: new(engine.Server)}
	if err := c.NewServe(engine.Point{}, time.Second).Join(t.Context(), r); reports.Code(err) != reports.ExitPeer {
		t.Errorf("%v, want a peer that does not answer", err)
	}
}

// Both ways every message has a number: one that is exchanged, changed, or lost is found long before the end. A lost
// write leaves no trace where nothing compares its slot, so all passes are compared here.
func TestBothWaysAreNumbered(t *testing.T) {
	for what, bend := range map[string]func(op, before *transports.Op, mem []byte){
		"nothing":              func(_, _ *transports.Op, _ []byte) {},
		"another in its place": func(op, before *transports.Op, _ []byte) { op.Local = before.Local },
		"changed":              func(op, _ *transports.Op, mem []byte) { mem[op.Local] ^= 4 },
		"lost": func(op, before *transports.Op, _ []byte) {
			if op.Kind == transports.KindWrite {
				op.Len = 0
			} else { // the receive is taken, by the message of a phase before
				op.Local = before.Local
			}
		},
	} {
		for _, op := range []string{"send", "write", "write_imm", "read"} {
			for _, size := range []int{3, 20_000, 3 << 20} {
				bad, total := 90, int64(120)
				if size > 1<<20 { // four slots, which control messages take, too
					if bad, total = 8, 12; op != "send" {
						continue
					}
				}
				f, n := &enginetest.Fault{}, 0
				var last transports.Op
				f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
					for i, op := range ops { // one by one: what is refused comes again, and is the same message
						counts := int(op.Len) == size && op.Kind != transports.KindRecv
						changed := []transports.Op{op}
						kept := s.Local()[op.Local]
						switch bent := counts && n+1 == bad; {
						case bent && op.Kind != transports.KindRead:
							bend(&changed[0], &last, s.Local())
						case bent && what != "nothing": // a read brings what lies elsewhere
							changed[0].Remote = last.Remote
						}
						if k, err := s.Post(changed); k == 0 {
							s.Local()[op.Local] = kept
							return i, err
						} else if counts {
							n, last = n+1, op
						}
					}
					return len(ops), nil
				}
				plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: op, Size: size,
					Bidirectional: true})
				plan.Iterations, plan.VerifyAll = total, op == "write"
				results, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
				if what == "nothing" && err == nil {
					if v := results[0].Verification; v.Messages != results[0].Operations || v.Numbers > v.Messages {
						t.Errorf("%s of %d: %d operations both ways, of which %d messages, %d numbers", op, size,
							results[0].Operations, v.Messages, v.Numbers)
					}
				}
				if found := reports.Code(err) == reports.ExitCorruption; n < bad || found == (what == "nothing") ||
					!found && err != nil {
					t.Errorf("%s, %s of %d: %v after %d messages", what, op, size, err, n)
				}
			}
		}
	}
}
