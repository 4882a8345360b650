package reports

import (
	"cmp"
	"slices"
	"strings"
)

// kvSection is the mixes of YCSB: how many operations a second, and where the time of
// each kind goes.
func (c *charts) kvSection(set *sampleSet) section {
	s := section{ID: "ycsb", Title: "Key-value store",
		Intro: "Mixes of YCSB on an embedded store behind calls. Each answer says how long the server was in the store: what is left of the latency is what carries the calls. Writers wait for each other in the store."}
	type key struct {
		load
		rate float64
	}
	for _, g := range groupBy(set.samples, func(x *sample) (key, bool) {
		if x.KV == nil || x.Latency == nil || x.Throughput == nil {
			return key{}, false
		}
		l := loadOf(x.Result)
		l.kv.mix, l.kv.title, l.kv.requests, l.kv.maxScan = "", "", "", 0
		return key{l, x.rate}, true
	}) {
		caption := g.key.load.kvConditions()
		if g.key.rate > 0 {
			caption += ", " + rateLabel(g.key.rate) + " offered"
		}
		mixes := groupBy(g.samples, func(x *sample) (string, bool) { return x.KV.Mix, true })
		slices.SortStableFunc(mixes, func(a, b *group[string]) int { return cmp.Compare(a.key, b.key) })
		s.Figures = append(s.Figures, c.kvRates(visible(caption), mixes))
		for _, m := range mixes {
			s.Figures = append(s.Figures, c.kvParts(m))
		}
	}
	return s
}

func kvBlock(m *group[string]) string {
	return "Mix " + visible(m.key) + ", " + visible(m.samples[0].KV.Title)
}

func (c *charts) kvRates(caption string, mixes []*group[string]) figure {
	const title = "Operations a second by mix"
	chart := &barChart{id: c.id(), title: title, xLabel: "Operations a second", unit: digits3}
	data := htmlTable{Caption: title, Head: headCells("mix", "series", "operations a second", "gain", "mean", "change", "p50", "p99", "in the store, mean", "its part")}
	var words []string
	for _, m := range mixes {
		var baseRate, baseMean float64
		for i, b := range split(m.samples) {
			rate := medianOf(b.runs, func(x *sample) float64 { return kvRate(x.Result) })
			mean := medianOf(b.runs, func(x *sample) float64 { return kvMean(x.Result) })
			p50, p99 := medianOf(b.runs, func(x *sample) float64 { return x.Latency.P50 }), medianOf(b.runs, func(x *sample) float64 { return kvP99(x.Result) })
			store := medianOf(b.runs, func(x *sample) float64 { return kvStore(x.Result) })
			if i == 0 {
				baseRate, baseMean = rate, mean
			}
			tip := b.series + "\n" + kvBlock(m) + "\n" + rateLabel(rate) + "\nmean " + nsLabel(mean)
			chart.bars = append(chart.bars, bar{block: kvBlock(m), slot: b.slot, value: rate, text: digits3(rate) + ", " + ratio(rate, baseRate), tip: tip, firstOfKind: i == 0})
			words = append(words, b.series+", mix "+visible(m.key)+": "+rateLabel(rate)+".")
			data.Rows = append(data.Rows, []htmlCell{nameCell(m.key), textCell(b.series), numberCell(rateLabel(rate)), numberCell(ratio(rate, baseRate)),
				numberCell(nsLabel(mean)), numberCell(changeText(mean, baseMean)), numberCell(nsLabel(p50)), numberCell(nsLabel(p99)), numberCell(nsLabel(store)), numberCell(shareText(store / mean))})
		}
	}
	chart.legend = seriesLegend(mixes)
	chart.desc = joined(words)
	return figure{title, caption, chart.render(), data}
}

// kvParts is a bar for the latency of each operation of a mix, and a hollow one for what of it
// was the store's.
func (c *charts) kvParts(m *group[string]) figure {
	title := kvBlock(m) + ": mean latency, and the store's part"
	chart := &barChart{id: c.id(), title: title, xLabel: "Mean [µs]; hollow: in the store", unit: digits3}
	data := htmlTable{Caption: title, Head: headCells("operation", "series", "operations", "mean", "p50", "p99", "p99.9", "store mean", "store p99", "its part")}
	var words []string
	for _, op := range kvOps {
		call, store := kvLatency(op, func(o *KVOperation) *Latency { return &o.Latency }), kvLatency(op, func(o *KVOperation) *Latency { return &o.Store })
		first := true
		for _, b := range split(m.samples) {
			runs := slices.DeleteFunc(slices.Clone(b.runs), func(x *sample) bool { return call(x.Result) == nil })
			if len(runs) == 0 {
				continue
			}
			of := func(part func(*Result) *Latency, figure func(*Latency) float64) float64 {
				return medianOf(runs, func(x *sample) float64 { return figure(part(x.Result)) })
			}
			meanOf := func(l *Latency) float64 { return l.Mean }
			mean, inStore := of(call, meanOf), of(store, meanOf)
			block := capital(op)
			for i, v := range []float64{mean, inStore} {
				what := []string{"mean ", "in the store "}[i]
				chart.bars = append(chart.bars, bar{block: block, slot: b.slot, value: v / 1000, thin: i == 1, text: digits3(v / 1000),
					tip: b.series + "\n" + block + "\n" + what + nsLabel(v), firstOfKind: first})
				first = false
			}
			words = append(words, b.series+", "+op+": mean "+nsLabel(mean)+", in the store "+nsLabel(inStore)+".")
			var n int64
			for _, x := range runs {
				n += call(x.Result).Count
			}
			p := func(l func(*Result) *Latency, i int) htmlCell {
				return htmlCell{Text: nsLabel(of(l, func(l *Latency) float64 { return l.Percentiles()[i].Ns })), Class: "n", Mark: l(runs[0].Result).Percentiles()[i].TooFew}
			}
			data.Rows = append(data.Rows, []htmlCell{nameCell(op), textCell(b.series), numberCell(integer(n)), numberCell(nsLabel(mean)),
				p(call, 0), p(call, 2), p(call, 3), numberCell(nsLabel(inStore)), p(store, 2), numberCell(shareText(inStore / mean))})
		}
	}
	chart.legend = seriesLegend([]*group[string]{m})
	chart.desc = joined(words)
	return figure{title, visible(m.samples[0].condition().describe()), chart.render(), data}
}

func seriesLegend(mixes []*group[string]) []legendEntry {
	var all []*sample
	for _, m := range mixes {
		all = append(all, m.samples...)
	}
	var legend []legendEntry
	for _, b := range split(all) {
		legend = append(legend, legendEntry{name: b.short, slot: b.slot, bar: true})
	}
	return legend
}

func joined(words []string) string { return strings.Join(words, " ") }
