package tensor

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	callskind "github.com/rdmaperf/rdmaperf/reports/kinds/calls"
)

// work is the row of tensors by calls.
func work() *engine.Workload {
	w := drive.CallRow(Name, callskind.TensorKind, &tensorWork)
	w.Point = validateTensor
	return w
}
