package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// resultTables is what one load gave; each repeat and what the figures rest on are folded.
type resultTables struct {
	Title, Note string
	Main, More  []view.Grid
}

// Folded counts the rows of the folded tables.
func (t *resultTables) Folded() (rows int) {
	for _, g := range t.More {
		rows += len(g.Rows)
	}
	return rows
}

// mostRows keeps a page of many pairs of hosts below a few megabytes.
const mostRows = 500

func newResultTables(set *reports.Set) []resultTables {
	var out []resultTables
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		c := s.Condition()
		c.Extra = "" // what differs is a column
		return c, true
	}) {
		k := g.Key
		dims, fixed := reports.Differing(reports.ResultsOf(g.Samples))
		k.Extra = view.Visible(fixed)
		t := resultTables{Title: k.Title(), Note: view.Capital(k.Describe()) + "."}
		if all := len(g.Samples); all > mostRows {
			g.Samples = g.Samples[:mostRows]
			t.Note += fmt.Sprintf(" The first %d of %d; the document has all.", mostRows, all)
		}
		medians := reports.MedianSamples(g.Samples)
		repeated := len(medians) < len(g.Samples)
		if repeated {
			t.Note += " Medians over repeats; minimum and maximum are those of all."
		}
		main := []view.Grid{latencyTable("Latency [µs]", medians, dims, false), rateTable("Throughput", medians, dims),
			figureTable("Figures", medians, dims)}
		twins := latencyTable("Latency [µs], corrected and service time", medians, dims, true)
		var more []view.Grid
		if repeated {
			more = append(more, latencyTable("Latency of each repeat [µs]", g.Samples, dims, true),
				rateTable("Throughput of each repeat", g.Samples, dims),
				figureTable("Figures of each repeat", g.Samples, dims))
		} else if len(twins.Rows) > len(main[0].Rows) {
			more = append(more, twins)
		}
		more = append(more, intervalTable(g.Samples), loopTable(g.Samples), disturbanceTable(g.Samples),
			workTable(g.Samples), rawTable(g.Samples), counterTable(g.Samples))
		t.Main, t.More = filled(main), filled(more)
		out = append(out, t)
	}
	return out
}

func front(dims []reports.DimDef) []view.GridCell {
	names := view.Each(reports.DimColumns(dims), func(c view.Column) string { return c.Name })
	return view.HeadCells(slices.Concat([]string{"stack"}, names, []string{"size"})...)
}

// frontOf are their cells; what says which of several a row is, and size of what it is.
func frontOf(s *reports.Measured, what string, size int64, dims []reports.DimDef) []view.GridCell {
	values := view.Each(s.DimCells(dims), func(c view.Cell) string { return view.Visible(c.Text) })
	return append([]view.GridCell{view.NameCell(s.Name() + what)},
		view.NumberCells(append(values, reports.SizeLabel(size))...)...)
}

// figureTable has the figures of the workload's own that are not of a distribution.
func figureTable(caption string, samples []*reports.Measured, dims []reports.DimDef) view.Grid {
	t := view.Grid{Caption: caption, Head: front(dims)}
	var all []reports.Figure
	for _, s := range samples {
		all = append(all, s.Figures...)
	}
	all = reports.OncePerName(all)
	for _, f := range all {
		t.Head = append(t.Head, view.HeadCells(reports.FigureLabel(f.Name))...)
	}
	for _, s := range samples {
		if len(all) > 0 {
			t.Add(frontOf(s, "", s.SizeBytes, dims), view.Each(all, func(f reports.Figure) view.GridCell {
				if v, ok := s.Figure(f.Name); ok {
					return view.NumberCell(reports.QuantityLabel(f.Quantity, v))
				}
				return view.NumberCell("-")
			}))
		}
	}
	return t
}

func filled(tables []view.Grid) []view.Grid {
	return slices.DeleteFunc(tables, func(t view.Grid) bool { return len(t.Rows) == 0 })
}

// latencyTable has the distributions of the samples; without twins none that is corrected or of service time.
func latencyTable(caption string, samples []*reports.Measured, dims []reports.DimDef, twins bool) view.Grid {
	t := view.Grid{Caption: caption,
		Head: append(front(dims), view.HeadCells("samples", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max",
			"mean", "stddev")...)}
	for _, s := range samples {
		for _, l := range s.Distributions() {
			if twins || l.Latency != s.LatencyCorrected && l.Latency != s.LatencyService {
				what := ""
				if l.Name != "" {
					what = ", " + strings.ReplaceAll(l.Name, "_", " ")
				}
				t.Add(frontOf(s, what, l.SizeBytes, dims), view.NumberCells(l.Latency.Texts()...))
			}
		}
	}
	return t
}

func rateTable(caption string, samples []*reports.Measured, dims []reports.DimDef) view.Grid {
	t := view.Grid{Caption: caption, Head: append(front(dims), view.HeadCells("operations", "seconds", "MiB/s", "Gb/s",
		"op/s")...)}
	peaks := slices.ContainsFunc(samples, func(s *reports.Measured) bool {
		return s.Throughput != nil && s.Throughput.PeakOverNs > 0
	})
	if peaks {
		t.Head = append(t.Head, view.HeadCells("peak MiB/s", "peak over [ms]")...)
	}
	for _, s := range samples {
		r := s.Throughput
		if r == nil {
			continue
		}
		texts := []string{view.Integer(s.Operations), seconds(s.DurationNs), view.Bandwidth(r.BytesPerSecond, false),
			view.Bandwidth(r.BytesPerSecond, true), view.Number(r.OperationsPerSecond, 0)}
		if peaks && r.PeakOverNs < 1 {
			texts = append(texts, "-", "-")
		} else if peaks {
			texts = append(texts, view.Bandwidth(r.PeakBytesPerSecond, false),
				view.Number(float64(r.PeakOverNs)/1e6, -1))
		}
		t.Add(frontOf(s, "", s.SizeBytes, dims), view.NumberCells(texts...))
	}
	return t
}

func seconds(ns int64) string { return view.Number(float64(ns)/1e9, 2) }

func pointOf(s *reports.Measured) []view.GridCell {
	return []view.GridCell{view.NameCell(s.Name()), view.NumberCell(reports.SizeLabel(s.SizeBytes))}
}

func workTable(samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: "What each figure rests on",
		Head: view.HeadCells("stack", "size", "label", "operations", "errors", "verified", "compared byte by byte",
			"numbers compared", "bytes compared", "seconds", "CPU client [s]", "CPU server [s]", "GCs", "allocations",
			"measured by")}
	for _, s := range samples {
		failed := view.NumberCell(view.Integer(s.Errors))
		if s.Errors > 0 {
			failed.Class = "n bad"
		}
		verified := view.GridCell{Text: "✓ yes", Class: "good"}
		if !s.Verified {
			verified = view.GridCell{Text: "! no", Class: "warn"}
		}
		compared, cpu, gc := []string{"-", "-", "-"}, []string{"-", "-"}, []string{"-", "-"}
		if v := s.Verification; v != nil {
			compared = []string{view.Integer(v.Whole), view.Integer(v.Numbers), view.Integer(v.Bytes)}
		}
		if s.CPU != nil {
			cpu = []string{view.Number(s.CPU.ClientSeconds, 2), view.Number(s.CPU.ServerSeconds, 2)}
		}
		if s.GC != nil {
			gc = []string{view.Integer(s.GC.ClientCollections + s.GC.ServerCollections),
				view.Integer(s.GC.ClientAllocations + s.GC.ServerAllocations)}
		}
		t.Add(pointOf(s), []view.GridCell{view.TextCell(s.Label), view.NumberCell(view.Integer(s.Operations)), failed,
			verified}, view.NumberCells(slices.Concat(compared, []string{seconds(s.DurationNs)}, cpu, gc)...),
			[]view.GridCell{view.TextCell(s.MeasuredBy)})
	}
	return t
}

func disturbanceTable(samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: "What the machine did meanwhile",
		Head: view.HeadCells("stack", "size", "side", "verdict", "run-queue wait [ms]", "involuntary switches",
			"migrations", "page faults", "steal [ms]", "sent again", "window closed [ms]", "why")}
	for _, s := range samples {
		d := s.Disturbance
		if d == nil {
			continue
		}
		verdict := view.GridCell{Text: "✓ " + d.Verdict, Class: "good"}
		if !d.Quiet() {
			verdict = view.GridCell{Text: "! " + view.Visible(d.Shown()), Class: "warn"}
		}
		for _, n := range d.Sides() {
			sockets := []string{view.Integer(n.Retransmits), view.Number(float64(n.WindowLimitedNs)/1e6, 1)}
			if n.Sockets == 0 { // no TCP connections
				sockets = []string{"", ""}
			}
			t.Add(pointOf(s), []view.GridCell{view.TextCell(n.Name), verdict},
				view.NumberCells(view.Number(float64(n.RunQueueWaitNs)/1e6, 1), view.Integer(n.InvoluntarySwitches),
					view.Integer(n.Migrations), view.Integer(n.MinorFaults+n.MajorFaults),
					view.Number(float64(n.StealNs)/1e6, 0)),
				view.NumberCells(sockets...), []view.GridCell{view.TextCell(strings.Join(d.Reasons, "; "))})
		}
	}
	return t
}

func intervalTable(samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: "Over repeats, with confidence intervals (" + reports.IntervalMethod + ")",
		Head: view.HeadCells("stack", "size", "repeats", "figure", "median or mean", "from", "to", "confidence")}
	for _, s := range reports.Split(samples) {
		_, sets := reports.RepeatSets(reports.ResultsOf(s.Runs))
		for _, set := range sets {
			n := len(set.Samples)
			front := []view.GridCell{view.NameCell(s.Series), view.NumberCell(reports.SizeLabel(set.Samples[0].SizeBytes)),
				view.NumberCell(view.Integer(int64(n)))}
			switch {
			case n < 2:
				continue
			case n < reports.IntervalRepeats:
				t.Add(front, []view.GridCell{{Text: "! " + reports.TooFewRepeats(n), Class: "warn"}},
					view.NumberCells("-", "-", "-", "-"))
				continue
			}
			for _, m := range reports.MeanIntervals(set.Samples) {
				t.Add(front, []view.GridCell{view.TextCell(m.Figure)},
					view.NumberCells(reports.QuantityLabel(m.Quantity(), m.Center()),
						reports.QuantityLabel(m.Quantity(), m.Low), reports.QuantityLabel(m.Quantity(), m.High),
						view.Number(100*m.Confidence, 1)+" %"))
			}
		}
	}
	return t
}

func loopTable(samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: "What of the offered load was done",
		Head: view.HeadCells("stack", "size", "due", "sent", "completed", "offered [1/s]", "achieved [1/s]", "")}
	for _, s := range samples {
		if o := s.OpenLoop; o != nil {
			mark := view.TextCell("")
			if o.Saturated {
				mark = view.GridCell{Text: "! saturated", Class: "warn"}
			}
			t.Add(pointOf(s), view.NumberCells(o.Texts()...), []view.GridCell{mark})
		}
	}
	return t
}

type runView struct {
	Name, Command, Hint string
	Environment         view.Grid
	Server              *view.Grid
	Options             view.Grid  // the same for all results
	Varying             *view.Grid // one row a result
}

func newRunView(d *reports.Document, name string) runView {
	v := runView{Name: view.Visible(name), Command: view.Visible(shellLine(d.Command)),
		Environment: pairsTable("Environment of the client", flatten(d.Environment))}
	if d.Error != nil {
		v.Hint = view.Visible(d.Error.Hint)
	}
	if d.ServerEnvironment != nil {
		t := pairsTable("Environment of the server", flatten(*d.ServerEnvironment))
		v.Server = &t
	}
	all := map[string]string{}
	options := view.Each(d.Results, func(r reports.Result) map[string]string {
		of := map[string]string{}
		for _, kv := range flatten(r.Parameters) {
			of[kv[0]], all[kv[0]] = kv[1], kv[1]
		}
		return of
	})
	var same [][2]string
	var differ []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(options, func(of map[string]string) bool { v, ok := of[k]; return !ok || v != all[k] }) {
			differ = append(differ, k)
		} else {
			same = append(same, [2]string{k, all[k]})
		}
	}
	v.Options = pairsTable("Options that all results share", same)
	if len(differ) > 0 {
		t := view.Grid{Caption: "Options that differ between results",
			Head: view.HeadCells(append([]string{"result"}, differ...)...)}
		for i, r := range d.Results {
			t.Add([]view.GridCell{view.NameCell(fmt.Sprintf("%s, %s, %s", r.Stack,
				strings.TrimSpace(r.Workload+" "+r.Op), reports.SizeLabel(r.SizeBytes)))},
				view.Each(differ, func(k string) view.GridCell { return view.TextCell(options[i][k]) }))
		}
		v.Varying = &t
	}
	return v
}

func pairsTable(caption string, pairs [][2]string) view.Grid {
	t := view.Grid{Caption: caption, Head: view.HeadCells("name", "value")}
	for _, kv := range pairs {
		t.Add([]view.GridCell{view.NameCell(kv[0]), view.TextCell(kv[1])})
	}
	return t
}

// flatten lists every leaf of a value's JSON form by its path, sorted.
func flatten(v any) [][2]string {
	var tree any
	b, err := json.Marshal(v)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber() // 2^53 and more must not be rounded
		err = d.Decode(&tree)
	}
	if err != nil {
		return [][2]string{{"options", "cannot be shown: " + err.Error()}}
	}
	var out [][2]string
	walk(&out, "", tree)
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return out
}

func walk(out *[][2]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			if path != "" {
				k = path + "." + k
			}
			walk(out, k, child)
		}
	case []any:
		parts := make([]string, len(v))
		for i, child := range v {
			var leaf [][2]string
			walk(&leaf, "", child)
			for _, kv := range leaf {
				parts[i] = strings.TrimSpace(parts[i] + " " + strings.TrimSpace(kv[0]+" "+kv[1]))
			}
		}
		*out = append(*out, [2]string{path, strings.Join(parts, ", ")})
	case nil:
	default:
		*out = append(*out, [2]string{path, fmt.Sprint(v)})
	}
}

// shellLine quotes a command for a POSIX shell.
func shellLine(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		if a != "" && strings.Trim(a,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%") == "" {
			quoted[i] = a
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

func counterTable(samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: "Device counters that moved",
		Head: view.HeadCells("stack", "size", "side", "device", "counter", "change")}
	for _, s := range samples {
		for _, side := range s.Counters.Sides() {
			for _, d := range side.Devices {
				for _, c := range d.Moved(false) {
					change := view.NumberCell(view.Integer(d.Counters[c]))
					if d.Counters[c] < 0 {
						change = view.GridCell{Text: "! reset, " + change.Text, Class: "n warn"}
					}
					t.Add(pointOf(s), []view.GridCell{view.TextCell(side.Side), view.TextCell(d.Name()), view.TextCell(c),
						change})
				}
			}
		}
	}
	return t
}

func rawTable(samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: "Raw samples",
		Head: view.HeadCells("stack", "size", "samples of", "file", "kept", "not kept", "limit")}
	for _, s := range samples {
		for _, raw := range s.RawSamples {
			dropped := view.NumberCell(view.Integer(raw.Dropped))
			if raw.Dropped > 0 {
				dropped.Class = "n warn"
			}
			t.Add(pointOf(s), []view.GridCell{view.TextCell(raw.Set), view.TextCell(raw.File),
				view.NumberCell(view.Integer(raw.Count)), dropped, view.NumberCell(view.Integer(raw.Limit))})
		}
	}
	return t
}

func publishedTables(docs []*reports.Document) (all []resultTables) {
	for _, d := range docs {
		for i := range d.Published {
			of := &d.Published[i]
			t := view.Grid{Caption: "Published, and measured here"}
			t.Head = view.Each(of.Columns, view.TextCell)
			for _, row := range of.With(d.Results) {
				var cells []view.GridCell
				for k := range of.Columns {
					text := "-"
					if k < len(row) {
						text = row[k]
					}
					switch {
					case !of.Names(k):
						cells = append(cells, view.NumberCell(view.Visible(text)))
					case of.Has(row):
						cells = append(cells, view.TextCell(text))
					default:
						cells = append(cells, view.NameCell(text))
					}
				}
				t.Add(cells)
			}
			first, n := utf8.DecodeRuneInString(of.Title)
			all = append(all, resultTables{Title: view.Visible(string(unicode.ToUpper(first)) + of.Title[n:]),
				Note: view.Visible(of.Source), Main: filled([]view.Grid{t})})
		}
	}
	return all
}
