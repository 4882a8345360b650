package curves

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

func TestSchemaHasEveryMember(t *testing.T) {
	w := Results(reports.Workload{Name: "some", Figures: []reports.FigureDef{{Name: "rate"}, {Name: "p50_ns"}}},
		"", nil)
	reporttest.Described(t, w)
	for _, name := range []string{"rate", "p50_ns"} {
		if !strings.Contains(w.Schema, `"`+name+`": {"type": "number"}`) {
			t.Errorf("%s is not in the schema\n%s", name, w.Schema)
		}
	}
}
