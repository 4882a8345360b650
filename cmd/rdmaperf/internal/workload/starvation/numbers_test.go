package starvation

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Every message of either class has a number: with all passes compared, one that is lost,
// changed, or exchanged with the one before it or with the other class's is found long before
// the end.
func TestBothClassesAreNumbered(t *testing.T) {
	const bad, ops = 60, 400
	other := uint64(drive.SourceSize(3000))
	for what, bend := range map[string]func(op *transports.Op, mem []byte){
		"nothing":              func(*transports.Op, []byte) {},
		"lost":                 func(op *transports.Op, _ []byte) { op.Len = 0 },
		"changed":              func(op *transports.Op, mem []byte) { mem[op.Local+2000] ^= 4 },
		"another in its place": func(op *transports.Op, _ []byte) { op.Local -= engine.ShiftStep },
		"the other class's": func(op *transports.Op, _ []byte) {
			if op.Local >= other {
				op.Local -= other
			} else {
				op.Local += other
			}
		},
	} {
		for class := range uint32(2) {
			f, n := &enginetest.Fault{}, 0
			f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
				changed := append([]transports.Op(nil), ops...)
				for i := range changed {
					op := &changed[i]
					if op.Kind == transports.KindWrite && op.Slot == class {
						if n++; n == bad {
							bend(op, s.Local())
						}
					}
				}
				return s.Post(changed)
			}
			plan := enginetest.QuickPlan(starvePoint(200))
			plan.Depth, plan.Iterations, plan.VerifyAll = 4, ops, true
			r, err := enginetest.First(enginetest.RunPoints(t, enginetest.WithFault(f), plan))
			if found := reports.Code(err) == reports.ExitCorruption; n < bad || found == (what == "nothing") ||
				!found && err != nil {
				t.Errorf("%s, class %d: %v after %d", what, class, err, n)
			}
			if v := r.Verification; what == "nothing" && (v == nil || v.Whole != v.Messages ||
				v.Numbers != v.Messages || v.Messages < ops || v.Bytes != 3000*v.Messages) {
				t.Errorf("%+v of %d operations, want all", v, ops)
			}
		}
	}
}

// By default one pass in many is compared, and never one twice.
func TestPassesAreSampled(t *testing.T) {
	plan := enginetest.QuickPlan(starvePoint(200))
	plan.Depth, plan.Iterations = 4, 5000
	r, err := enginetest.First(enginetest.RunPoints(t, enginetest.MemEnds, plan))
	if err != nil {
		t.Fatal(err)
	}
	// The first pass of each class, the last, and about 5 of 1250.
	if v := r.Verification; v.Whole < 16 || v.Whole > 100 || v.Whole != v.Numbers || v.Messages < 5000 {
		t.Errorf("%+v of %d", v, r.Operations)
	}
}
