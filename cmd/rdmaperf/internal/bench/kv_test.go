package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench/ycsb"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/reports"
)

func kvPoint(mix string) Point {
	return KVPoint(KVLoad{Mix: mix, Records: 300, Fields: 3, FieldBytes: 40, MaxScan: 10})
}

func TestKVOnEveryCarrier(t *testing.T) {
	for name, e := range carriersUnderTest() {
		if strings.Contains(name, "event") || name == "tcp best" {
			continue // how a carrier waits is nothing to this workload
		}
		t.Run(name, func(t *testing.T) {
			var points []Point
			for _, mix := range KVMixes() {
				pt := kvPoint(mix)
				pt.QPs, pt.Outstanding = 2, 3
				points = append(points, pt)
			}
			if name != "fused iwarp" {
				points = points[4:5] // the longest answers
			}
			plan := quickPlan(points...)
			plan.Iterations, plan.WarmupIterations, plan.Depth = 150, 10, 1
			results, err := runPoints(t, e, plan)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				pt := points[i]
				mix, _ := ycsb.FindMix(pt.KV.Mix)
				if r.Operations != 300 || !r.Verified || r.Latency == nil || r.Latency.Count != 300 || r.Depth != 3 || r.QPs != 2 || r.Throughput.BytesPerSecond <= 0 {
					t.Errorf("%s: %d operations, verified %v, latency %+v, depth %d, %d connections", pt, r.Operations, r.Verified, r.Latency, r.Depth, r.QPs)
				}
				if r.KV == nil || r.RPC == nil || r.KV.Mix != pt.KV.Mix || r.KV.Records != 300 || r.KV.Requests != mix.Request.String() {
					t.Fatalf("%s: %+v, %+v", pt, r.KV, r.RPC)
				}
				var sum, inserts int64
				for _, o := range r.KV.Operations {
					sum += o.Operations
					if o.Op == "insert" {
						inserts = o.Operations
					}
					if o.Latency.Count != o.Operations || o.Store.Count != o.Operations || o.Store.Min <= 0 || o.Store.Mean >= o.Latency.Mean || o.PerSecond <= 0 {
						t.Errorf("%s: %s %d operations, %+v, in the store %+v", pt, o.Op, o.Operations, o.Latency, o.Store)
					}
				}
				kinds := 0
				for op := range ycsb.NumOps {
					if mix.Has(op) {
						kinds++
					}
				}
				if sum != 300 || len(r.KV.Operations) != kinds || r.KV.Inserted < inserts || mix.Has(ycsb.Insert) != (r.KV.Inserted > 0) || mix.Has(ycsb.Scan) != (r.KV.MaxScan == 10) {
					t.Errorf("%s: %d operations of %d kinds, inserted %d, scans of %d", pt, sum, len(r.KV.Operations), r.KV.Inserted, r.KV.MaxScan)
				}
			}
		})
	}
}

func TestKVOpenLoop(t *testing.T) {
	pt := kvPoint("f")
	pt.Rate, pt.QPs = 1000, 2
	plan := quickPlan(pt)
	plan.Iterations, plan.Duration, plan.Depth = 0, 200*time.Millisecond, 1
	results, err := runPoints(t, carriersUnderTest()["fused iwarp"], plan)
	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; r.LatencyService == nil || r.KV == nil || len(r.KV.Operations) != 2 {
		t.Errorf("service %+v, %+v", r.LatencyService, r.KV)
	}
}

// bentKV is a caller that does wrong.
type bentKV struct {
	*kvCaller
	before func(c *kvCaller) (skip bool)
}

func (b *bentKV) call() error {
	if b.before(b.kvCaller) {
		return nil
	}
	return b.kvCaller.call()
}

// What comes back changed, what is stored changed and what is not there ends a run as a
// corruption, whoever notices.
func TestKVFindsDamage(t *testing.T) {
	for _, c := range []struct {
		name, mix, want string
		before          func(c *kvCaller) bool
	}{
		{"other contents", "c", "(seen by the client)", func(c *kvCaller) bool { c.cfg.Seed++; return false }},
		{"a changed update", "a", ": byte ", func(c *kvCaller) bool { c.field[30] ^= 1; return false }},
		{"a lost insert", "d", "is missing", func(c *kvCaller) bool { return c.op.Op == ycsb.Insert }},
		{"another key", "e", "a scan begins at", func(c *kvCaller) bool { c.key = ycsb.AppendKey(c.key[:0], c.op.Record+1); return false }},
		{"a changed insert", "e", ": byte ", func(c *kvCaller) bool { c.record[30] ^= 1; return false }},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := findWorkload(WorkloadKV)
			before := row.calls
			t.Cleanup(func() { row.calls = before })
			w := *before
			w.callers = func(sh *Shape) func(carrier.Conn, int) (caller, error) {
				one := before.callers(sh)
				return func(conn carrier.Conn, index int) (caller, error) {
					made, err := one(conn, index)
					if err != nil {
						return nil, err
					}
					return &bentKV{made.(*kvCaller), c.before}, nil
				}
			}
			row.calls = &w
			plan := quickPlan(kvPoint(c.mix))
			plan.Depth, plan.Iterations = 1, 400
			_, err := runPoints(t, carriersUnderTest()["unix"], plan)
			if reports.Code(err) != reports.ExitCorruption || !strings.Contains(err.Error(), c.want) {
				t.Errorf("code %d: %v, want %d and %q", reports.Code(err), err, reports.ExitCorruption, c.want)
			}
		})
	}
}

func TestKVPointsAreChecked(t *testing.T) {
	for want, bend := range map[string]func(*Point){
		"mix":                    func(p *Point) { p.KV.Mix = "g" },
		"0 records":              func(p *Point) { p.KV.Records = 0 },
		"records have 120 bytes": func(p *Point) { p.Size = 121 },
		"fields of 4 bytes":      func(p *Point) { p.KV.FieldBytes = 4 },
		"unary calls":            func(p *Point) { p.Call = CallStream },
		"only the workload kv":   func(p *Point) { *p = rpcPoint(CallUnary, 1, 1); p.KV.Mix = "a" },
		"outstanding":            func(p *Point) { p.Outstanding = -1 },
	} {
		pt := kvPoint("a")
		bend(&pt)
		if err := pt.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", pt, err, want)
		}
	}
	// A server refuses to store more than it was allowed.
	pt := kvPoint("c")
	pt.KV.Records = 1000
	plan := quickPlan(pt)
	plan.Depth = 1
	client, server := carriersUnderTest()["unix"](t)
	c, err := Connect(t.Context(), serveOn(t, &Server{Open: openerOf(server), MaxWindow: 100 << 10}), client, plan)
	if err == nil {
		c.Close()
	}
	if reports.Code(err) != reports.ExitUsage || !strings.Contains(err.Error(), "a store of ") {
		t.Errorf("144 kB on a server for 100 KiB: %v", err)
	}
}
