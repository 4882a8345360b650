package drive_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Both ways every message has a number: one that is exchanged, changed, or lost is found long before the end. A lost
// write leaves no trace where nothing compares its slot, so all passes are compared here.
func TestBothWaysAreNumbered(t *testing.T) {
	for what, bend := range map[string]func(op, before *transports.Op, mem []byte){
		"nothing":              func(_, _ *transports.Op, _ []byte) {},
		"another in its place": func(op, before *transports.Op, _ []byte) { op.Local = before.Local },
		"changed":              func(op, _ *transports.Op, mem []byte) { mem[op.Local] ^= 4 },
		"lost": func(op, before *transports.Op, _ []byte) {
			if op.Kind == transports.KindWrite {
				op.Len = 0
			} else { // the receive is taken, by the message of a phase before
				op.Local = before.Local
			}
		},
	} {
		for _, op := range []string{"send", "write", "write_imm", "read"} {
			for _, size := range []int{3, 20_000, 3 << 20} {
				bad, total := 90, int64(120)
				if size > 1<<20 { // four slots, which control messages take, too
					if bad, total = 8, 12; op != "send" {
						continue
					}
				}
				f, n := &enginetest.Fault{}, 0
				var last transports.Op
				f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
					for i, op := range ops { // one by one: what is refused comes again, and is the same message
						counts := int(op.Len) == size && op.Kind != transports.KindRecv
						changed := []transports.Op{op}
						kept := s.Local()[op.Local]
						switch bent := counts && n+1 == bad; {
						case bent && op.Kind != transports.KindRead:
							bend(&changed[0], &last, s.Local())
						case bent && what != "nothing": // a read brings what lies elsewhere
							changed[0].Remote = last.Remote
						}
						if k, err := s.Post(changed); k == 0 {
							s.Local()[op.Local] = kept
							return i, err
						} else if counts {
							n, last = n+1, op
						}
					}
					return len(ops), nil
				}
				plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: op, Size: size,
					Bidirectional: true})
				plan.Iterations, plan.VerifyAll = total, op == "write"
				results, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
				if what == "nothing" && err == nil {
					if v := results[0].Verification; v.Messages != results[0].Operations || v.Numbers > v.Messages {
						t.Errorf("%s of %d: %d operations both ways, of which %d messages, %d numbers", op, size,
							results[0].Operations, v.Messages, v.Numbers)
					}
				}
				if found := reports.Code(err) == reports.ExitCorruption; n < bad || found == (what == "nothing") ||
					!found && err != nil {
					t.Errorf("%s, %s of %d: %v after %d messages", what, op, size, err, n)
				}
			}
		}
	}
}
