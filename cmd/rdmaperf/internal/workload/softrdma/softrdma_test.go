package softrdma

import (
	"slices"
	"strconv"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

// TestEverySizeOfThePaperIsMeasuredAtBothDepths: its figures and ours have the same rows.
func TestEverySizeOfThePaperIsMeasuredAtBothDepths(t *testing.T) {
	points, err := new(Workload).Points(&workload.Common{Plan: &engine.Plan{},
		Changed: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range figures.Beside {
		if !slices.Contains(figures.Columns, b.Column) {
			t.Errorf("%s is in no column", b.Column)
		}
	}
	for _, row := range figures.Rows {
		size, err := strconv.Atoi(row[0])
		if err != nil || len(row) != len(figures.Columns) {
			t.Fatalf("row %v: %v", row, err)
		}
		var single int
		deep := map[int]int{}
		for _, p := range points {
			switch {
			case p.Size != size:
			case p.Workload == "latency":
				single++
			default:
				deep[p.Depth]++
			}
		}
		if single != 1 || len(deep) != 2 || deep[1] != 1 || deep[16] != 1 {
			t.Errorf("%d bytes: %d latencies, throughput by depth %v", size, single, deep)
		}
	}
	if len(points) != 3*len(new(Workload).Meta().Sizes) {
		t.Errorf("%d points", len(points))
	}
}
