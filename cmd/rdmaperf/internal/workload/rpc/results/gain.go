package results

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Gain is how many times the throughput of plain gRPC over TCP each other carrier of calls has, by size.
func Gain(set *reports.Set) view.Section {
	s := view.Section{ID: "gain", Title: "Gain over gRPC on TCP",
		Intro: "Throughput as a multiple of that of grpc(tcp) in the same run, at every size. Above 1 is faster."}
	for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (reports.Condition, bool) {
		return x.Condition(), x.Workload == Results.Name && Of(x.Result) != nil && x.Throughput != nil && x.Rate == 0
	}) {
		sizes := reports.SizesOf(g.Samples)
		arms := reports.Split(g.Samples)
		at := slices.IndexFunc(arms, func(b *reports.BySeries) bool { return Of(b.Runs[0].Result).Form == "tcp" })
		if len(sizes) < 2 || len(arms) < 2 || at < 0 {
			continue
		}
		base := charts.ThroughputLine(arms[at])
		title := g.Key.Title()
		lines := []view.Series{{Name: base.Name, Short: base.Short, Slot: base.Slot, Thin: true}}
		for _, p := range base.Points {
			lines[0].Points = append(lines[0].Points,
				view.Point{X: p.X, Y: 1, Tip: fmt.Sprintf("%s\n%s\n1.00x", base.Name, reports.SizeLabel(int64(p.X)))})
		}
		for i, b := range arms {
			if i == at {
				continue
			}
			line := view.Series{Name: b.Series, Short: b.Short, Slot: b.Slot}
			for _, p := range charts.ThroughputLine(b).Points {
				k, found := slices.BinarySearchFunc(base.Points, p.X, func(q view.Point, x float64) int {
					return cmp.Compare(q.X, x)
				})
				if !found || base.Points[k].Y == 0 {
					continue
				}
				gain := p.Y / base.Points[k].Y
				line.Points = append(line.Points,
					view.Point{X: p.X, Y: gain, Tip: fmt.Sprintf("%s\n%s\n%s, %s MiB/s against %s", b.Series,
						reports.SizeLabel(int64(p.X)), gainLabel(gain), view.Digits3(p.Y),
						view.Digits3(base.Points[k].Y))})
			}
			lines = append(lines, line)
		}
		chart := &view.LineChart{Title: "Gain by size: " + title, Desc: "Logarithmic axes. " +
			charts.DescribeSeries(lines),
			YLabel: "Throughput / " + base.Short, XLabel: "Message size", X: charts.SizeScale(sizes),
			XTicks: charts.SizeTicks(sizes), YUnit: gainLabel, Series: lines}
		s.Figures = append(s.Figures, view.Figure{Title: title, Caption: g.Key.Describe(), Chart: chart,
			Data: charts.PointTable(title, "size", "gain", lines)})
	}
	return s
}

func gainLabel(v float64) string { return view.Number(v, 2) + "x" }
