package reports

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// The median of results has the medians of their open loops, and is saturated if one is.
func TestMediansHaveTheirLoop(t *testing.T) {
	result := func(done int64, saturated bool) *Result {
		return &Result{Operations: done, DurationNs: 2 * done, OpenLoop: &OpenLoop{Due: done + 1, Sent: done,
			Completed: done, Late: 3, OfferedPerSecond: 100, AchievedPerSecond: float64(done), Saturated: saturated}}
	}
	r := medianResult([]*Result{result(90, false), result(80, true), result(99, false)})
	if want := (OpenLoop{91, 90, 90, 3, 100, 90, true}); r.OpenLoop == nil || *r.OpenLoop != want ||
		r.Operations != 90 || r.DurationNs != 180 {
		t.Errorf("%+v of %d in %d, want %+v", r.OpenLoop, r.Operations, r.DurationNs, want)
	}
	if r := medianResult([]*Result{{Operations: 1}, {Operations: 3}}); r.OpenLoop != nil || r.Operations != 2 {
		t.Errorf("no loops: %+v of %d", r.OpenLoop, r.Operations)
	}
}

// A spread is a part of the median, and nothing where that is zero.
func TestSpreadsOfNothing(t *testing.T) {
	of := func(bw float64) *Result { return &Result{Throughput: &Throughput{BytesPerSecond: bw}} }
	for _, c := range []struct {
		all  []*Result
		want string
	}{{[]*Result{of(90), of(100), of(120)}, "BW spread 30.0 %"}, {[]*Result{of(0), of(0), of(7)}, "BW spread -"}} {
		if got := spreads(c.all); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// The samples of all repeats count together, but each has to have one above the percentile.
func TestMedianOfAFigureNeedsSamplesOfAllRepeats(t *testing.T) {
	of := func(n int64, p50 float64) *Result { return &Result{Latency: &Latency{Count: n, P50: p50, P99: p50}} }
	for _, c := range []struct {
		name string
		runs []*Result
		want float64 // 0: none
	}{
		{"p50", []*Result{of(19, 7)}, 0},
		{"p50", []*Result{of(20, 7)}, 7},
		{"p50", []*Result{of(2, 7), of(2, 9), of(16, 8)}, 8},
		{"p50", []*Result{of(2, 7), of(1, 9), of(17, 8)}, 0},
		{"p99", []*Result{of(99, 7), of(901, 7)}, 0},
		{"p99", []*Result{of(100, 7), of(900, 9)}, 8},
		{"bw", []*Result{of(100, 7)}, 0},
		{"p50", nil, 0},
	} {
		if got, ok := MedianFigure(c.runs, c.name); ok != (c.want > 0) || ok && got != c.want {
			t.Errorf("%s of %d repeats: %v, %t, want %v", c.name, len(c.runs), got, ok, c.want)
		}
	}
}

// On a terminal, the same figure of two operations that no stack has both of shares a column.
func TestNarrowJoinsWhatNoStackHasBothOf(t *testing.T) {
	cell := func(v float64) *AnswerCell { return &AnswerCell{Value: v} }
	a := &Answer{Columns: []AnswerColumn{
		{Title: "bulk rate", Point: "1 MiB write", Unit: "B/s"}, {Title: "bulk rate", Point: "1 MiB call", Unit: "B/s"},
		{Title: "bulk beside probes", Point: "1 MiB write", Unit: "B/s", Pays: true},
		{Title: "bulk rate", Point: "64 KiB write", Unit: "B/s"},
		{Title: "bulk rate", Point: "64 KiB call", Unit: "B/s"},
	}, Rows: []AnswerRow{
		{Stack: "iwarp", Cells: []*AnswerCell{cell(1), nil, cell(2), cell(3), nil}},
		{Stack: "grpc(tcp)", Cells: []*AnswerCell{nil, cell(4), nil, cell(5), cell(6)}},
	}}
	n := a.Narrow()
	points := view.Each(n.Columns, func(c AnswerColumn) string { return c.Point })
	if want := []string{"1 MiB write or call", "64 KiB write", "64 KiB call"}; !slices.Equal(points, want) {
		t.Fatalf("columns %q, want %q", points, want)
	}
	if r := n.Rows; r[0].Cells[0].Value != 1 || r[1].Cells[0].Value != 4 || r[1].Cells[1].Value != 5 ||
		r[1].Cells[2].Value != 6 || r[0].Cells[2] != nil {
		t.Errorf("rows %+v", r)
	}
	if len(a.Columns) != 5 || a.Columns[0].Point != "1 MiB write" {
		t.Errorf("the answer was changed: %+v", a.Columns)
	}
}

// Half a round trip of a send and the whole of a call share one, which says which is which.
func TestNarrowJoinsRoundTripsOfSendsAndCalls(t *testing.T) {
	a := &Answer{Columns: []AnswerColumn{{Title: TitleHalf, Point: "64 B send", Unit: "ns"},
		{Title: TitleWhole, Point: "64 B call", Unit: "ns"}, {Title: TitleWhole, Point: "64 B read", Unit: "ns"}},
		Rows: []AnswerRow{{Stack: "iwarp", Cells: []*AnswerCell{{Value: 1}, nil, nil}},
			{Stack: "grpc(tcp)", Cells: []*AnswerCell{nil, {Value: 2}, nil}},
			{Stack: "verbs", Cells: []*AnswerCell{nil, nil, {Value: 3}}}}}
	n := a.Narrow()
	if len(n.Columns) != 2 || n.Columns[0].Title != "half round trip (calls: full)" ||
		n.Columns[0].Point != "64 B send or call" || n.Columns[1].Title != TitleWhole {
		t.Errorf("columns %+v", n.Columns)
	}
}

// An interval whose one bound is ten times off the median has the other bound alone.
func TestABoundThatSaysNothingIsLeftOut(t *testing.T) {
	for want, w := range map[string][2]float64{"458-700": {458, 700}, "≥458": {458, 61646}, "≤700": {3, 700},
		"no bound": {3, 61646}} {
		a := &Answer{Columns: []AnswerColumn{{Unit: "1/s"}}, Rows: []AnswerRow{{Cells: []*AnswerCell{
			{Value: 600, Within: &w}}}}}
		if _, texts := a.ColumnTexts(0, 3, view.Units{}); texts[0].Within != want {
			t.Errorf("%q, want %q", texts[0].Within, want)
		}
	}
}
