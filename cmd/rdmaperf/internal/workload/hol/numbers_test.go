package hol

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Every bulk message has a number: one that is lost, comes twice, is exchanged with another or
// changed long before the end is found. A write is lost without a trace where nothing compares
// its slot, so all passes are compared here; sends need no more than their numbers.
func TestBulkIsNumbered(t *testing.T) {
	const size = 20_000
	for what, bend := range map[string]func(op *transports.Op, mem []byte){
		"nothing":              func(*transports.Op, []byte) {},
		"another in its place": func(op *transports.Op, _ []byte) { op.Local -= engine.ShiftStep },
		"changed":              func(op *transports.Op, mem []byte) { mem[op.Local] ^= 4 },
		"lost": func(op *transports.Op, _ []byte) {
			if op.Kind == transports.KindWrite {
				op.Len = 0
			} else {
				op.Local -= 3 * engine.ShiftStep
			}
		},
	} {
		for _, pt := range holPoints(size) {
			f, n := &enginetest.Fault{}, 0
			f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
				changed := append([]transports.Op(nil), ops...)
				for i := range changed {
					op := &changed[i]
					if op.Len < 4000 || op.Kind == transports.KindRecv {
						continue
					}
					if n++; n == 40 {
						bend(op, s.Local())
					}
				}
				return s.Post(changed)
			}
			o := Options{BulkDepth: 4}
			if pt.Variant == AppSlicing {
				o.AppSlice, o.AppWindow = 4096, 3
			}
			plan := enginetest.QuickPlan(with(o, pt)...)
			plan.Iterations = 200
			plan.VerifyAll = pt.Op == "write"
			_, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
			if found := reports.Code(err) == reports.ExitCorruption; n < 40 || found == (what == "nothing") || !found &&
				err != nil {
				t.Errorf("%s, %s %s: %v after %d bulk messages", what, pt.Op, pt.Variant, err, n)
			}
		}
	}
}
