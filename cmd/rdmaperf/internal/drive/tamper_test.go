package drive_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/incast"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/paramserver"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/tensor"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// tampered is a point whose stream is changed; bytes are about those that a connection carries that way.
type tampered struct {
	name  string
	pt    engine.Point
	ops   int64
	bytes int64
	back  bool
}

// holds runs a point with two words swapped in its stream, here and there: nothing passes for verified, and some change
// is seen as one of the data. Of HTTP/2 only messages are changed.
func (c tampered) holds(t *testing.T, http2 bool, through func(*enginetest.Tamper) enginetest.Ends) {
	found := 0
	for _, part := range []float64{0.17, 0.52, 0.88} {
		p := &enginetest.Tamper{T: t, At: int64(part * float64(c.bytes)), Back: c.back, HTTP2: http2}
		plan := enginetest.QuickPlan(c.pt)
		plan.Iterations, plan.VerifyAll, plan.Timeout = c.ops, true, 2*time.Second
		results, err := enginetest.RunPoints(t, through(p), plan)
		if !p.Swapped.Load() || err == nil || len(results) > 0 && results[0].Verified {
			t.Errorf("%s at %v: swapped %v, error %v", c.name, part, p.Swapped.Load(), err)
		}
		if reports.Code(err) == reports.ExitCorruption {
			found++
		}
	}
	if found == 0 {
		t.Errorf("%s: no change was seen as one of the data", c.name)
	}
}

// training is a point of a model of two tensors.
func training() engine.Point {
	const file = "testdata/tiny.csv"
	m, err := paramserver.LoadModel(file)
	if err != nil {
		panic(err)
	}
	pt, err := paramserver.NewPoint(m, file, paramserver.ArmFIFO, 4, 0)
	if err != nil {
		panic(err)
	}
	return pt
}

const tinyBytes = 4 * 5700

// What changes on the way is found in every workload of sessions; the engine's tests hold the others.
func TestTamperingIsFoundInEveryWorkload(t *testing.T) {
	const size = 6000
	train := training()
	starve := engine.Point{Workload: starvation.Name, Op: "write", Size: size,
		Options: engine.PackOptions(starvation.Load{High: 80, Priority: 1})}
	dial := engine.Point{Workload: connect.Name, Op: "read", Size: 50_000}
	var points []tampered
	for _, op := range []string{"send", "write", "write_imm", "read"} {
		for _, back := range []bool{false, true} {
			points = append(points, tampered{"both ways " + op,
				engine.Point{Workload: throughput.Name, Op: op, Size: size, Bidirectional: true}, 60, 60 * size, back})
		}
	}
	for _, arm := range []string{hol.SameQP, hol.TwoQP, hol.AppSlicing} {
		points = append(points, tampered{"hol " + arm, hol.NewPoint("write", 20_000, arm,
			hol.Options{BulkDepth: 4, AppSlice: 4096, AppWindow: 3}), 20, 20 * 20_000, false})
	}
	points = append(points,
		tampered{"hol send", hol.NewPoint("send", 20_000, hol.SameQP, hol.Options{BulkDepth: 4}), 20, 20 * 20_000,
			false},
		tampered{"starvation", starve, 100, 100 * size, false},
		tampered{"incast", engine.Point{Workload: incast.Name, Op: "send", Size: size, QPs: 3}, 40, 40 * size, false},
		tampered{"connect", dial, 3, 50_000, false}, tampered{"connect back", dial, 3, 50_000, true},
		tampered{"paramserver", train, 6, 6 * tinyBytes, false},
		tampered{"paramserver back", train, 6, 6 * tinyBytes, true})
	for name, open := range enginetest.Unchecked {
		for _, c := range points {
			t.Run(fmt.Sprintf("%s/%s/back %v", name, c.name, c.back), func(t *testing.T) {
				if k, _ := transports.ParseKind(c.pt.Op); !open(t).Caps().Kinds.Has(k) {
					t.Skipf("%s has no %s", name, c.pt.Op)
				}
				c.holds(t, false, func(p *enginetest.Tamper) enginetest.Ends {
					return func(t testing.TB) (transports.Stack, transports.Stack) {
						return p.Sessions(open(t)), open(t)
					}
				})
			})
		}
	}
}

// And in every workload of calls, over gRPC without TLS.
func TestTamperingIsFoundInEveryCall(t *testing.T) {
	const size = 6000
	unary := engine.Point{Workload: rpc.Name, Op: "call", Call: engine.CallUnary, Size: size, Response: size}
	stream := engine.Point{Workload: rpc.Name, Op: "call", Call: engine.CallStream, Size: size, Response: size}
	records := kv.KVPoint(kv.KVLoad{Mix: "a", Records: 50, Fields: 2, FieldBytes: 2000, MaxScan: 3})
	tcp := enginetest.CarriersUnderTest()["tcp"]
	for _, c := range []tampered{
		{"rpc", unary, 40, 40 * size, false}, {"rpc back", unary, 40, 40 * size, true},
		{"rpc stream", stream, 40, 40 * size, false}, {"rpc stream back", stream, 40, 40 * size, true},
		{"tensor push", tensor.TensorPoint("push", 100_000), 10, 10 * 100_000, false},
		{"tensor pull", tensor.TensorPoint("pull", 100_000), 10, 10 * 100_000, true},
		{"hol", hol.NewPoint("call", 20_000, hol.SameQP, hol.Options{BulkDepth: 2}), 20, 20 * 20_000, false},
		{"incast", rpc.CallPoint(engine.Point{Workload: incast.Name, Op: "call", Size: size, QPs: 2}, true), 30,
			30 * size, false},
		{"kv updates", records, 60, 20 * 2000, false},
		{"kv reads back", records, 60, 20 * 4000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.holds(t, true, func(p *enginetest.Tamper) enginetest.Ends {
				return func(t testing.TB) (transports.Stack, transports.Stack) {
					client, server := tcp(t)
					calls, err := transports.Calls(client)
					if err != nil {
						t.Fatal(err)
					}
					return p.Calls(calls), server
				}
			})
		})
	}
}
