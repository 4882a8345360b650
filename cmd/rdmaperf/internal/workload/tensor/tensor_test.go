package tensor

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/payload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload))) }

func TestTensorsOnEveryCarrier(t *testing.T) {
	for name, e := range enginetest.CarriersUnderTest() {
		if strings.Contains(name, "event") || name == "tcp best" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var points []engine.Point
			for _, call := range TensorCalls() {
				points = append(points, TensorPoint(call, tensorWhole+1))
			}
			if name == "fused iwarp" {
				points = append(points, TensorPoint(TensorPush, 1), TensorPoint(TensorPull, 1<<20))
			}
			points[2].QPs, points[2].Outstanding = 2, 3
			plan := enginetest.QuickPlan(points...)
			plan.Iterations, plan.WarmupIterations, plan.Depth = 6, 2, 1
			for i, r := range workloadtest.Results(t, e, plan) {
				pt, d := points[i], callsresults.Of(&r)
				want := int64(6 * max(pt.QPs, 1))
				request, response := int64(pt.Size), int64(pt.Size)
				switch pt.Call {
				case TensorPush:
					response = tensorNote
				case TensorPull:
					request = tensorNote
				}
				bytes := r.Throughput.BytesPerSecond * float64(r.DurationNs) / 1e9
				if r.Operations != want || !r.Verified || r.Latency == nil || r.Latency.Count != want || d == nil ||
					d.Call != pt.Call || d.RequestBytes != request || d.ResponseBytes != response ||
					r.SizeBytes != int64(pt.Size) {
					t.Errorf("%s: %d operations, verified %v, %+v", pt, r.Operations, r.Verified, d)
				}
				if moved := float64(want * (request + response)); bytes < 0.99*moved || bytes > 1.01*moved {
					t.Errorf("%s: %v bytes, want %v", pt, bytes, moved)
				}
				if _, parts := r.Parameters["compared"]; parts != (pt.Size > tensorWhole) {
					t.Errorf("%s: compared %v", pt, r.Parameters["compared"])
				}
			}
		})
	}
}

// received is a message in pieces.
func received(b []byte) transports.Parts { return slices.Collect(slices.Chunk(b, 7000)) }

// Every byte of a long tensor is compared within tensorParts messages, of the first and of short ones at once.
func TestTensorsAreComparedInTurn(t *testing.T) {
	for _, size := range []int{1, 1000, tensorWhole, tensorWhole + 1, 100_003} {
		sh := &engine.Shape{Point: TensorPoint(TensorPush, size), Verify: true, Seed: 5}
		want := payload.NewSequence(sh.Seed, engine.GenMeasure, payload.ToServer, size).Cut(9)
		for at := 0; at < size; at += 1 + size/97 {
			b := append([]byte(nil), want...)
			b[at] ^= 0x10
			got := received(b)
			found := 0
			for n := range int64(tensorParts) {
				err := compare(sh, n+tensorParts, engine.SideServer, 0, got, want)
				if err != nil {
					found++
					if !strings.Contains(err.Error(), "byte ") || reports.Code(err) != reports.ExitCorruption {
						t.Fatalf("size %d, byte %d: %v", size, at, err)
					}
				}
			}
			if whole := size <= tensorWhole; found != 1 && !whole || found != tensorParts && whole {
				t.Errorf("size %d, byte %d: found in %d of %d messages", size, at, found, tensorParts)
			}
			if compare(sh, 0, engine.SideServer, 0, got, want) == nil {
				t.Errorf("size %d, byte %d: the first message of a phase passes", size, at)
			}
		}
		if compare(sh, 1, engine.SideServer, 0, received(want[:size-1]), want) == nil {
			t.Errorf("size %d: a byte less passes", size)
		}
	}
}

func TestAllOfEveryTensorIsCompared(t *testing.T) {
	const size = 100_003
	sh := &engine.Shape{Point: TensorPoint(TensorExchange, size), Verify: true, VerifyAll: true, Seed: 5}
	want := payload.NewSequence(sh.Seed, engine.GenMeasure, payload.ToServer, size).Cut(9)
	for _, at := range []int{0, size / 2, size - 1} {
		b := append([]byte(nil), want...)
		b[at] ^= 0x10
		for n := range int64(2 * tensorParts) {
			if compare(sh, n, engine.SideServer, 0, received(b), want) == nil {
				t.Fatalf("byte %d of tensor %d: passes", at, n)
			}
		}
	}
	plan := enginetest.QuickPlan(sh.Point)
	plan.VerifyAll, plan.Iterations, plan.WarmupIterations, plan.Depth = true, 6, 0, 1
	r := workloadtest.Results(t, enginetest.CarriersUnderTest()["fused iwarp"], plan)[0]
	v := r.Verification
	if _, parts := r.Parameters["compared"]; parts || v == nil || v.Mode != reports.VerifyAll || v.Bytes != 6*2*size {
		t.Errorf("%+v, parts %v: want all of %d bytes", v, parts, 6*2*size)
	}
}
