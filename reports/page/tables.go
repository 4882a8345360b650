package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// resultTables is what one load gave: medians first, and folded behind them each repeat,
// the corrected twins, and what the figures rest on.
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

// newResultTables lists every figure, together what may be compared.
func newResultTables(set *reports.Set) []resultTables {
	var out []resultTables
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		c := s.Condition()
		c.Extra = "" // what differs is a column
		return c, true
	}) {
		k := g.Key
		dims, fixed := reports.Differing(resultsOf(g.Samples))
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
		main := []view.Grid{latencyTable(t.Title+": latency [µs]", medians, dims, false),
			rateTable(t.Title+": throughput", medians, dims), figureTable(t.Title+": figures", medians, dims)}
		twins := latencyTable(t.Title+": latency [µs], corrected and service time", medians, dims, true)
		var more []view.Grid
		if repeated {
			more = append(more, latencyTable(t.Title+": latency of each repeat [µs]", g.Samples, dims, true),
				rateTable(t.Title+": throughput of each repeat", g.Samples, dims),
				figureTable(t.Title+": figures of each repeat", g.Samples, dims))
		} else if len(twins.Rows) > len(main[0].Rows) {
			more = append(more, twins)
		}
		more = append(more, intervalTable(k, g.Samples), loopTable(k, g.Samples), disturbanceTable(k, g.Samples),
			workTable(k, g.Samples), rawTable(k, g.Samples), counterTable(k, g.Samples))
		t.Main, t.More = filled(main, t.Title), filled(more, t.Title)
		out = append(out, t)
	}
	return out
}

func resultsOf(samples []*reports.Measured) (results []*reports.Result) {
	for _, s := range samples {
		results = append(results, s.Result)
	}
	return results
}

// front are the columns that say which point a row is of.
func front(dims []reports.DimDef) []view.GridCell {
	head := view.HeadCells("stack")
	for _, c := range reports.DimColumns(dims) {
		head = append(head, view.HeadCells(c.Name)...)
	}
	return append(head, view.HeadCells("size")...)
}

// frontOf are their cells; what says which of several a row is, and size of what it is.
func frontOf(s *reports.Measured, what string, size int64, dims []reports.DimDef) []view.GridCell {
	row := []view.GridCell{view.NameCell(s.Name() + what)}
	for _, c := range s.DimCells(dims) {
		row = append(row, view.NumberCell(view.Visible(c.Text)))
	}
	return append(row, view.NumberCell(reports.SizeLabel(size)))
}

// figureTable has the figures of the workload's own that are not of a distribution.
func figureTable(caption string, samples []*reports.Measured, dims []reports.DimDef) view.Grid {
	t := view.Grid{Caption: caption, Head: front(dims)}
	var all []reports.Figure
	for _, s := range samples {
		for _, f := range s.Figures {
			if !slices.ContainsFunc(all, func(o reports.Figure) bool { return o.Name == f.Name }) {
				all = append(all, f)
			}
		}
	}
	for _, f := range all {
		t.Head = append(t.Head, view.HeadCells(reports.FigureLabel(f.Name))...)
	}
	for _, s := range samples {
		row := frontOf(s, "", s.SizeBytes, dims)
		for _, f := range all {
			text := "-"
			if v, ok := s.Figure(f.Name); ok {
				text = reports.QuantityLabel(f.Quantity, v)
			}
			row = append(row, view.NumberCell(text))
		}
		if len(all) > 0 {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// filled are the tables that have rows. Each stands below the title of its load, which its
// caption need not repeat, and whose conditions hold for all.
func filled(tables []view.Grid, title string) []view.Grid {
	var out []view.Grid
	for _, t := range tables {
		if len(t.Rows) > 0 {
			t.Caption, t.Note = view.Capital(strings.TrimPrefix(t.Caption, title+": ")), ""
			out = append(out, t)
		}
	}
	return out
}

// latencyTable has the distributions of the samples, or of each the first ones alone:
// without those that are corrected, or of service time.
func latencyTable(caption string, samples []*reports.Measured, dims []reports.DimDef, twins bool) view.Grid {
	t := view.Grid{Caption: caption,
		Head: append(front(dims), view.HeadCells("samples", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max",
			"mean", "stddev")...)}
	for _, s := range samples {
		for _, l := range s.Distributions() {
			if twins || l.Latency != s.LatencyCorrected && l.Latency != s.LatencyService {
				t.Rows = append(t.Rows, latencyRow(s, l, dims))
			}
		}
	}
	return t
}

// rateTable has the throughput of the samples, each direction by itself.
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
		row := append(frontOf(s, "", s.SizeBytes, dims), view.NumberCell(view.Integer(s.Operations)),
			view.NumberCell(view.Number(float64(s.DurationNs)/1e9, 2)),
			view.NumberCell(view.Bandwidth(r.BytesPerSecond, false)),
			view.NumberCell(view.Bandwidth(r.BytesPerSecond, true)),
			view.NumberCell(view.Number(r.OperationsPerSecond, 0)))
		if peaks {
			row = append(row, peakCells(r)...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// workTable says what each figure rests on.
func workTable(of reports.Condition, samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: of.Title() + ": what each figure rests on",
		Head: view.HeadCells("stack", "size", "label", "operations", "errors", "verified", "compared byte by byte",
			"numbers compared", "bytes compared", "seconds", "CPU client [s]", "CPU server [s]", "GCs", "allocations",
			"measured by")}
	for _, s := range samples {
		t.Rows = append(t.Rows, workRow(s))
	}
	return t
}

// peakCells are the best part of a window and its length.
func peakCells(t *reports.Throughput) []view.GridCell {
	if t.PeakOverNs < 1 {
		return []view.GridCell{view.NumberCell("-"), view.NumberCell("-")}
	}
	return []view.GridCell{view.NumberCell(view.Bandwidth(t.PeakBytesPerSecond, false)),
		view.NumberCell(view.Number(float64(t.PeakOverNs)/1e6, -1))}
}

func latencyRow(s *reports.Measured, of reports.NamedLatency, dims []reports.DimDef) []view.GridCell {
	l, what := of.Latency, ""
	if of.Name != "" {
		what = ", " + strings.ReplaceAll(of.Name, "_", " ")
	}
	row := append(frontOf(s, what, of.SizeBytes, dims), view.NumberCell(view.Integer(l.Count)),
		view.NumberCell(view.Usec(l.Min)))
	for _, p := range l.Percentiles()[:5] {
		row = append(row, view.NumberCell(p.Text()))
	}
	return append(row, view.NumberCell(l.MaxText()), view.NumberCell(l.MeanText()),
		view.NumberCell(view.Usec(l.StdDev)))
}

// disturbanceTable lists what the machine took from the threads that measure.
func disturbanceTable(of reports.Condition, samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: of.Title() + ": what the machine did meanwhile", Note: of.Describe(),
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
		for _, side := range []struct {
			name string
			n    *reports.Noise
		}{{"client", d.Client}, {"server", d.Server}} {
			if n := side.n; n != nil {
				t.Rows = append(t.Rows, []view.GridCell{view.NameCell(s.Name()),
					view.NumberCell(reports.SizeLabel(s.SizeBytes)), view.TextCell(side.name), verdict,
					view.NumberCell(view.Number(float64(n.RunQueueWaitNs)/1e6, 1)),
					view.NumberCell(view.Integer(n.InvoluntarySwitches)), view.NumberCell(view.Integer(n.Migrations)),
					view.NumberCell(view.Integer(n.MinorFaults + n.MajorFaults)),
					view.NumberCell(view.Number(float64(n.StealNs)/1e6, 0)), socketCell(n, view.Integer(n.Retransmits)),
					socketCell(n, view.Number(float64(n.WindowLimitedNs)/1e6, 1)),
					view.TextCell(strings.Join(d.Reasons, "; "))})
			}
		}
	}
	return t
}

// socketCell is empty for a side without TCP connections.
func socketCell(n *reports.Noise, text string) view.GridCell {
	if n.Sockets == 0 {
		text = ""
	}
	return view.NumberCell(text)
}

// loopTable says of open loops what of the load was done.
func loopTable(of reports.Condition, samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: of.Title() + ": what of the offered load was done",
		Note: "An operation that was due and not done when the window ended is in the latencies with the time that " +
			"it had waited by then; > marks figures that are at least that.",
		Head: view.HeadCells("stack", "size", "due", "sent", "completed", "offered [1/s]", "achieved [1/s]", "")}
	for _, s := range samples {
		if o := s.OpenLoop; o != nil {
			mark := view.TextCell("")
			if o.Saturated {
				mark = view.GridCell{Text: "! saturated", Class: "warn"}
			}
			t.Rows = append(t.Rows, []view.GridCell{view.NameCell(s.Name()),
				view.NumberCell(reports.SizeLabel(s.SizeBytes)), view.NumberCell(view.Integer(o.Due)),
				view.NumberCell(view.Integer(o.Sent)),
				view.NumberCell(view.Integer(o.Completed)), view.NumberCell(view.RateText(o.OfferedPerSecond)),
				view.NumberCell(view.Number(o.AchievedPerSecond, 1)), mark})
		}
	}
	return t
}

func workRow(s *reports.Measured) []view.GridCell {
	failed := view.GridCell{Text: view.Integer(s.Errors), Class: "n"}
	if s.Errors > 0 {
		failed.Class = "n bad"
	}
	verified := view.GridCell{Text: "✓ yes", Class: "good"}
	if !s.Verified {
		verified = view.GridCell{Text: "! no", Class: "warn"}
	}
	whole, numbers, octets := "-", "-", "-"
	if v := s.Verification; v != nil {
		whole, numbers, octets = view.Integer(v.Whole), view.Integer(v.Numbers), view.Integer(v.Bytes)
	}
	client, server, collections, allocations := "-", "-", "-", "-"
	if s.CPU != nil {
		client, server = view.Number(s.CPU.ClientSeconds, 2), view.Number(s.CPU.ServerSeconds, 2)
	}
	if s.GC != nil {
		collections = view.Integer(s.GC.ClientCollections + s.GC.ServerCollections)
		allocations = view.Integer(s.GC.ClientAllocations + s.GC.ServerAllocations)
	}
	return []view.GridCell{view.NameCell(s.Name()), view.NumberCell(reports.SizeLabel(s.SizeBytes)),
		view.TextCell(s.Label), view.NumberCell(view.Integer(s.Operations)), failed, verified, view.NumberCell(whole),
		view.NumberCell(numbers), view.NumberCell(octets),
		view.NumberCell(view.Number(float64(s.DurationNs)/1e9, 2)), view.NumberCell(client), view.NumberCell(server),
		view.NumberCell(collections), view.NumberCell(allocations), view.TextCell(s.MeasuredBy)}
}

// runView is how one document came about.
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
	options := make([]map[string]string, len(d.Results))
	var keys []string
	for i := range d.Results {
		options[i] = map[string]string{}
		for _, kv := range flatten(d.Results[i].Parameters) {
			options[i][kv[0]] = kv[1]
			keys = append(keys, kv[0])
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var same [][2]string
	var differ []string
	for _, k := range keys {
		first, all := options[0][k], true
		for _, o := range options {
			value, present := o[k]
			all = all && present && value == first
		}
		if all {
			same = append(same, [2]string{k, first})
		} else {
			differ = append(differ, k)
		}
	}
	v.Options = pairsTable("Options that all results share", same)
	if len(differ) > 0 {
		t := view.Grid{Caption: "Options that differ between results",
			Head: view.HeadCells(append([]string{"result"}, differ...)...)}
		for i := range d.Results {
			r := &d.Results[i]
			row := []view.GridCell{view.NameCell(fmt.Sprintf("%s, %s, %s", r.Stack,
				strings.TrimSpace(r.Workload+" "+r.Op), reports.SizeLabel(r.SizeBytes)))}
			for _, k := range differ {
				row = append(row, view.TextCell(options[i][k]))
			}
			t.Rows = append(t.Rows, row)
		}
		v.Varying = &t
	}
	return v
}

func pairsTable(caption string, pairs [][2]string) view.Grid {
	t := view.Grid{Caption: caption, Head: view.HeadCells("name", "value")}
	for _, kv := range pairs {
		t.Rows = append(t.Rows, []view.GridCell{view.NameCell(kv[0]), view.TextCell(kv[1])})
	}
	return t
}

// flatten lists every leaf of a value's JSON form by its path, sorted.
func flatten(v any) [][2]string {
	b, err := json.Marshal(v)
	if err != nil {
		return [][2]string{{"options", "cannot be shown: " + err.Error()}}
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // 2^53 and more must not be rounded
	if err := d.Decode(&tree); err != nil {
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

// counterTable shows on the page what moved.
func counterTable(of reports.Condition, samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: of.Title() + ": device counters that moved", Note: of.Describe(),
		Head: view.HeadCells("stack", "size", "side", "device", "counter", "change")}
	for _, s := range samples {
		for _, side := range s.Counters.Sides() {
			for _, d := range side.Devices {
				for _, c := range d.Moved(false) {
					change := view.NumberCell(view.Integer(d.Counters[c]))
					if d.Counters[c] < 0 {
						change = view.GridCell{Text: "! reset, " + change.Text, Class: "n warn"}
					}
					t.Rows = append(t.Rows, []view.GridCell{view.NameCell(s.Name()),
						view.NumberCell(reports.SizeLabel(s.SizeBytes)), view.TextCell(side.Side),
						view.TextCell(d.Name()), view.TextCell(c), change})
				}
			}
		}
	}
	return t
}

// rawTable is the same on the page.
func rawTable(of reports.Condition, samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: of.Title() + ": raw samples", Note: of.Describe(),
		Head: view.HeadCells("stack", "size", "samples of", "file", "kept", "not kept", "limit")}
	for _, s := range samples {
		for _, raw := range s.RawSamples {
			dropped := view.NumberCell(view.Integer(raw.Dropped))
			if raw.Dropped > 0 {
				dropped.Class = "n warn"
			}
			t.Rows = append(t.Rows, []view.GridCell{view.NameCell(s.Name()),
				view.NumberCell(reports.SizeLabel(s.SizeBytes)), view.TextCell(raw.Set), view.TextCell(raw.File),
				view.NumberCell(view.Integer(raw.Count)), dropped, view.NumberCell(view.Integer(raw.Limit))})
		}
	}
	return t
}
