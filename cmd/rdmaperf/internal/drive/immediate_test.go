package drive_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A message whose bytes are all in place but which lost its immediate, or has one that nobody
// gave it or is another's, is found in a stream one way and both, and in a ping-pong.
func TestImmediatesAreWhereTheyBelong(t *testing.T) {
	const size, at = 200, 40
	for _, pt := range []engine.Point{
		{Workload: throughput.Name, Op: "write_imm", Size: size},
		{Workload: throughput.Name, Op: "write_imm", Size: size, Bidirectional: true},
		{Workload: throughput.Name, Op: "send", Size: size},
		{Workload: throughput.Name, Op: "send", Size: size, Bidirectional: true},
		{Workload: latency.Name, Op: "write_imm", Size: size},
	} {
		for _, bent := range []bool{false, true} {
			f, n := &enginetest.Fault{}, 0
			f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
				changed := append([]transports.Op(nil), ops...)
				for i := range changed {
					op := &changed[i]
					if op.Len != size || op.Kind != transports.KindSend && op.Kind != transports.KindWriteImm {
						continue
					}
					if n++; n != at || !bent {
						continue
					}
					switch {
					// the receive lies elsewhere
					case op.Kind == transports.KindWriteImm && pt.Workload == throughput.Name:
						op.Imm++
					case op.Kind == transports.KindWriteImm:
						op.Kind = transports.KindSend
					default:
						op.Kind, op.Imm = transports.KindWriteImm, at-1
					}
				}
				return s.Post(changed)
			}
			if pt.Bidirectional && pt.Op == "write_imm" { // whose receives lie elsewhere
				f.Post = nil
				f.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
					k, err := s.Poll(dst)
					for i := range dst[:k] {
						if dst[i].HasImm {
							n++
							dst[i].HasImm = n != at || !bent
						}
					}
					return k, err
				}
			}
			plan := enginetest.QuickPlan(pt)
			plan.Loop = engine.LoopPlain
			_, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
			if found := reports.Code(err) == reports.ExitCorruption; n < at || found != bent || !found && err != nil {
				t.Errorf("%s %s, both ways %v, bent %v: %v after %d", pt.Workload, pt.Op, pt.Bidirectional, bent, err,
					n)
			}
		}
	}
}
