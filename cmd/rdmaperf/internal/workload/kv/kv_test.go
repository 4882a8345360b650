package kv

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	kvresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func kvPoint(mix string) engine.Point {
	return KVPoint(KVLoad{Mix: mix, Records: 300, Fields: 3, FieldBytes: 40, MaxScan: 10})
}

func TestKVOnEveryCarrier(t *testing.T) {
	for name, e := range enginetest.CarriersUnderTest() {
		if strings.Contains(name, "event") || name == "tcp best" {
			continue // how a carrier waits is nothing to this workload
		}
		t.Run(name, func(t *testing.T) {
			var points []engine.Point
			for _, mix := range KVMixes() {
				pt := kvPoint(mix)
				pt.QPs, pt.Outstanding = 2, 3
				points = append(points, pt)
			}
			if name != "fused iwarp" {
				points = points[4:5] // the longest answers
			}
			plan := enginetest.QuickPlan(points...)
			plan.Iterations, plan.WarmupIterations, plan.Depth = 150, 10, 1
			results, err := enginetest.RunPoints(t, e, plan)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				pt := points[i]
				mix, _ := ycsb.FindMix(loadOf(pt).Mix)
				if r.Operations != 300 || !r.Verified || r.Latency == nil || r.Latency.Count != 300 || r.Depth != 3 ||
					r.QPs != 2 || r.Throughput.BytesPerSecond <= 0 {
					t.Errorf("%s: %d operations, verified %v, latency %+v, depth %d, %d connections", pt, r.Operations,
						r.Verified, r.Latency, r.Depth, r.QPs)
				}
				if kvresults.Of(&r) == nil || callsresults.Of(&r) == nil || kvresults.Of(&r).Mix != loadOf(pt).Mix ||
					kvresults.Of(&r).Records != 300 || kvresults.Of(&r).Requests != mix.Request.String() {
					t.Fatalf("%s: %+v, %+v", pt, kvresults.Of(&r), callsresults.Of(&r))
				}
				var sum, inserts int64
				for _, o := range kvresults.Of(&r).Operations {
					sum += o.Operations
					if o.Op == "insert" {
						inserts = o.Operations
					}
					if o.Latency.Count != o.Operations || o.Store.Count != o.Operations || o.Store.Min <= 0 ||
						o.Store.Mean >= o.Latency.Mean || o.PerSecond <= 0 {
						t.Errorf("%s: %s %d operations, %+v, in the store %+v", pt, o.Op, o.Operations, o.Latency,
							o.Store)
					}
				}
				kinds := 0
				for op := range ycsb.NumOps {
					if mix.Has(op) {
						kinds++
					}
				}
				if sum != 300 || len(kvresults.Of(&r).Operations) != kinds || kvresults.Of(&r).Inserted < inserts ||
					mix.Has(ycsb.Insert) != (kvresults.Of(&r).Inserted > 0) ||
					mix.Has(ycsb.Scan) != (kvresults.Of(&r).MaxScan == 10) {
					t.Errorf("%s: %d operations of %d kinds, inserted %d, scans of %d", pt, sum,
						len(kvresults.Of(&r).Operations), kvresults.Of(&r).Inserted, kvresults.Of(&r).MaxScan)
				}
			}
		})
	}
}

func TestKVOpenLoop(t *testing.T) {
	pt := kvPoint("f")
	pt.Rate, pt.QPs = 1000, 2
	plan := enginetest.QuickPlan(pt)
	plan.Iterations, plan.Duration, plan.Depth = 0, 200*time.Millisecond, 1
	results, err := enginetest.RunPoints(t, enginetest.CarriersUnderTest()["fused iwarp"], plan)
	if err != nil {
		t.Fatal(err)
	}
	if r := results[0]; r.LatencyService == nil || kvresults.Of(&r) == nil || len(kvresults.Of(&r).Operations) != 2 {
		t.Errorf("service %+v, %+v", r.LatencyService, kvresults.Of(&r))
	}
}

// reload changes the load of a point.
func reload(p *engine.Point, change func(*KVLoad)) {
	l := loadOf(*p)
	change(&l)
	p.Options = engine.PackOptions(l)
}

// bentKV is a caller that does wrong.
type bentKV struct {
	*kvCaller
	before func(c *kvCaller) (skip bool)
}

func (b *bentKV) Call() error {
	if b.before(b.kvCaller) {
		return nil
	}
	return b.kvCaller.Call()
}

// bentRun is the workload with callers that are bent.
type bentRun struct {
	*Workload
	before func(*kvCaller) bool
}

func (b bentRun) Client(ctx context.Context, r *engine.Run) error {
	sh, _, cfg, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	one := kvCallers(sh)
	k, err := drive.ConnectCalls(ctx, r, sh, cfg,
		drive.Callers(sh, false, func(conn transports.CallConn, index int) (engine.Caller, error) {
			c, err := one(conn, index)
			if err != nil {
				return nil, err
			}
			return &bentKV{c.(*kvCaller), b.before}, nil
		}))
	if err != nil {
		return err
	}
	return k.Close(ctx, k.Run(ctx))
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
		{"another key", "e", "a scan begins at", func(c *kvCaller) bool {
			c.key = ycsb.AppendKey(c.key[:0], c.op.Record+1)
			return false
		}},
		{"a changed insert", "e", ": byte ", func(c *kvCaller) bool { c.record[30] ^= 1; return false }},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := enginetest.QuickPlan(kvPoint(c.mix))
			plan.Depth, plan.Iterations = 1, 400
			plan.Workloads = engine.Table{Name: {Runner: bentRun{new(Workload), c.before}}}
			_, err := enginetest.RunPoints(t, enginetest.CarriersUnderTest()["unix"], plan)
			if reports.Code(err) != reports.ExitCorruption || !strings.Contains(err.Error(), c.want) {
				t.Errorf("code %d: %v, want %d and %q", reports.Code(err), err, reports.ExitCorruption, c.want)
			}
		})
	}
}

func TestKVPointsAreChecked(t *testing.T) {
	for want, bend := range map[string]func(*engine.Point){
		"mix":                    func(p *engine.Point) { reload(p, func(l *KVLoad) { l.Mix = "g" }) },
		"0 records":              func(p *engine.Point) { reload(p, func(l *KVLoad) { l.Records = 0 }) },
		"records have 120 bytes": func(p *engine.Point) { p.Size = 121 },
		"fields of 4 bytes":      func(p *engine.Point) { reload(p, func(l *KVLoad) { l.FieldBytes = 4 }) },
		"unary calls":            func(p *engine.Point) { p.Call = engine.CallStream },
	} {
		pt := kvPoint("a")
		bend(&pt)
		if l := loadOf(pt); l.check(pt) == nil || !strings.Contains(l.check(pt).Error(), want) {
			t.Errorf("%+v: %v, want %q", pt, l.check(pt), want)
		}
	}
	// A server refuses to store more than it was allowed.
	pt := kvPoint("c")
	reload(&pt, func(l *KVLoad) { l.Records = 1000 })
	plan := enginetest.QuickPlan(pt)
	plan.Depth = 1
	client, server := enginetest.CarriersUnderTest()["unix"](t)
	c, err := engine.Connect(t.Context(),
		enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server),
			MaxWindow: 100 << 10}), client, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Run(t.Context(), 0); reports.Code(err) != reports.ExitUsage ||
		!strings.Contains(err.Error(), "a store of ") {
		t.Errorf("144 kB on a server for 100 KiB: %v", err)
	}
}
