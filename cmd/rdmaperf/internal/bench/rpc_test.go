package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier/blob"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// carrierEnds are carriers of one configuration over devices that open makes.
func carrierEnds(cfg carrier.Config, open func(t testing.TB) (client, server rdma.Device)) ends {
	return func(t testing.TB) (transports.Transport, transports.Transport) {
		t.Helper()
		var devs [2]rdma.Device
		if open != nil {
			devs[0], devs[1] = open(t)
		}
		var out [2]transports.Transport
		for i := range out {
			c, err := carrier.New(cfg, devs[i])
			if err != nil {
				t.Fatal(err)
			}
			out[i] = owned(t, c)
		}
		return out[0], out[1]
	}
}

func iwarpDevices(t testing.TB) (rdma.Device, rdma.Device) {
	t.Helper()
	open := func() rdma.Device {
		d, err := iwarp.Open(iwarp.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return open(), open()
}

func memDevices(t testing.TB) (rdma.Device, rdma.Device) {
	t.Helper()
	f := memdev.NewFabric(memdev.Config{})
	open := func(name string) rdma.Device {
		d, err := f.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return open("client"), open("server")
}

func carriersUnderTest() map[string]ends {
	of := func(form carrier.Form, mode bpev.Mode) carrier.Config {
		c := carrier.Config{Form: form}
		c.Net.Polling.Mode = mode
		return c
	}
	return map[string]ends{
		"tcp":                carrierEnds(carrier.Config{Form: carrier.TCP}, nil),
		"tcp best":           carrierEnds(carrier.Config{Form: carrier.TCP, Options: carrier.Options{Best: true}}, nil),
		"unix":               carrierEnds(carrier.Config{Form: carrier.Unix}, nil),
		"bufconn":            carrierEnds(carrier.Config{Form: carrier.BufConn}, nil),
		"dropin iwarp":       carrierEnds(of(carrier.DropIn, bpev.BPEV), iwarpDevices),
		"fused iwarp":        carrierEnds(of(carrier.Fused, bpev.BPEV), iwarpDevices),
		"fused event iwarp":  carrierEnds(of(carrier.Fused, bpev.Event), iwarpDevices),
		"fused mem":          carrierEnds(of(carrier.Fused, bpev.BPEV), memDevices),
		"dropin event iwarp": carrierEnds(of(carrier.DropIn, bpev.Event), iwarpDevices),
	}
}

func rpcPoint(call string, request, response int) Point {
	return Point{Workload: WorkloadRPC, Op: "call", Call: call, Size: request, Response: response}
}

func TestRPCOnEveryCarrier(t *testing.T) {
	for name, e := range carriersUnderTest() {
		t.Run(name, func(t *testing.T) {
			several := rpcPoint(CallUnary, 100, 9)
			several.QPs, several.Outstanding = 3, 4
			points := []Point{several, rpcPoint(CallStream, 9, 300_000), rpcPoint(CallOneway, 70_000, 8)}
			if name == "unix" || name == "fused iwarp" {
				points = append(points, rpcPoint(CallUnary, 1, 1), rpcPoint(CallStream, 64, 64), rpcPoint(CallOneway, 1, 8))
			}
			plan := quickPlan(points...)
			plan.Iterations, plan.WarmupIterations, plan.Depth = 41, 10, 1
			results, err := runPoints(t, e, plan)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				pt := points[i]
				want := int64(41 * max(pt.QPs, 1))
				server, _ := r.Parameters["server"].(map[string]any)
				switch {
				case r.Operations != want || server["operations"] != want:
					t.Errorf("%s: %d operations, %v at the server, want %d", pt, r.Operations, server["operations"], want)
				case !r.Verified || r.Errors != 0:
					t.Errorf("%s: verified %v, %d errors", pt, r.Verified, r.Errors)
				case r.RPC == nil || r.RPC.Call != pt.Call || r.Depth != max(pt.Outstanding, 1) || r.QPs != max(pt.QPs, 1):
					t.Errorf("%s: %+v, depth %d, %d connections", pt, r.RPC, r.Depth, r.QPs)
				case (r.Latency == nil) != (pt.Call == CallOneway):
					t.Errorf("%s: latency %v", pt, r.Latency)
				case r.Latency != nil && (r.Latency.Count != want || r.RoundTrip != reports.RoundTripFull):
					t.Errorf("%s: %d samples of a %s round trip", pt, r.Latency.Count, r.RoundTrip)
				case r.Throughput == nil || r.Throughput.OperationsPerSecond <= 0:
					t.Errorf("%s: throughput %+v", pt, r.Throughput)
				case r.RPC.Idle == nil || r.RPC.Resident == nil || r.RPC.Resident.ServerBytes <= 0:
					t.Errorf("%s: idle %+v, resident %+v", pt, r.RPC.Idle, r.RPC.Resident)
				}
			}
		})
	}
}

func TestRPCOpenLoopCountsFromIntendedStarts(t *testing.T) {
	pt := rpcPoint(CallUnary, 64, 64)
	pt.Rate, pt.QPs = 2000, 4
	plan := quickPlan(pt)
	plan.Iterations, plan.Duration, plan.Interval, plan.Depth = 0, 300*time.Millisecond, 100*time.Millisecond, 1
	results, err := runPoints(t, carriersUnderTest()["fused iwarp"], plan)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.LatencyService == nil || r.LatencyService.Count != r.Latency.Count || r.Latency.Mean < r.LatencyService.Mean {
		t.Errorf("latency %+v, service %+v", r.Latency, r.LatencyService)
	}
	sent := float64(r.Operations) + float64(r.Parameters["unsent_operations"].(int64))
	if sent < 590 || sent > 610 {
		t.Errorf("%v calls were due in 0.3 s at 2000 a second", sent)
	}
	if r.Series == nil || len(r.Series.Points) != 3 {
		t.Errorf("series %+v", r.Series)
	}
}

// bent replaces the workload's row for one test.
func bent(t *testing.T, change func(w *callWork)) {
	t.Helper()
	row := findWorkload(WorkloadRPC)
	before := row.calls
	w := *before
	change(&w)
	row.calls = &w
	t.Cleanup(func() { row.calls = before })
}

// flipper damages the last byte of the 20th request.
type flipper struct {
	*unaryCaller
	n int
}

func (f *flipper) call() error {
	if f.n++; f.n == 20 {
		f.request.Bytes = append([]byte(nil), f.request.Bytes...)
		f.request.Bytes[len(f.request.Bytes)-1] ^= 0x40
	}
	return f.unaryCaller.call()
}

// liar answers with a damaged byte from the 20th call on.
type liar struct {
	*echo
	n int
}

func (l *liar) Unary(ctx context.Context, in *blob.Message) (*blob.Message, error) {
	out, err := l.echo.Unary(ctx, in)
	if l.n++; err == nil && l.n > 20 {
		out.Bytes = append([]byte(nil), out.Bytes...)
		out.Bytes[7] ^= 1
	}
	return out, err
}

func TestRPCFindsChangedBytes(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(w *callWork)
	}{
		{"request", "request: byte 63 is", func(w *callWork) {
			callers := w.callers
			w.callers = func(sh *Shape) func(carrier.Conn, int) (caller, error) {
				one := callers(sh)
				return func(conn carrier.Conn, index int) (caller, error) {
					c, err := one(conn, index)
					return &flipper{unaryCaller: c.(*unaryCaller)}, err
				}
			}
		}},
		{"response", "response: byte 7 is", func(w *callWork) {
			w.serve = func(sh *Shape, r grpc.ServiceRegistrar, fail func(error)) (callService, error) {
				l := &liar{echo: &echo{sh: sh, fail: fail}}
				blob.Register(r, l)
				return l, l.begin(genWarmup)
			}
		}},
	} {
		for _, stack := range []string{"unix", "fused iwarp"} {
			t.Run(c.name+" "+stack, func(t *testing.T) {
				bent(t, c.change)
				plan := quickPlan(rpcPoint(CallUnary, 64, 64))
				plan.Depth = 1
				_, err := runPoints(t, carriersUnderTest()[stack], plan)
				if reports.Code(err) != reports.ExitCorruption || !strings.Contains(err.Error(), c.want) {
					t.Errorf("code %d: %v, want %d and %q", reports.Code(err), err, reports.ExitCorruption, c.want)
				}
			})
		}
	}
}

// sleeper answers nothing from the 20th call on.
type sleeper struct {
	*echo
	n int
}

func (s *sleeper) Unary(ctx context.Context, in *blob.Message) (*blob.Message, error) {
	if s.n++; s.n > 20 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.echo.Unary(ctx, in)
}

func TestRPCEndsWithAServerThatAnswersNothing(t *testing.T) {
	bent(t, func(w *callWork) {
		w.serve = func(sh *Shape, r grpc.ServiceRegistrar, fail func(error)) (callService, error) {
			s := &sleeper{echo: &echo{sh: sh, fail: fail}}
			blob.Register(r, s)
			return s, s.begin(genWarmup)
		}
	})
	for _, stack := range []string{"tcp", "fused iwarp"} {
		plan := quickPlan(rpcPoint(CallUnary, 64, 64))
		plan.Depth, plan.Timeout = 1, time.Second
		_, err := runPoints(t, carriersUnderTest()[stack], plan)
		if reports.Code(err) != reports.ExitPeer || !errors.Is(err, errStalled) {
			t.Errorf("%s: code %d: %v", stack, reports.Code(err), err)
		}
	}
}

func TestRPCInterruptKeepsWhatWasMeasured(t *testing.T) {
	client, server := carriersUnderTest()["fused iwarp"](t)
	plan := quickPlan(rpcPoint(CallStream, 64, 64))
	plan.Iterations, plan.Duration, plan.Depth = 0, time.Minute, 2
	res, err := cutShort(t, serveOn(t, &Server{Open: openerOf(server)}), client, plan)
	if !errors.Is(err, ErrInterrupted) || res.Operations == 0 || res.Latency == nil || res.CPU == nil || res.CPU.ServerSeconds == 0 {
		t.Errorf("%v; %d operations, CPU %+v", err, res.Operations, res.CPU)
	}
}

func TestPhrasesAreToldByTheirFirstByte(t *testing.T) {
	for _, n := range []int{1, 2, 255, 256, 257, 5000} {
		p, other := newPhrase(7, genMeasure, toServer, n), newPhrase(7, genMeasure, toClient, n)
		seen := map[byte]bool{}
		same := 0
		for i := range int64(firstBytes) {
			m := p.cut(i)
			if len(m) != n || seen[m[0]] {
				t.Fatalf("message %d of %d bytes: length %d, first byte %d seen %v", i, n, len(m), m[0], seen[m[0]])
			}
			seen[m[0]] = true
			if &p.of(m[0])[0] != &m[0] {
				t.Fatalf("message %d of %d bytes is not found by its first byte", i, n)
			}
			if string(m) == string(other.cut(i)) {
				same++
			}
		}
		if same > 8 {
			t.Errorf("%d of 256 messages of %d bytes are the same both ways", same, n)
		}
	}
}
