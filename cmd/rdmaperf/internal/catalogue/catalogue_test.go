package catalogue

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

func TestWorkloadsHaveNamesOfTheirOwn(t *testing.T) {
	all := All()
	names := workload.Names(all)
	for i, n := range names {
		if n == "" || slices.Contains(names[:i], n) {
			t.Errorf("workload %d: name %q", i, n)
		}
		if w := all[i].Meta().Results; w != nil && w.Name != n {
			t.Errorf("workload %d: %q has the results of %q", i, n, w.Name)
		}
	}
}
