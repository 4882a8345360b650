package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	kindlist "github.com/rdmaperf/rdmaperf/reports/kinds"
	holkind "github.com/rdmaperf/rdmaperf/reports/kinds/hol"
)

var kinds = kindlist.All()

// kind is that of a workload.
func kind(workload string) *reports.Kind { return reports.KindOf(kinds, workload) }

// of gives every result the kind of its workload, where it has none.
func of(d *reports.Document) *reports.Document {
	for i := range d.Results {
		if r := &d.Results[i]; r.Kind == nil {
			r.Kind = kind(r.Workload)
		}
	}
	return d
}

// Members of workloads that a reader was not told of survive it, whatever it knows.
func TestUnknownMembersSurvive(t *testing.T) {
	const foreign = `{"schema":"rdmaperf/v1","started":"2026-03-04T05:06:07Z","command":[],"environment":{},"results":[
		{"stack":"a","label":"soft","workload":"allreduce","op":"","size_bytes":1,"depth":1,"qps":1,"duration_ns":1,"operations":1,"errors":0,"verified":true,
		"ring":{"z":1,"a":[1,2]},"hol":{"arm":"two-qp"},"tree":7}]}`
	for name, c := range map[string]struct {
		kinds []*reports.Kind
		known bool
	}{"no kinds": {nil, false}, "all kinds": {kinds, true}} {
		d, err := reports.ReadDocument(strings.NewReader(foreign), c.kinds)
		if err != nil {
			t.Fatal(name, err)
		}
		if h := holkind.Of(&d.Results[0]); (h != nil) != c.known || c.known && h.Arm != holkind.ArmTwoQP {
			t.Errorf("%s: detail %+v", name, h)
		}
		out := string(bytes.Join(bytes.Fields(encode(t, d)), nil))
		for _, want := range []string{`"ring":{"z":1,"a":[1,2]}`, `"arm":"two-qp"`, `"tree":7`} {
			if strings.Count(out, want) != 1 {
				t.Errorf("%s: %s is not there once:\n%s", name, want, out)
			}
		}
	}
}

// The kind of the workload comes before one that has the same members.
func TestAKindIsFoundByWorkloadAndMembers(t *testing.T) {
	for _, c := range []struct{ workload, members, want string }{
		{"tensor", `"rpc":{"call":"push"}`, "tensor"},
		{"rpc", `"rpc":{"call":"unary"}`, "rpc"},
		{"other", `"rpc":{"call":"unary"}`, "rpc"},
		{"other", `"kv":{"mix":"a"},"rpc":{"call":"unary"}`, "kv"},
		{"rpc", `"kv":{"mix":"a"},"rpc":{"call":"unary"}`, "rpc"},
		{"incast", `"operations":1`, "incast"},
		{"hol", `"operations":1`, ""},
		{"hol", `"hol":null`, ""},
		{"other", `"incast":{"clients":2}`, "incast"},
	} {
		d, err := reports.ReadDocument(strings.NewReader(`{"schema":"rdmaperf/v1","results":[{"workload":"`+c.workload+`",`+c.members+`}]}`), kinds)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if k := d.Results[0].Kind; k != nil {
			got = k.Workload
		}
		if got != c.want {
			t.Errorf("%s with %s is of kind %q, want %q", c.workload, c.members, got, c.want)
		}
	}
	if _, err := reports.ReadDocument(strings.NewReader(`{"schema":"rdmaperf/v1","results":[{},{"workload":"hol","hol":7}]}`), kinds); err == nil || !strings.Contains(err.Error(), "result 1") {
		t.Errorf("a detail of the wrong type: %v, want an error that names the result", err)
	}
}
