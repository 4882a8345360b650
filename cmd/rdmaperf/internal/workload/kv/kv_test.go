package kv

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv/ycsb"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload), new(rpc.Workload))) }

func smallLoad(mix string) KVLoad {
	return KVLoad{Mix: mix, Records: 300, Fields: 3, FieldBytes: 40, MaxScan: 10}
}

func TestKVOnEveryCarrier(t *testing.T) {
	for name, e := range enginetest.CarriersUnderTest() {
		if strings.Contains(name, "event") || name == "tcp best" {
			continue // how a carrier waits is nothing to this workload
		}
		t.Run(name, func(t *testing.T) {
			mixes := ycsb.Mixes()
			if name != "fused iwarp" {
				mixes = mixes[4:5] // the longest answers
			}
			var points []engine.Point
			for _, mix := range mixes {
				pt := KVPoint(smallLoad(mix))
				pt.QPs, pt.Outstanding = 2, 3
				points = append(points, pt)
			}
			plan := enginetest.QuickPlan(points...)
			plan.Iterations, plan.WarmupIterations, plan.Depth = 150, 10, 1
			for i, r := range workloadtest.Results(t, e, plan) {
				pt := points[i]
				mix, _ := ycsb.FindMix(mixes[i])
				if r.Operations != 300 || !r.Verified || r.Latency == nil || r.Latency.Count != 300 || r.Depth != 3 ||
					r.QPs != 2 || r.Throughput.BytesPerSecond <= 0 {
					t.Errorf("%s: %d operations, verified %v, latency %+v, depth %d, %d connections", pt, r.Operations,
						r.Verified, r.Latency, r.Depth, r.QPs)
				}
				k := Of(&r)
				if k == nil || callsresults.Of(&r) == nil || k.Mix != mix.Name || k.Records != 300 ||
					k.Requests != mix.Requests() {
					t.Fatalf("%s: %+v, %+v", pt, k, callsresults.Of(&r))
				}
				var sum, inserts int64
				for _, o := range k.Operations {
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
				if sum != 300 || len(k.Operations) != kinds || k.Inserted < inserts ||
					mix.Has(ycsb.Insert) != (k.Inserted > 0) || mix.Has(ycsb.Scan) != (k.MaxScan == 10) {
					t.Errorf("%s: %d operations of %d kinds, inserted %d, scans of %d", pt, sum, len(k.Operations),
						k.Inserted, k.MaxScan)
				}
			}
		})
	}
}

func TestKVOpenLoop(t *testing.T) {
	pt := KVPoint(smallLoad("f"))
	pt.Rate, pt.QPs = 1000, 2
	plan := enginetest.QuickPlan(pt)
	plan.Iterations, plan.Duration, plan.Depth = 0, 200*time.Millisecond, 1
	r := workloadtest.Results(t, enginetest.CarriersUnderTest()["fused iwarp"], plan)[0]
	if r.LatencyService == nil || Of(&r) == nil || len(Of(&r).Operations) != 2 {
		t.Errorf("service %+v, %+v", r.LatencyService, Of(&r))
	}
}

type bentKV struct {
	*caller
	before func(c *caller) (skip bool)
}

func (b *bentKV) Call() error {
	if b.before(b.caller) {
		return nil
	}
	return b.caller.Call()
}

type bentRun struct {
	*Workload
	before func(*caller) bool
}

func (b bentRun) Client(ctx context.Context, r *engine.Run) error {
	sh, l, cfg, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	one := callers(sh, l)
	k, err := drive.ConnectCalls(ctx, r, sh, cfg,
		drive.Callers(sh, false, func(conn transports.CallConn, index int) (engine.Caller, error) {
			c, err := one(conn, index)
			if err != nil {
				return nil, err
			}
			return &bentKV{c.(*caller), b.before}, nil
		}))
	if err != nil {
		return err
	}
	return k.Close(ctx, k.Run(ctx))
}

func TestKVFindsDamage(t *testing.T) {
	for _, c := range []struct {
		name, mix, want string
		before          func(c *caller) bool
	}{
		{"other contents", "c", "(seen by the client)", func(c *caller) bool { c.cfg.Seed++; return false }},
		{"a changed update", "a", ": byte ", func(c *caller) bool { c.field[30] ^= 1; return false }},
		{"a lost insert", "d", "is missing", func(c *caller) bool { return c.op.Op == ycsb.Insert }},
		{"another key", "e", "a scan begins at", func(c *caller) bool {
			c.key = ycsb.AppendKey(c.key[:0], c.op.Record+1)
			return false
		}},
		{"a changed insert", "e", ": byte ", func(c *caller) bool { c.record[30] ^= 1; return false }},
	} {
		plan := enginetest.QuickPlan(KVPoint(smallLoad(c.mix)))
		plan.Depth, plan.Iterations = 1, 400
		plan.Workloads = engine.Table{Name: {Runner: bentRun{new(Workload), c.before}}}
		workloadtest.Corrupts(t, c.name, enginetest.CarriersUnderTest()["unix"], plan, c.want)
	}
}

func TestKVPointsAreChecked(t *testing.T) {
	for want, bend := range map[string]func(*KVLoad, *engine.Point){
		"mix":                    func(l *KVLoad, _ *engine.Point) { l.Mix = "g" },
		"0 records":              func(l *KVLoad, _ *engine.Point) { l.Records = 0 },
		"records have 120 bytes": func(_ *KVLoad, p *engine.Point) { p.Size = 121 },
		"fields of 4 bytes":      func(l *KVLoad, _ *engine.Point) { l.FieldBytes = 4 },
		"unary calls":            func(_ *KVLoad, p *engine.Point) { p.Call = engine.CallStream },
	} {
		l := smallLoad("a")
		pt := KVPoint(l)
		if bend(&l, &pt); l.check(pt) == nil || !strings.Contains(l.check(pt).Error(), want) {
			t.Errorf("%+v: %v, want %q", pt, l.check(pt), want)
		}
	}
	l := smallLoad("c")
	l.Records = 1000
	plan := enginetest.QuickPlan(KVPoint(l))
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
