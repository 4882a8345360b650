package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// With every message compared, a change is found in every operation, or ends the connection; none passes for verified.
func TestTamperingIsFound(t *testing.T) {
	const size, messages = 6000, 300
	for name, open := range enginetest.Unchecked {
		for _, workload := range []string{throughput.Name, latency.Name} {
			for _, op := range []string{"send", "write", "write_imm", "read"} {
				found := 0
				for _, part := range []float64{0.02, 0.35, 0.61, 0.93} {
					t.Run(fmt.Sprintf("%s/%s/%s/%v", name, workload, op, part), func(t *testing.T) {
						p := &enginetest.Tamper{T: t, At: int64(part * size * messages), Back: op == "read"}
						through := func(t testing.TB) (transports.Stack, transports.Stack) {
							return p.Sessions(open(t)), open(t)
						}
						plan := enginetest.QuickPlan(engine.Point{Workload: workload, Op: op, Size: size})
						plan.Iterations, plan.VerifyAll, plan.Timeout = messages, true, 5*time.Second
						results, err := enginetest.RunPoints(t, through, plan)
						_, bad := errors.AsType[*engine.CorruptionError](err)
						if bad && reports.Code(err) == reports.ExitCorruption {
							found++
						}
						if err == nil || len(results) > 0 && results[0].Verified {
							t.Errorf("swapped %v, error %v, results %+v", p.Swapped.Load(), err, results)
						}
					})
				}
				if found < 2 { // most of the stream is payload
					t.Errorf("%s %s %s: %d of 4 were seen as changed data", name, workload, op, found)
				}
			}
		}
	}
}

// All of the data is compared with --verify all, the sample and the numbers by default; and the results say so.
func TestVerificationIsCounted(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		for _, op := range []string{"send", "write", "write_imm", "read"} {
			for _, size := range []int{3, 200, 70_000} {
				for _, all := range []bool{false, true} {
					plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: op, Size: size},
						engine.Point{Workload: latency.Name, Op: op, Size: size})
					plan.VerifyAll = all
					results, err := enginetest.RunPoints(t, e, plan)
					if err != nil {
						t.Errorf("%s %s %d: %v", name, op, size, err)
						continue
					}
					for _, r := range results {
						v := r.Verification
						want := r.Operations
						if v == nil || v.Messages != want || !r.Verified {
							t.Fatalf("%s %s %s %d: %+v of %d", name, r.Workload, op, size, v, want)
						}
						whole := all || r.Workload == latency.Name
						switch {
						case whole && (v.Whole != want || v.Numbers != want || v.Bytes != want*int64(size)):
							t.Errorf("%s %s %s %d: %+v, want all of %d", name, r.Workload, op, size, v, want)
						case !whole && op != "write" && v.Numbers != want, v.Whole < 1 || v.Whole > v.Numbers ||
							v.Numbers > want:
							t.Errorf("%s %s %s %d: %+v of %d", name, r.Workload, op, size, v, want)
						}
					}
				}
			}
		}
	}
}

// A message that is lost, comes twice, or in another's place is found by its number, without a sample.
func TestNumbersFindWhatOrderLoses(t *testing.T) {
	for name, change := range map[string]func(ops []transports.Op, n int) []transports.Op{
		"swapped": func(ops []transports.Op, n int) []transports.Op {
			ops[0].Local, ops[1].Local = ops[1].Local, ops[0].Local
			return ops
		},
		"another in its place": func(ops []transports.Op, n int) []transports.Op {
			ops[0].Local = ops[1].Local
			return ops
		},
	} {
		for _, op := range []string{"send", "write_imm", "read"} {
			f, seen := &enginetest.Fault{}, 0
			f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
				if k := ops[0].Kind; len(ops) > 1 && ops[0].Len == 200 && (k == transports.KindSend ||
					k == transports.KindWriteImm || k == transports.KindRead) {
					if seen++; seen == 3 {
						return s.Post(change(append([]transports.Op(nil), ops...), seen))
					}
				}
				return s.Post(ops)
			}
			plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: op, Size: 200})
			plan.Iterations, plan.Moderation = 1000, 1
			if _, err := enginetest.RunPoints(t, enginetest.WithFault(f),
				plan); reports.Code(err) != reports.ExitCorruption {
				t.Errorf("%s %s: %v, want a corruption", op, name, err)
			}
		}
	}
}
