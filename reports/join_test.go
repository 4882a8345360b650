package reports_test

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

func TestJoinedDocumentsAreRepeats(t *testing.T) {
	join := func(p50s ...float64) *reports.Document {
		var docs []*reports.Document
		for _, p50 := range p50s {
			docs = append(docs, repeated(p50))
		}
		d, err := reports.Join(docs)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	c := compare(t, join(100, 101, 102, 103, 104, 105), join(110, 111, 112, 113, 114, 115))
	ch := findChange(t, c, "p50")
	if len(c.Points) != 1 || ch.OldN != 6 || ch.NewN != 6 || !ch.Significant || ch.Old != 102.5 || ch.New != 112.5 {
		t.Errorf("%+v, want six repeats a side", ch)
	}
}

func TestJoinRefusesWhatIsNotOneRun(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(d *reports.Document)
	}{
		{"document 2 is of rdmaperf v9", func(d *reports.Document) { d.Environment.Version = "v9" }},
		{"go1.27", func(d *reports.Document) { d.Environment.Go = "go1.27" }},
		{"kernel: old 6.12.9, new 7.0", func(d *reports.Document) { d.Environment.Kernel = "7.0" }},
		{"document 2 is not like the first", func(d *reports.Document) { d.Environment.Kernel = "7.0" }},
		{"server kernel: old 6.1, new 7.0", func(d *reports.Document) {
			d.ServerEnvironment = &reports.Environment{Kernel: "7.0"}
		}},
		{"document 2 and the first differ in where the server was", func(d *reports.Document) {
			d.ServerEnvironment = &reports.Environment{}
		}},
	} {
		other := repeated(1)
		test.change(other)
		first := repeated(1)
		if strings.HasPrefix(test.want, "server") {
			first.ServerEnvironment = &reports.Environment{Kernel: "6.1"}
		}
		if _, err := reports.Join([]*reports.Document{first, other}); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
	if _, err := reports.Join(nil); err == nil {
		t.Error("nothing was joined without an error")
	}
	failed := repeated(1)
	failed.Error = &reports.RunError{Operation: "run", Message: "broke"}
	if d, err := reports.Join([]*reports.Document{repeated(1), failed}); err != nil || d.Error == nil ||
		d.Error.Message != "broke" {
		t.Errorf("joined %+v, %v, want the error of the second", d.Error, err)
	}
}
