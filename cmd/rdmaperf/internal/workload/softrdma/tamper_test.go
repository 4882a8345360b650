package softrdma

import (
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// TestTamperingIsFoundInEveryPoint: of the points that the workload is made of, over stacks
// that leave what happens on the way to TCP's checksum, none passes for verified with two
// words swapped, and most changes are seen as such of the data.
func TestTamperingIsFoundInEveryPoint(t *testing.T) {
	points, err := new(Workload).Points(&workload.Common{Plan: &engine.Plan{},
		Changed: func(string) bool { return false }})
	if err != nil || len(points) == 0 {
		t.Fatalf("%d points: %v", len(points), err)
	}
	for name, open := range enginetest.Unchecked {
		t.Run(name, func(t *testing.T) {
			found, tried := 0, 0
			for i, pt := range points {
				// About a megabyte of each; long messages are fewer, and never less than three.
				messages := int64(max(3, min(300, 1_000_000/pt.Size)))
				part := []float64{0.22, 0.71}[i%2]
				p := &enginetest.Tamper{T: t, At: int64(part * float64(messages) * float64(pt.Size))}
				through := func(t testing.TB) (transports.Stack, transports.Stack) {
					return p.Sessions(open(t)), open(t)
				}
				plan := enginetest.QuickPlan(pt)
				plan.Iterations, plan.VerifyAll, plan.Timeout = messages, true, 2*time.Second
				results, err := enginetest.RunPoints(t, through, plan)
				what := fmt.Sprintf("%s of %d at depth %d, %v", pt.Workload, pt.Size, pt.Depth, part)
				if !p.Swapped.Load() || err == nil || len(results) > 0 && results[0].Verified {
					t.Errorf("%s: swapped %v, error %v", what, p.Swapped.Load(), err)
				}
				if tried++; reports.Code(err) == reports.ExitCorruption {
					found++
				}
			}
			// What is not is a header, whose change ends the connection: of 64 bytes those are
			// a third of the stream or more.
			if found < tried*2/3 {
				t.Errorf("%d of %d were seen as changed data", found, tried)
			}
		})
	}
}
