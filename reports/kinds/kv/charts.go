package kv

import (
	"cmp"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// section is the mixes of YCSB: how many operations a second, and where the time of
// each kind goes.
func section(set *reports.Set) view.Section {
	s := view.Section{ID: "ycsb", Title: "Key-value store",
		Intro: "Mixes of YCSB on an embedded store behind calls. Each answer says how long the server was in the store: what is left of the latency is what carries the calls. Writers wait for each other in the store."}
	type key struct {
		reports.Load
		Rate float64
	}
	for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (key, bool) {
		if Of(x.Result) == nil || x.Latency == nil || x.Throughput == nil {
			return key{}, false
		}
		return key{Load: acrossMixes(reports.LoadOf(x.Result)), Rate: x.Rate}, true
	}) {
		caption := g.Key.Load.Conditions()
		if g.Key.Rate > 0 {
			caption += ", " + view.RateLabel(g.Key.Rate) + " offered"
		}
		mixes := reports.GroupBy(g.Samples, func(x *reports.Measured) (string, bool) { return Of(x.Result).Mix, true })
		slices.SortStableFunc(mixes, func(a, b *reports.Group[string]) int { return cmp.Compare(a.Key, b.Key) })
		s.Figures = append(s.Figures, rates(view.Visible(caption), mixes))
		for _, m := range mixes {
			s.Figures = append(s.Figures, parts(m))
		}
	}
	return s
}

func block(m *reports.Group[string]) string {
	return "Mix " + view.Visible(m.Key) + ", " + view.Visible(Of(m.Samples[0].Result).Title)
}

func rates(caption string, mixes []*reports.Group[string]) view.Figure {
	const title = "Operations a second by mix"
	chart := &view.BarChart{Title: title, XLabel: "Operations a second", Unit: view.Digits3}
	data := view.Grid{Caption: title, Head: view.HeadCells("mix", "series", "operations a second", "gain", "mean", "change", "p50", "p99", "in the store, mean", "its part")}
	var words []string
	for _, m := range mixes {
		var baseRate, baseMean float64
		for i, b := range reports.Split(m.Samples) {
			rate := reports.MedianOf(b.Runs, func(x *reports.Measured) float64 { return rate(x.Result) })
			mean := reports.MedianOf(b.Runs, func(x *reports.Measured) float64 { return mean(x.Result) })
			p50, p99 := reports.MedianOf(b.Runs, func(x *reports.Measured) float64 { return x.Latency.P50 }), reports.MedianOf(b.Runs, func(x *reports.Measured) float64 { return p99(x.Result) })
			store := reports.MedianOf(b.Runs, func(x *reports.Measured) float64 { return store(x.Result) })
			if i == 0 {
				baseRate, baseMean = rate, mean
			}
			tip := b.Series + "\n" + block(m) + "\n" + view.RateLabel(rate) + "\nmean " + view.NsLabel(mean)
			chart.Bars = append(chart.Bars, view.Bar{Block: block(m), Slot: b.Slot, Value: rate, Text: view.Digits3(rate) + ", " + view.Ratio(rate, baseRate), Tip: tip, FirstOfKind: i == 0})
			words = append(words, b.Series+", mix "+view.Visible(m.Key)+": "+view.RateLabel(rate)+".")
			data.Rows = append(data.Rows, []view.GridCell{view.NameCell(m.Key), view.TextCell(b.Series), view.NumberCell(view.RateLabel(rate)), view.NumberCell(view.Ratio(rate, baseRate)),
				view.NumberCell(view.NsLabel(mean)), view.NumberCell(view.ChangeText(mean, baseMean)), view.NumberCell(view.NsLabel(p50)), view.NumberCell(view.NsLabel(p99)), view.NumberCell(view.NsLabel(store)), view.NumberCell(view.ShareText(store / mean))})
		}
	}
	chart.Legend = seriesLegend(mixes)
	chart.Desc = view.Joined(words)
	return view.Figure{Title: title, Caption: caption, Chart: chart, Data: data}
}

// parts is a bar for the latency of each operation of a mix, and a hollow one for what of it
// was the store's.
func parts(m *reports.Group[string]) view.Figure {
	title := block(m) + ": mean latency, and the store's part"
	chart := &view.BarChart{Title: title, XLabel: "Mean [µs]; hollow: in the store", Unit: view.Digits3}
	data := view.Grid{Caption: title, Head: view.HeadCells("operation", "series", "operations", "mean", "p50", "p99", "p99.9", "store mean", "store p99", "its part")}
	var words []string
	for _, op := range ops {
		call, store := latencyOf(op, func(o *Operation) *reports.Latency { return &o.Latency }), latencyOf(op, func(o *Operation) *reports.Latency { return &o.Store })
		first := true
		for _, b := range reports.Split(m.Samples) {
			runs := slices.DeleteFunc(slices.Clone(b.Runs), func(x *reports.Measured) bool { return call(x.Result) == nil })
			if len(runs) == 0 {
				continue
			}
			of := func(part func(*reports.Result) *reports.Latency, figure func(*reports.Latency) float64) float64 {
				return reports.MedianOf(runs, func(x *reports.Measured) float64 { return figure(part(x.Result)) })
			}
			meanOf := func(l *reports.Latency) float64 { return l.Mean }
			mean, inStore := of(call, meanOf), of(store, meanOf)
			block := view.Capital(op)
			for i, v := range []float64{mean, inStore} {
				what := []string{"mean ", "in the store "}[i]
				chart.Bars = append(chart.Bars, view.Bar{Block: block, Slot: b.Slot, Value: v / 1000, Thin: i == 1, Text: view.Digits3(v / 1000),
					Tip: b.Series + "\n" + block + "\n" + what + view.NsLabel(v), FirstOfKind: first})
				first = false
			}
			words = append(words, b.Series+", "+op+": mean "+view.NsLabel(mean)+", in the store "+view.NsLabel(inStore)+".")
			var n int64
			for _, x := range runs {
				n += call(x.Result).Count
			}
			p := func(l func(*reports.Result) *reports.Latency, i int) view.GridCell {
				return view.GridCell{Text: view.NsLabel(of(l, func(l *reports.Latency) float64 { return l.Percentiles()[i].Ns })), Class: "n", Mark: l(runs[0].Result).Percentiles()[i].TooFew}
			}
			data.Rows = append(data.Rows, []view.GridCell{view.NameCell(op), view.TextCell(b.Series), view.NumberCell(view.Integer(n)), view.NumberCell(view.NsLabel(mean)),
				p(call, 0), p(call, 2), p(call, 3), view.NumberCell(view.NsLabel(inStore)), p(store, 2), view.NumberCell(view.ShareText(inStore / mean))})
		}
	}
	chart.Legend = seriesLegend([]*reports.Group[string]{m})
	chart.Desc = view.Joined(words)
	return view.Figure{Title: title, Caption: view.Visible(m.Samples[0].Condition().Describe()), Chart: chart, Data: data}
}

func seriesLegend(mixes []*reports.Group[string]) []view.LegendEntry {
	var all []*reports.Measured
	for _, m := range mixes {
		all = append(all, m.Samples...)
	}
	var legend []view.LegendEntry
	for _, b := range reports.Split(all) {
		legend = append(legend, view.LegendEntry{Name: b.Short, Slot: b.Slot, Bar: true})
	}
	return legend
}
