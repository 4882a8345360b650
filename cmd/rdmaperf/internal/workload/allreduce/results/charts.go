package results

import (
	"cmp"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// place is what the lines of one chart share.
type place struct {
	reports.Load
	stack string
	slot  int
}

// section is the speed-up of each arm against size, for fresh and for reused buffers, and
// the bus bandwidth that belongs to it.
func section(set *reports.Set) view.Section {
	s := view.Section{ID: "allreduce", Title: "All-reduce",
		Intro: "How many times faster an all-reduce is when registrations are kept or memory is registered when it is mapped, than when every message registers its buffer: fresh buffers are mapped and unmapped in each iteration (strong lines), reused ones stay (thin lines). Below the eager size nothing is registered."}
	for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (place, bool) {
		return place{reports.LoadOf(x.Result), x.SeriesName, x.Slot}, Of(x.Result) != nil
	}) {
		title := g.Key.Load.Kind.Title(g.Key.Load) + ", " + g.Key.stack
		var all []*reports.Result
		for _, x := range g.Samples {
			all = append(all, x.Result)
		}
		s.Figures = append(s.Figures,
			figure("Speed-up: "+title, g.Key.Load.Conditions(), "Times faster than arm none", view.Digits3, g.Samples, func(x *reports.Measured) (float64, bool) {
				b := base(all, x.Result)
				if b == nil || Of(x.Result).Arm == "none" || Of(x.Result).Total.P50 <= 0 {
					return 0, false
				}
				return b.Total.P50 / Of(x.Result).Total.P50, true
			}),
			figure("Bus bandwidth: "+title, g.Key.Load.Conditions(), "Bus bandwidth [MiB/s]", view.Digits3, g.Samples, func(x *reports.Measured) (float64, bool) {
				return Of(x.Result).BusBytesPerSecond / (1 << 20), true
			}))
	}
	s.Figures = slices.DeleteFunc(s.Figures, func(f view.Figure) bool { return f.Chart == nil })
	return s
}

// figure draws one line for each arm and kind of buffers along the sizes.
func figure(title, caption, yLabel string, yText func(float64) string, samples []*reports.Measured, y func(x *reports.Measured) (float64, bool)) view.Figure {
	var lines []view.Series
	slots := map[string]int{}
	for _, of := range reports.GroupBy(samples, func(x *reports.Measured) (string, bool) {
		_, ok := y(x)
		return variant(x.Result), ok
	}) {
		d := Of(of.Samples[0].Result)
		name := d.Arm + " " + d.Offload
		if _, ok := slots[name]; !ok {
			slots[name] = len(slots)
		}
		line := view.Series{Name: of.Key, Short: of.Key, Slot: slots[name], Thin: d.Buffers == "reused"}
		for _, at := range reports.GroupBy(of.Samples, func(x *reports.Measured) (int64, bool) { return x.SizeBytes, true }) {
			v := reports.MedianOf(at.Samples, func(x *reports.Measured) float64 { v, _ := y(x); return v })
			line.Points = append(line.Points, view.Point{X: float64(at.Key), Y: v, Tip: of.Key + "\n" + reports.SizeLabel(at.Key) + "\n" + yText(v)})
		}
		slices.SortStableFunc(line.Points, func(a, b view.Point) int { return cmp.Compare(a.X, b.X) })
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return view.Figure{}
	}
	sizes := reports.SizesOf(samples)
	chart := &view.LineChart{Title: title, Desc: "Logarithmic axes. " + charts.DescribeSeries(lines), YLabel: yLabel, XLabel: "Size", X: view.Scale{Log: true, Lo: float64(sizes[0]), Hi: float64(sizes[len(sizes)-1])},
		XTicks: charts.SizeTicks(sizes), YUnit: yText, Series: lines}
	data := view.Grid{Caption: title, Head: view.HeadCells("series", "size", yLabel)}
	for _, l := range lines {
		for _, p := range l.Points {
			data.Rows = append(data.Rows, []view.GridCell{view.NameCell(l.Name), view.NumberCell(reports.SizeLabel(int64(p.X))), view.NumberCell(yText(p.Y))})
		}
	}
	return view.Figure{Title: title, Caption: caption, Chart: chart, Data: data}
}
