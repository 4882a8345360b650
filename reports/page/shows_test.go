package page

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// A chart has no more lines than can be told apart, medians before tails, and says how many it leaves out.
func TestAChartHasLegibleLines(t *testing.T) {
	lines := func(n int, thin bool) (all []view.Series) {
		for i := range n {
			all = append(all, view.Series{Name: fmt.Sprint(i), Thin: thin && i%2 == 1})
		}
		return all
	}
	for _, c := range []struct {
		lines   []view.Series
		want    int
		caption string
	}{
		{lines(8, false), 8, "depth 1"},
		{lines(14, true), 7, "depth 1, 7 of 14 lines, the others in its data"},
		{lines(28, true), 8, "depth 1, 8 of 28 lines, the others in its data"},
	} {
		f := view.Figure{Caption: "depth 1", Chart: &view.LineChart{Series: c.lines}}
		legible(&f)
		if n := len(f.Chart.(*view.LineChart).Series); n != c.want || f.Caption != c.caption {
			t.Errorf("%d lines of %d, %q", n, len(c.lines), f.Caption)
		}
	}
}

// The title of a chart says the least and the greatest that it shows, with unit and place.
func TestATitleSaysWhatAChartShows(t *testing.T) {
	at := func(x, y float64) []view.Point { return []view.Point{{X: x, Y: y, Tip: "t"}} }
	bars := []view.Bar{{Block: "tcp", Value: 300}, {Block: "iwarp", Value: 900, Thin: true}, {Value: 200}}
	for want, c := range map[string]view.Chart{
		"3 µs (tcp) to 5 µs (iwarp) at the median": &view.LineChart{XText: view.NsLabel, YUnit: view.NsLabel,
			Series: []view.Series{{Name: "tcp", Points: at(2, 3000)}, {Name: "iwarp(crc)", Short: "iwarp",
				Points: at(2, 5000)}, {Name: "tail", Thin: true, Points: at(2, 9000)}}},
		"7 MiB/s at 1 MiB": &view.LineChart{YUnit: view.Digits3, YLabel: "Bandwidth [MiB/s]", X: view.Scale{Hi: 64},
			XTicks: []view.Tick{{At: 64, Label: "1 MiB"}}, Series: []view.Series{{Name: "tcp", Points: at(64, 7)}}},
		"200 MiB/s (iwarp) to 300 MiB/s (tcp)": &view.BarChart{XLabel: "Bandwidth [MiB/s]", Unit: view.Digits3, Bars: bars},
		"6 µs (a) to 800 µs (b) loaded, at the median": &view.PairChart{Unit: view.NsLabel, Bars: []view.Bar{
			{Block: "a", Label: "p50", Other: 6000}, {Label: "p99", Other: 1}, {Block: "b", Label: "p50", Other: 8e5}}},
		"": &view.BarChart{},
	} {
		if got := shows(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
