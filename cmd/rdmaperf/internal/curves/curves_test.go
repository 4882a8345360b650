package curves

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

func TestSchemaHasEveryMember(t *testing.T) {
	k := (&Set{Workload: "some", Values: []Value{{Name: "rate"}, {Name: "p50_ns"}}}).Kind()
	reporttest.Described(t, k.Results)
	for _, name := range []string{"rate", "p50_ns"} {
		if !strings.Contains(k.Results.Schema, `"`+name+`": {"type": "number"}`) {
			t.Errorf("%s is not in the schema\n%s", name, k.Results.Schema)
		}
	}
}
