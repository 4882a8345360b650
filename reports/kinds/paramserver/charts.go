package paramserver

import (
	"cmp"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// section is the time of an iteration against the ratio of computation to
// communication.
func section(set *reports.Set) view.Section {
	s := view.Section{ID: "training", Title: "Training with a parameter server",
		Intro: "One worker pushes the gradient of each tensor as the backward pass has it and pulls the updated one; a layer of the next forward pass waits for its tensor. The thin line is the ideal: the longer of computation and communication. In the arm priority, work requests say which tensor is needed first."}
	for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (reports.Load, bool) { return reports.LoadOf(x.Result), Of(x.Result) != nil }) {
		var ratios []float64
		for _, x := range g.Samples {
			ratios = append(ratios, Of(x.Result).ComputeRatio)
		}
		slices.Sort(ratios)
		ratios = slices.Compact(ratios)
		x := view.Scale{Lo: ratios[0], Hi: ratios[len(ratios)-1]}
		ticks := make([]view.Tick, len(ratios))
		for i, r := range ratios {
			ticks[i] = view.Tick{At: r, Label: view.Number(r, -1)}
		}
		title := "Iteration time, " + view.Visible(g.Key.Share.(share).model)
		var lines []view.Series
		data := view.Grid{Caption: title, Head: view.HeadCells("series", "ratio", "levels", "iterations", "mean", "95 % interval", "p50", "p99", "communication", "computation", "ideal", "overlap", "gain over fifo")}
		for i, b := range reports.Split(g.Samples) {
			arms := reports.GroupBy(b.Runs, func(x *reports.Measured) (string, bool) { return Of(x.Result).Arm, true })
			var all []*ParamServer
			for _, x := range b.Runs {
				all = append(all, Of(x.Result))
			}
			for k, arm := range arms {
				name := b.Series + " " + view.Visible(arm.Key)
				line := view.Series{Name: name, Short: b.Short + " " + view.Visible(arm.Key), Slot: i*len(arms) + k}
				for _, at := range reports.GroupBy(arm.Samples, func(x *reports.Measured) (float64, bool) { return Of(x.Result).ComputeRatio, true }) {
					p50 := reports.MedianOf(at.Samples, func(x *reports.Measured) float64 { return Of(x.Result).Iteration.P50 })
					p99 := reports.MedianOf(at.Samples, func(x *reports.Measured) float64 { return Of(x.Result).Iteration.P99 })
					line.Points = append(line.Points, view.Point{X: at.Key, Y: p50, High: p99, Few: Of(at.Samples[0].Result).Iteration.Percentiles()[2].TooFew,
						Tip: name + "\nratio " + view.Number(at.Key, -1) + "\np50 " + view.NsLabel(p50) + "\np99 " + view.NsLabel(p99)})
				}
				slices.SortStableFunc(line.Points, func(a, b view.Point) int { return cmp.Compare(a.X, b.X) })
				lines = append(lines, line)
				for _, x := range arm.Samples {
					data.Rows = append(data.Rows, pageRow(x, all))
				}
			}
			ideal := view.Series{Name: b.Series + " ideal", Short: b.Short + " ideal", Slot: i * len(arms), Thin: true}
			for _, at := range reports.GroupBy(b.Runs, func(x *reports.Measured) (float64, bool) { return Of(x.Result).ComputeRatio, true }) {
				ideal.Points = append(ideal.Points, view.Point{X: at.Key, Y: reports.MedianOf(at.Samples, func(x *reports.Measured) float64 { return Of(x.Result).IdealNs })})
			}
			slices.SortStableFunc(ideal.Points, func(a, b view.Point) int { return cmp.Compare(a.X, b.X) })
			lines = append(lines, ideal)
		}
		chart := &view.LineChart{Title: title, Desc: "The time is logarithmic. " + charts.DescribeSeries(lines), YLabel: "Iteration, median to p99",
			XLabel: "Computation / communication", X: x, XTicks: ticks, YUnit: view.NsLabel, Series: lines}
		s.Figures = append(s.Figures, view.Figure{Title: title, Caption: view.Visible(g.Key.Conditions()), Chart: chart, Data: data})
	}
	return s
}

func pageRow(x *reports.Measured, all []*ParamServer) []view.GridCell {
	ps := Of(x.Result)
	interval, overlap := "-", "-"
	if ps.MeanHigh > ps.MeanLow {
		interval = view.NsLabel(ps.MeanLow) + " to " + view.NsLabel(ps.MeanHigh)
	}
	if o, ok := ps.overlap(); ok && view.Finite(o) {
		overlap = view.Number(o*100, 1) + " %"
	}
	percentiles := ps.Iteration.Percentiles()
	return []view.GridCell{view.NameCell(x.Name() + " " + ps.Arm), view.NumberCell(view.Number(ps.ComputeRatio, -1)), view.NumberCell(view.Integer(int64(ps.Levels))), view.NumberCell(view.Integer(ps.Iteration.Count)),
		view.NumberCell(view.NsLabel(ps.Iteration.Mean)), view.NumberCell(interval), {Text: view.NsLabel(percentiles[0].Ns), Class: "n", Mark: percentiles[0].TooFew},
		{Text: view.NsLabel(percentiles[2].Ns), Class: "n", Mark: percentiles[2].TooFew}, view.NumberCell(view.NsLabel(ps.CommunicationNs)), view.NumberCell(view.NsLabel(ps.ComputeNs)),
		view.NumberCell(view.NsLabel(ps.IdealNs)), view.NumberCell(overlap), view.NumberCell(fasterThanFIFO(ps, all))}
}
