package bench

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier/blob"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestTensorsOnEveryCarrier(t *testing.T) {
	for name, e := range carriersUnderTest() {
		if strings.Contains(name, "event") || name == "tcp best" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var points []Point
			for _, call := range TensorCalls() {
				points = append(points, TensorPoint(call, tensorWhole+1))
			}
			if name == "fused iwarp" {
				points = append(points, TensorPoint(TensorPush, 1), TensorPoint(TensorPull, 1<<20))
			}
			points[2].QPs, points[2].Outstanding = 2, 3
			plan := quickPlan(points...)
			plan.Iterations, plan.WarmupIterations, plan.Depth = 6, 2, 1
			results, err := runPoints(t, e, plan)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				pt := points[i]
				want := int64(6 * max(pt.QPs, 1))
				request, response := int64(pt.Size), int64(pt.Size)
				switch pt.Call {
				case TensorPush:
					response = tensorNote
				case TensorPull:
					request = tensorNote
				}
				bytes := r.Throughput.BytesPerSecond * float64(r.DurationNs) / 1e9
				if r.Operations != want || !r.Verified || r.Latency == nil || r.Latency.Count != want || r.RPC == nil ||
					r.RPC.Call != pt.Call || r.RPC.RequestBytes != request || r.RPC.ResponseBytes != response || r.SizeBytes != int64(pt.Size) {
					t.Errorf("%s: %d operations, verified %v, %+v", pt, r.Operations, r.Verified, r.RPC)
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

// received is a message as gRPC gives it, in pieces.
func received(t *testing.T, b []byte, piece int) *blob.Message {
	t.Helper()
	var parts mem.BufferSlice
	for len(b) > 0 {
		n := min(piece, len(b))
		parts = append(parts, mem.SliceBuffer(b[:n]))
		b = b[n:]
	}
	m := new(blob.Message)
	if err := encoding.GetCodecV2("rdmaperf").Unmarshal(parts, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Of a long tensor every byte is compared within tensorParts messages, and of the first
// message of a phase and of a short one every byte.
func TestTensorsAreComparedInTurn(t *testing.T) {
	for _, size := range []int{1, 1000, tensorWhole, tensorWhole + 1, 100_003} {
		sh := &Shape{Point: TensorPoint(TensorPush, size), Verify: true, Seed: 5}
		p := newTensorPhase(sh, genMeasure, sideClient)
		want := p.out.cut(9)
		for at := 0; at < size; at += 1 + size/97 {
			b := append([]byte(nil), want...)
			b[at] ^= 0x10
			got := received(t, b, 7000)
			found := 0
			for n := range int64(tensorParts) {
				err := p.compare(n+tensorParts, sideServer, 0, got, want)
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
			if p.compare(0, sideServer, 0, got, want) == nil {
				t.Errorf("size %d, byte %d: the first message of a phase passes", size, at)
			}
			got.Free()
		}
		short := received(t, want[:size-1], 7000)
		if p.compare(1, sideServer, 0, short, want) == nil {
			t.Errorf("size %d: a byte less passes", size)
		}
		short.Free()
	}
}

// tensorLiar answers with a damaged last byte.
type tensorLiar struct{ *tensorServer }

func (l *tensorLiar) Unary(ctx context.Context, in *blob.Message) (*blob.Message, error) {
	out, err := l.tensorServer.Unary(ctx, in)
	if err == nil && l.now.Load().ops.Load() > 5 {
		out.Bytes = append([]byte(nil), out.Bytes...)
		out.Bytes[len(out.Bytes)-1] ^= 1
	}
	return out, err
}

// tensorFlipper damages the last byte of requests from the 5th on.
type tensorFlipper struct{ *tensorCaller }

func (f *tensorFlipper) call() error {
	if f.n >= 5 {
		f.request.Bytes = append([]byte(nil), f.request.Bytes...)
		f.request.Bytes[len(f.request.Bytes)-1] ^= 1
	}
	return f.tensorCaller.call()
}

func TestTensorsFindChangedBytes(t *testing.T) {
	for _, c := range []struct {
		call, side string
		change     func(w *callWork)
	}{
		{TensorPush, sideServer, func(w *callWork) {
			callers := w.callers
			w.callers = func(sh *Shape) func(carrier.Conn, int) (caller, error) {
				one := callers(sh)
				return func(conn carrier.Conn, index int) (caller, error) {
					c, err := one(conn, index)
					return &tensorFlipper{c.(*tensorCaller)}, err
				}
			}
		}},
		{TensorPull, sideClient, func(w *callWork) {
			w.serve = func(sh *Shape, r grpc.ServiceRegistrar, fail func(error)) (callService, error) {
				l := &tensorLiar{&tensorServer{sh: sh, fail: fail}}
				blob.Register(r, l)
				return l, l.begin(genWarmup)
			}
		}},
	} {
		for _, size := range []int{64, 100_000} {
			row := findWorkload(WorkloadTensor)
			before := row.calls
			w := *before
			c.change(&w)
			row.calls = &w
			plan := quickPlan(TensorPoint(c.call, size))
			plan.Depth, plan.Iterations = 1, 2*tensorParts
			_, err := runPoints(t, carriersUnderTest()["fused iwarp"], plan)
			row.calls = before
			if reports.Code(err) != reports.ExitCorruption || !strings.Contains(err.Error(), "seen by the "+c.side) {
				t.Errorf("%s of %d bytes: code %d: %v", c.call, size, reports.Code(err), err)
			}
		}
	}
}
