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

// The title of a chart says how many times the least that it shows the greatest is, with unit and place.
func TestATitleSaysWhatAChartShows(t *testing.T) {
	at := func(x, y float64) []view.Point { return []view.Point{{X: x, Y: y, Tip: "t"}} }
	bars := []view.Bar{{Block: "tcp", Value: 300}, {Block: "iwarp", Value: 900, Thin: true}, {Value: 200}}
	for want, c := range map[string]view.Chart{
		"At the median: tcp 3 µs, iwarp 1.67x of that": &view.LineChart{XText: view.NsLabel, YUnit: view.NsLabel,
			Series: []view.Series{{Name: "tcp", Points: at(2, 3000)}, {Name: "iwarp(crc)", Short: "iwarp",
				Points: at(2, 5000)}, {Name: "tail", Thin: true, Points: at(2, 9000)}}},
		"At 1 MiB: 7 MiB/s": &view.LineChart{YUnit: view.Digits3, YLabel: "Bandwidth [MiB/s]", X: view.Scale{Hi: 64},
			XTicks: []view.Tick{{At: 64, Label: "1 MiB"}}, Series: []view.Series{{Name: "tcp", Points: at(64, 7)}}},
		"iwarp 200 MiB/s, tcp 1.5x of that": &view.BarChart{XLabel: "Bandwidth [MiB/s]", Unit: view.Digits3, Bars: bars},
		"Loaded, at the median: a 6 µs, b 133x of that": &view.PairChart{Unit: view.NsLabel, Bars: []view.Bar{
			{Block: "a", Label: "p50", Other: 6000}, {Label: "p99", Other: 1}, {Block: "b", Label: "p50", Other: 8e5}}},
		"all 300 to 301": &view.BarChart{Unit: view.Digits3,
			Bars: []view.Bar{{Block: "a", Value: 301}, {Block: "b", Value: 300}}},
		"": &view.BarChart{},
	} {
		if got := shows(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
