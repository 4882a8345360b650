package bench

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
)

// pair builds both crews of a shape in this process.
func pair(t testing.TB, e ends, plan Plan) (client, server *crew) {
	t.Helper()
	a, b := e(t)
	p := plan.withDefaults()
	sh, err := newShape(&p, p.Points[0], a.Caps(), b.Caps())
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Listen(t.Context(), "127.0.0.1:0", sh.config())
	if err != nil {
		t.Fatal(err)
	}
	var near, far []transports.Session
	for i := range sh.QPs {
		accepted := make(chan transports.Session, 1)
		go func() {
			s, _, err := l.Accept(t.Context())
			if err != nil {
				t.Errorf("accept: %v", err)
			}
			accepted <- s
		}()
		s, err := a.Dial(t.Context(), l.Addr(), []byte{byte(i)}, sh.config())
		if err != nil {
			t.Fatal(err)
		}
		near, far = append(near, s), append(far, <-accepted)
	}
	l.Close()
	if client, err = newCrew(sh, sideClient, near, -1, a.Caps()); err != nil {
		t.Fatal(err)
	}
	if server, err = newCrew(sh, sideServer, far, -1, b.Caps()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.close()
		server.close()
	})
	return client, server
}

// once runs one phase of a pair.
func once(t testing.TB, client, server *crew, gen int, lim limits) *outcome {
	t.Helper()
	for _, c := range []*crew{server, client} {
		if err := c.prepare(gen); err != nil {
			t.Fatal(err)
		}
	}
	target := server.start(limits{}, false)
	out := client.start(lim, client.sh.Workload != WorkloadThroughput).wait()
	target.halt(stopSoon)
	if e := target.wait().err; out.err != nil || e != nil {
		t.Fatalf("client %v, server %v", out.err, e)
	}
	return out
}

// phaseAllocations is what a phase may allocate, however long it is: the runtime's
// timers and threads, and before and behind the loops two lists of the process's
// threads, of which a whole test binary has many. All loops here take more operations.
const phaseAllocations = 200

// The loops of both sides allocate nothing per operation: what a phase allocates
// does not grow with its length.
func TestLoopsAllocateNothing(t *testing.T) {
	const operations = 20000
	for _, w := range []string{WorkloadLatency, WorkloadThroughput} {
		for k := transports.KindSend; k < transports.KindCall; k++ {
			t.Run(fmt.Sprintf("%s/%s", w, k), func(t *testing.T) {
				plan := quickPlan(Point{Workload: w, Op: k.String(), Size: 8})
				client, server := pair(t, memEnds, plan)
				once(t, client, server, 1, limits{ops: 100}) // grows what grows once
				release := holdCollector()
				defer release()
				out := once(t, client, server, 2, limits{ops: operations})
				if out.ops != operations {
					t.Fatalf("%d operations, want %d", out.ops, operations)
				}
				if out.usage.allocations > phaseAllocations {
					t.Errorf("%d allocations in %d operations, want none of the loops", out.usage.allocations, operations)
				}
			})
		}
	}
}

// The engine's own cost per operation, on a transport that costs little itself.
func BenchmarkLoop(b *testing.B) {
	for _, pt := range []Point{{Workload: WorkloadThroughput, Op: "write", Size: 64}, {Workload: WorkloadThroughput, Op: "send", Size: 64}, {Workload: WorkloadLatency, Op: "send", Size: 64}, {Workload: WorkloadLatency, Op: "write", Size: 64}} {
		for _, e := range []string{"mem", "tcp", "iwarp"} {
			b.Run(fmt.Sprintf("%s/%s/%s", pt.Workload, pt.Op, e), func(b *testing.B) {
				plan := quickPlan(pt)
				plan.Depth, plan.RecvDepth = 128, 512
				client, server := pair(b, stacksUnderTest[e], plan)
				once(b, client, server, 1, limits{ops: 1000})
				b.ResetTimer()
				out := once(b, client, server, 2, limits{ops: int64(b.N)})
				b.ReportMetric(float64(out.window.Nanoseconds())/float64(b.N), "ns/op")
			})
		}
	}
}

// One clock reading, as the loops take it.
func BenchmarkClock(b *testing.B) {
	var last int64
	for b.Loop() {
		last = now()
	}
	_ = last
}
