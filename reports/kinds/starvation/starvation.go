package starvation

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Of is the detail of two classes, nil for any other.
func Of(r *reports.Result) *Starvation { return reports.DetailOf[Starvation](r) }

// Starvation is what two classes of one QP got: a high one, which offers a share of
// the capacity, and a low one, which takes what is left.
type Starvation struct {
	HighLoadPercent        float64    `json:"high_load_percent"` // offered, of the capacity
	HighPriority           int        `json:"high_priority"`     // the low class has 0
	CapacityBytesPerSecond float64    `json:"capacity_bytes_per_second"`
	High                   ClassShare `json:"high"`
	Low                    ClassShare `json:"low"`
}

// ClassShare is what one class completed in the window.
type ClassShare struct {
	Operations     int64   `json:"operations"`
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// sharePercent is what a class got of what both got in the same window: the shares of the
// two add up to 100. 0 where nothing was carried.
func (s *Starvation) sharePercent(c ClassShare) float64 {
	sum := s.High.BytesPerSecond + s.Low.BytesPerSecond
	if !(sum > 0) {
		return 0
	}
	return 100 * c.BytesPerSecond / sum
}

// shareText is that to a tenth. The low class has what the rounded high one leaves, so that
// the printed ones add up, too.
func (s *Starvation) shareText(high bool) string {
	h := math.Round(10*s.sharePercent(s.High)) / 10
	switch {
	case !(s.High.BytesPerSecond+s.Low.BytesPerSecond > 0):
		return "-"
	case high:
		return view.Number(h, 1)
	}
	return view.Number(100-h, 1)
}

// point tells the points of one curve apart, repeats aside.
func (s *Starvation) point() string { return "high load " + view.Number(s.HighLoadPercent, -1) + " %" }

// Kind describes these results.
var Kind = &reports.Kind{
	Workload:  "starvation",
	Results:   Results,
	Variant:   func(r *reports.Result) string { return Of(r).point() },
	NamesRows: true,
	Shape:     func(r *reports.Result) string { return Of(r).point() },
	Contradiction: func(r *reports.Result) string {
		s := Of(r)
		// A twentieth: the capacity is measured in a window of its own.
		if sum := s.High.BytesPerSecond + s.Low.BytesPerSecond; s.CapacityBytesPerSecond > 0 && sum > 1.05*s.CapacityBytesPerSecond {
			return "the classes got " + view.Number(100*sum/s.CapacityBytesPerSecond, 1) + " % of the capacity"
		}
		return ""
	},
	Medians: medians,
	Spreads: []reports.Spread{{Name: "low BW", Of: func(r *reports.Result) float64 { return Of(r).Low.BytesPerSecond }}},
	Interval: &reports.IntervalForm{Of: "high load %",
		Columns: func(u view.Units) []view.Column {
			return []view.Column{{Name: "high", Unit: u.Name()}, {Name: "low", Unit: u.Name()}}
		},
		Rows: func(r *reports.Result) []reports.IntervalRow {
			return []reports.IntervalRow{{Of: view.Number(Of(r).HighLoadPercent, -1), Figures: []string{"high.bw", "low.bw"}}}
		}},
	OwnTable: true,
	Tables:   tables,
	Sections: []*reports.PageSection{{Rank: 30, Of: section}},
}

func highBandwidth(s *Starvation) float64 { return s.High.BytesPerSecond }

func lowBandwidth(s *Starvation) float64 { return s.Low.BytesPerSecond }

func capacityBandwidth(s *Starvation) float64 { return s.CapacityBytesPerSecond }

// medians has the medians of the repeats.
func medians(all []*reports.Result) any {
	of := func(figure func(s *Starvation) float64) float64 {
		return reports.MedianOver(all, func(r *reports.Result) float64 { return figure(Of(r)) })
	}
	s := *Of(all[0])
	s.CapacityBytesPerSecond, s.High.BytesPerSecond, s.Low.BytesPerSecond = of(capacityBandwidth), of(highBandwidth), of(lowBandwidth)
	return &s
}

// tables show both classes against the load of the high one.
func tables(_ *reports.Grouped, results []*reports.Result, u view.Units) []reports.Block {
	t := &view.Table{Columns: []view.Column{{Name: "#bytes"}, {Name: "high load", Unit: "%"}, {Name: "offered", Unit: u.Name()}, {Name: "high", Unit: u.Name()},
		{Name: "low", Unit: u.Name()}, {Name: "high", Unit: "% of both"}, {Name: "low", Unit: "% of both"}, {Name: "both", Unit: u.Name()}, {Name: "capacity", Unit: u.Name()}}}
	rows := slices.Clone(results)
	slices.SortStableFunc(rows, func(a, b *reports.Result) int {
		return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(Of(a).HighLoadPercent, Of(b).HighLoadPercent))
	})
	for _, r := range rows {
		s := Of(r)
		t.Add(view.Cell{Text: view.Integer(r.SizeBytes)}, view.Cell{Text: view.Number(s.HighLoadPercent, -1)}, view.Cell{Text: u.Bandwidth(s.CapacityBytesPerSecond * s.HighLoadPercent / 100)},
			view.Cell{Text: u.Bandwidth(s.High.BytesPerSecond)}, view.Cell{Text: u.Bandwidth(s.Low.BytesPerSecond)},
			view.Cell{Text: s.shareText(true)}, view.Cell{Text: s.shareText(false)}, view.Cell{Text: u.Bandwidth(s.High.BytesPerSecond + s.Low.BytesPerSecond)}, view.Cell{Text: u.Bandwidth(s.CapacityBytesPerSecond)})
	}
	return []reports.Block{{Lead: "two classes on one QP: the high one at priority " + strconv.Itoa(Of(rows[0]).HighPriority) + " offers a share of what one class alone carried right before (capacity), the low one takes what it gets; shares are of what both got in the window, and add up:", Table: t}}
}

// section is the throughput of both classes against the load of the high one.
func section(set *reports.Set) view.Section {
	s := view.Section{ID: "starvation", Title: "Starvation",
		Intro: "A high class offers a share of what the stack carries, and a low class on the same QP takes what it gets. The thin line is the low class: what the high one leaves to it is the rule of the policy."}
	type key struct {
		reports.Load
		Size int64
	}
	for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (key, bool) {
		return key{Load: reports.LoadOf(x.Result), Size: x.SizeBytes}, Of(x.Result) != nil
	}) {
		var loads []float64
		for _, x := range g.Samples {
			loads = append(loads, Of(x.Result).HighLoadPercent)
		}
		slices.Sort(loads)
		loads = slices.Compact(loads)
		ticks := make([]view.Tick, len(loads))
		for i, l := range loads {
			ticks[i] = view.Tick{At: l, Label: view.Number(l, -1)}
		}
		title := "Throughput by class, " + reports.SizeLabel(g.Key.Size)
		data := view.Grid{Caption: title, Head: view.HeadCells("series", "high load %", "high MiB/s", "low MiB/s", "high % of both", "low % of both", "capacity MiB/s")}
		var lines []view.Series
		for _, b := range reports.Split(g.Samples) {
			for _, class := range []struct {
				name string
				thin bool
				of   func(s *Starvation) float64
			}{{" high", false, highBandwidth}, {" low", true, lowBandwidth}} {
				line := view.Series{Name: b.Series + class.name, Short: b.Short + class.name, Slot: b.Slot, Thin: class.thin}
				for _, at := range reports.GroupBy(b.Runs, func(x *reports.Measured) (float64, bool) { return Of(x.Result).HighLoadPercent, true }) {
					y := reports.MedianOf(at.Samples, func(x *reports.Measured) float64 { return class.of(Of(x.Result)) })
					line.Points = append(line.Points, view.Point{X: at.Key, Y: y / (1 << 20), Tip: line.Name + "\nhigh load " + view.Number(at.Key, -1) + " %\n" + view.BandwidthLabel(y)})
				}
				slices.SortStableFunc(line.Points, func(a, b view.Point) int { return cmp.Compare(a.X, b.X) })
				lines = append(lines, line)
			}
			for _, x := range b.Runs {
				data.Rows = append(data.Rows, []view.GridCell{view.NameCell(x.Name()), view.NumberCell(view.Number(Of(x.Result).HighLoadPercent, -1)), view.NumberCell(view.Bandwidth(Of(x.Result).High.BytesPerSecond, false)),
					view.NumberCell(view.Bandwidth(Of(x.Result).Low.BytesPerSecond, false)), view.NumberCell(Of(x.Result).shareText(true)), view.NumberCell(Of(x.Result).shareText(false)), view.NumberCell(view.Bandwidth(Of(x.Result).CapacityBytesPerSecond, false))})
			}
		}
		chart := &view.LineChart{Title: title, Linear: true, Desc: charts.DescribeSeries(lines), YLabel: "Bandwidth [MiB/s]", XLabel: "Load of the high class [% of capacity]",
			X: view.Scale{Lo: loads[0], Hi: loads[len(loads)-1]}, XTicks: ticks, YUnit: view.Digits3, Series: lines}
		s.Figures = append(s.Figures, view.Figure{Title: title, Caption: g.Key.Conditions(), Chart: chart, Data: data})
	}
	return s
}
