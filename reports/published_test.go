package reports_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// TestOursStandBesidePublishedFigures: the sizes of its rows, the point that is meant, and a
// dash where nothing was measured.
func TestOursStandBesidePublishedFigures(t *testing.T) {
	p := reports.Published{Columns: []string{"#bytes", "of", "latency[us]", "[Mb/s]"},
		Rows: [][]string{{"64", "A", "6.63", "-"}, {"64", "B", "3.59", "-"}, {"1000", "A", "-", "5"},
			{"9", "A", "1", "2"}},
		Beside: []reports.Beside{{Workload: "latency", Op: "send", Depth: 1, Figure: reports.FigureP50,
			Column: "latency[us]"},
			{Workload: "throughput", Op: "send", Depth: 1, Figure: reports.FigureMbit, Column: "[Mb/s]"},
			// a figure overwrites no name
			{Workload: "latency", Op: "send", Depth: 1, Figure: reports.FigureP50, Column: "of"}}}
	lat := func(stack string, size int64, op string, ns float64) reports.Result {
		return reports.Result{Stack: stack, Workload: "latency", Op: op, SizeBytes: size, Depth: 1,
			Latency: &reports.Latency{P50: ns}}
	}
	rows := p.With([]reports.Result{lat("a", 64, "send", 1000), lat("a", 64, "send", 3000), lat("b", 64, "send", 500),
		lat("c", 64, "write", 1), lat("b", 99, "send", 1),
		{Stack: "b", Workload: "throughput", Op: "send", SizeBytes: 1000, Depth: 1,
			Throughput: &reports.Throughput{BytesPerSecond: 1e9}},
		{Stack: "a", Workload: "throughput", Op: "send", SizeBytes: 1000, Depth: 16,
			Throughput: &reports.Throughput{BytesPerSecond: 2e9}}})
	want := [][]string{{"64", "A", "6.63", "-"}, {"64", "B", "3.59", "-"}, {"64", "a", "2.00", "-"},
		{"64", "b", "0.50", "-"}, {"1000", "A", "-", "5"}, {"1000", "b", "-", "8000.00"}, {"9", "A", "1", "2"}}
	if same(t, "rows", want, rows); len(p.Rows) != 4 {
		t.Error("the published table itself grew")
	}
}

// TestPublishedColumnsOfWords: what is aligned like words has some, and a row of ours is no published one.
func TestPublishedColumnsOfWords(t *testing.T) {
	p := reports.Published{Columns: []string{"#bytes", "of", "us"},
		Rows: [][]string{{"64", "them", "-"}, {"64", "-", "6.63"}}}
	for k, want := range []bool{false, true, false, false} {
		if p.Names(k) != want {
			t.Errorf("column %d has words: %v", k, !want)
		}
	}
	if !p.Has([]string{"64", "them", "-"}) || p.Has([]string{"64", "us", "-"}) {
		t.Error("who published a row")
	}
}

// A table of the same title is the same table, whatever run brought it.
func TestAPublishedTableStandsOnce(t *testing.T) {
	var d reports.Document
	d.AddPublished([]reports.Published{{Title: "one"}, {Title: "two"}, {Title: "one"}})
	d.AddPublished([]reports.Published{{Title: "two"}, {Title: "three"}})
	same(t, "titles", []string{"one", "two", "three"},
		view.Each(d.Published, func(p reports.Published) string { return p.Title }))
}

// Numbers among the parameters are read whether they were just made or read back from JSON.
func TestNumbersOfParameters(t *testing.T) {
	r := reports.Result{Parameters: map[string]any{"made": 3, "long": int64(1 << 40), "read": 2.5, "word": "7"}}
	for name, want := range map[string]float64{"made": 3, "long": 1 << 40, "read": 2.5, "word": 0, "none": 0} {
		if got := reports.ParameterNumber(&r, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
