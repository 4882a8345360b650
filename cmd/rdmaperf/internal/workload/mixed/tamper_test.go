package mixed

import (
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// What changes on the way is found in what is written, and in what is read, on stacks
// without a check of their own.
func TestTamperingIsFoundInMixed(t *testing.T) {
	for name, open := range enginetest.Unchecked {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/back %v", name, back), func(t *testing.T) {
				o := someOptions(50)
				const ops = 200
				bytes := ops / 2 * 2970 // written; of reads 1929
				if back {
					bytes = ops / 2 * 1929
				}
				found := 0
				for _, part := range []float64{0.17, 0.52, 0.88} {
					p := &enginetest.Tamper{T: t, At: int64(part * float64(bytes)), Back: back}
					plan := enginetest.QuickPlan(pointOf(o))
					plan.Iterations, plan.WarmupIterations, plan.Depth, plan.VerifyAll, plan.Timeout = ops, 10, 4, true,
						2*time.Second
					results, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack,
						transports.Stack) {
						return p.Sessions(open(t)), open(t)
					}, plan)
					if !p.Swapped.Load() || err == nil || len(results) > 0 && results[0].Verified {
						t.Errorf("at %v: swapped %v, error %v", part, p.Swapped.Load(), err)
					}
					if reports.Code(err) == reports.ExitCorruption {
						found++
					}
				}
				if found == 0 {
					t.Error("no change was seen as one of the data")
				}
			})
		}
	}
}
