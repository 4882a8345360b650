package rpc

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	callskind "github.com/rdmaperf/rdmaperf/reports/kinds/calls"
)

// work is the row of calls of one kind after the other.
func work() *engine.Workload {
	w := drive.CallRow(Name, callskind.Kind, &Work)
	w.Point = validateRPC
	w.Describe = func(p engine.Point) string {
		s := fmt.Sprintf("%s %s %d B", p.Workload, p.Call, p.Size)
		if p.Response != p.Size && p.Call != engine.CallOneway {
			s += fmt.Sprintf(" answered by %d B", p.Response)
		}
		return s
	}
	return w
}
