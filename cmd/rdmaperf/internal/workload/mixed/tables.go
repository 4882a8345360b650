package mixed

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// latencyCells are the columns of a latency, dashes for none.
func latencyCells(l *reports.Latency, names ...string) (cells []view.Cell) {
	for _, n := range names {
		switch {
		case l == nil:
			cells = append(cells, view.Cell{Text: "-"})
		case n == "max":
			cells = append(cells, view.Cell{Text: l.MaxText()})
		default:
			cells = append(cells, reports.PercentileCell(l, n))
		}
	}
	return cells
}

// shareOf is how many of a hundred operations a side had.
func (d *Mixed) shareOf(side int) float64 {
	if side == reads {
		return d.AchievedReadPercent
	}
	return share(d.Writes.Operations, d.Reads.Operations)
}

func blocksCell(d *Mixed) view.Cell { return view.Cell{Text: view.Printable(d.Blocks)} }

// tables show both directions of each point, and where there are several sizes what of
// each direction had which.
func tables(g *reports.Grouped, rows []*reports.Result, u view.Units) []reports.Block {
	t := &view.Table{Columns: g.PerRow([]view.Column{{Name: "blocks", Left: true}, {Name: "read%"}, {Name: "op", Left: true}, {Name: "% of all"}, {Name: "#operations", Spare: 2}, {Name: "IOPS"}, {Name: "BW", Unit: u.Name()},
		{Name: "p50", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "p99.9", Unit: "us", Spare: 1}, {Name: "max", Unit: "us", Spare: 3}})}
	sizes := &view.Table{Columns: g.PerRow([]view.Column{{Name: "blocks", Left: true}, {Name: "read%"}, {Name: "op", Left: true}, {Name: "#bytes"}, {Name: "asked", Unit: "%"}, {Name: "achieved", Unit: "%"}, {Name: "#operations"}})}
	for _, r := range rows {
		d := Of(r)
		for i, s := range sides {
			x := s.of(d)
			if x.Operations == 0 && x.Latency == nil {
				continue
			}
			cells := []view.Cell{blocksCell(d), {Text: strconv.Itoa(d.ReadPercent)}, {Text: s.name}, {Text: view.Number(d.shareOf(i), 2)}, {Text: view.Integer(x.Operations)}, {Text: view.Number(x.OperationsPerSecond, 0)}, {Text: u.Bandwidth(x.BytesPerSecond)}}
			t.Add(g.PerRowCells(r, append(cells, latencyCells(x.Latency, "p50", "p99", "p999", "max")...))...)
			if len(x.Blocks) < 2 {
				continue
			}
			for _, b := range x.Blocks {
				sizes.Add(g.PerRowCells(r, []view.Cell{blocksCell(d), {Text: strconv.Itoa(d.ReadPercent)}, {Text: s.name}, {Text: view.Integer(b.SizeBytes)}, {Text: strconv.Itoa(b.Percent)},
					{Text: view.Number(share(b.Operations, x.Operations-b.Operations), 2)}, {Text: view.Integer(b.Operations)}})...)
			}
		}
	}
	return []reports.Block{{Table: t}, {Lead: "sizes as asked for, and as they were:", Table: sizes}}
}

// sideBySide holds stacks against each other, each direction by itself.
func sideBySide(results []reports.Result, u view.Units) (out []reports.SideBlock) {
	type key struct {
		reports.Load
		rate  float64
		point string
	}
	var keys []key
	groups := map[key][]*reports.Result{}
	for i := range results {
		r := &results[i]
		if Of(r) == nil {
			continue
		}
		k := key{reports.LoadOf(r), r.Rate, Of(r).point()}
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], r)
	}
	for _, k := range keys {
		t, base, repeated := stacksTable(groups[k], u)
		if t == nil {
			continue
		}
		out = append(out, reports.SideBlock{Title: "side by side: " + k.What() + ", " + k.point + ", ratio to " + view.Printable(base), Conditions: reports.BesideConditions(k.Load, k.rate, repeated), Table: t})
	}
	return out
}

// stacksTable is nil for one stack alone.
func stacksTable(of []*reports.Result, u view.Units) (t *view.Table, base string, repeated bool) {
	var stacks, asked []string
	by := map[string][]*reports.Result{}
	for _, r := range of {
		if by[r.Stack] == nil {
			stacks, asked = append(stacks, r.Stack), append(asked, reports.TransportOf(r))
		}
		by[r.Stack] = append(by[r.Stack], r)
		repeated = repeated || len(by[r.Stack]) > 1
	}
	if len(stacks) < 2 {
		return nil, "", false
	}
	short := reports.ShortNames(stacks, asked)
	t = &view.Table{Columns: []view.Column{{Name: "op", Left: true}, {Name: "stack", Left: true}, {Name: "IOPS"}, {Name: "BW", Unit: u.Name(), Spare: 1}, {Name: "p50", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "IOPS ratio", Spare: 2}, {Name: "p50 ratio", Spare: 3}}}
	for i, s := range sides {
		median := func(stack string, figure func(x *Direction) float64) float64 {
			return reports.MedianOver(by[stack], func(r *reports.Result) float64 { return figure(s.of(Of(r))) })
		}
		rate := func(x *Direction) float64 { return x.OperationsPerSecond }
		p50 := func(x *Direction) float64 { return x.Latency.P50 }
		for k, stack := range stacks {
			without := func(r *reports.Result) bool { return latencyOf(i)(r) == nil }
			if slices.ContainsFunc(by[stack], without) {
				continue
			}
			cells := []view.Cell{{Text: s.name}, {Text: view.Printable(short[k])}, {Text: view.Number(median(stack, rate), 0)}, {Text: u.Bandwidth(median(stack, func(x *Direction) float64 { return x.BytesPerSecond }))}}
			l := reports.MedianLatencies(by[stack], latencyOf(i))
			cells = append(cells, latencyCells(l, "p50", "p99")...)
			ratios := []view.Cell{{Text: "-"}, {Text: "-"}}
			if !slices.ContainsFunc(by[stacks[0]], without) {
				ratios = []view.Cell{{Text: view.Ratio(median(stack, rate), median(stacks[0], rate))}, {Text: view.Ratio(median(stack, p50), median(stacks[0], p50))}}
			}
			t.Add(append(cells, ratios...)...)
		}
	}
	return t, short[0], repeated
}

// pageTables have both directions of each sample.
func pageTables(k reports.Condition, samples []*reports.Measured) []view.Grid {
	t := view.Grid{Caption: k.Title() + ": reads and writes", Note: k.Describe(),
		Head: view.HeadCells("stack", "blocks", "reads asked %", "direction", "% of all", "operations", "IOPS", "MiB/s", "p50 µs", "p99 µs", "p99.9 µs", "max µs")}
	for _, s := range samples {
		d := Of(s.Result)
		if d == nil {
			continue
		}
		for i, side := range sides {
			x := side.of(d)
			if x.Operations == 0 && x.Latency == nil {
				continue
			}
			row := []view.GridCell{view.NameCell(s.Name()), view.TextCell(d.Blocks), view.NumberCell(strconv.Itoa(d.ReadPercent)), view.TextCell(side.name), view.NumberCell(view.Number(d.shareOf(i), 2)),
				view.NumberCell(view.Integer(x.Operations)), view.NumberCell(view.Number(x.OperationsPerSecond, 0)), view.NumberCell(view.Bandwidth(x.BytesPerSecond, false))}
			for _, c := range latencyCells(x.Latency, "p50", "p99", "p999", "max") {
				row = append(row, view.GridCell{Text: c.Text, Class: "n", Mark: c.Mark})
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return []view.Grid{t}
}

// card is the comparison of reads, or where there are none of writes, in the verdict.
var card = &reports.CardKind{
	Rank:   30,
	Has:    func(s *reports.Measured) bool { d := Of(s.Result); return d != nil && d.main() != nil },
	Figure: func(s *reports.Measured) float64 { return Of(s.Result).main().P50 },
	Kicker: func(k reports.Condition) string { return fmt.Sprintf("Mixed · %s · latency of reads", k.Extra) },
	Winner: ", median",
	Note: func(in []*reports.Measured) string {
		if Of(in[0].Result).Reads.Latency == nil {
			return "There are no reads: the latency is that of writes."
		}
		return ""
	},
}

// main is the latency of reads, else of writes.
func (d *Mixed) main() *reports.Latency {
	if d.Reads.Latency != nil {
		return d.Reads.Latency
	}
	return d.Writes.Latency
}
