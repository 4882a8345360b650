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

// rounds is a run of one point in rounds.
func rounds(p50s ...float64) *reports.Document {
	d := repeated(p50s...)
	for i := range d.Results {
		d.Results[i].Repeat = i + 1
	}
	return d
}

// The rounds of a run share the machine's pace: of two runs they are different only where none overlap, and of joined
// runs each is one sample.
func TestRoundsOfARunAreNoIndependentSamples(t *testing.T) {
	slow := rounds(140, 141, 142, 143, 144, 145)
	for _, c := range []struct {
		old, new    *reports.Document
		significant bool
	}{
		{rounds(100, 101, 102, 103, 104, 105), slow, true},
		{rounds(100, 101, 102, 103, 104, 140), slow, false}, // by ranks it has p = 0.004
		{rounds(100, 101, 102), rounds(200, 201, 202), false},
		{slow, rounds(100, 101, 102, 103, 104, 105), true},
	} {
		if ch := findChange(t, compare(t, c.old, c.new), "p50"); ch.Significant != c.significant || ch.P != nil {
			t.Errorf("%+v, want significant %v", ch, c.significant)
		}
	}
	var docs []*reports.Document
	for i := range 4 {
		docs = append(docs, rounds(100+float64(i), 110+float64(i), 300))
	}
	d, err := reports.Join(docs)
	if err != nil {
		t.Fatal(err)
	}
	ch := findChange(t, compare(t, d, d), "p50")
	if ch.OldN != 4 || ch.Old != 111.5 || ch.P == nil || ch.Significant {
		t.Errorf("%+v, want the medians of four runs", ch)
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
