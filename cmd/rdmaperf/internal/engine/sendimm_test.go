package engine_test

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func sendImmPlan(size int) engine.Plan {
	return enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send_imm", Size: size},
		engine.Point{Workload: throughput.Name, Op: "send_imm", Size: size})
}

// A send with immediate carries both where the device has room for both, and over iWARP the
// immediate alone; every one of them is compared.
func TestSendsWithImmediateAreCompared(t *testing.T) {
	for name, c := range map[string]struct {
		ends  enginetest.Ends
		size  int
		bytes int64 // compared of each, at least
	}{"mem": {enginetest.MemEnds, 200, 8}, "iwarp": {enginetest.IwarpEnds, engine.ImmAloneSize, 4}} {
		results, err := enginetest.RunPoints(t, c.ends, sendImmPlan(c.size))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, r := range results {
			v := r.Verification
			if !r.Verified || v == nil || v.Messages != r.Operations || v.Numbers != r.Operations ||
				v.Bytes < c.bytes*r.Operations {
				t.Errorf("%s %s: verified %v, %+v of %d", name, r.Workload, r.Verified, v, r.Operations)
			}
		}
	}
}

func TestSendsWithImmediateAreRefused(t *testing.T) {
	both := sendImmPlan(8)
	both.Points[1].Bidirectional = true
	for name, c := range map[string]struct {
		ends enginetest.Ends
		plan engine.Plan
		code int
		says string
	}{
		"not declared": {enginetest.TcpEnds, sendImmPlan(8), reports.ExitNotRun, "no operation send_imm"},
		"no room":      {enginetest.IwarpEnds, sendImmPlan(64), reports.ExitNotRun, "immediate alone"},
		"both ways":    {enginetest.MemEnds, both, reports.ExitUsage, "one way"},
	} {
		_, err := enginetest.RunPoints(t, c.ends, c.plan)
		if reports.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want code %d and %q", name, err, c.code, c.says)
		}
	}
}

// Another immediate, and a message that comes without, are corruptions.
func TestAWrongImmediateIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		ends enginetest.Ends
		size int
		kind transports.Kind
	}{
		"mem/another":   {enginetest.MemEnds, 200, transports.KindSendImm},
		"mem/none":      {enginetest.MemEnds, 200, transports.KindSend},
		"iwarp/another": {enginetest.IwarpEnds, engine.ImmAloneSize, transports.KindSendImm},
	} {
		for i, p := range sendImmPlan(c.size).Points {
			seen := 0
			f := &enginetest.Fault{Post: func(s transports.Session, ops []transports.Op) (int, error) {
				if ops[0].Kind == transports.KindSendImm {
					if seen++; seen == 3 {
						ops = append([]transports.Op(nil), ops...)
						ops[0].Kind = c.kind
						ops[0].Imm ^= 1 << 20
					}
				}
				return s.Post(ops)
			}}
			plan := enginetest.QuickPlan(p)
			plan.Loop = engine.LoopPlain // the fault is in Post
			_, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
				client, server := enginetest.SessionEnds(t, c.ends)
				f.Transport = client
				return f, server
			}, plan)
			if reports.Code(err) != reports.ExitCorruption {
				t.Errorf("%s %d: %v, want a corruption", name, i, err)
			}
		}
	}
}
