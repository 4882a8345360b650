package reports

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// TextOptions chooses how WriteText prints. The zero value is plain text for 100
// columns with bandwidth in MiB/sec.
type TextOptions struct {
	Gbits    bool // bandwidth in Gb/sec (10^9 bits) instead of MiB/sec (2^20 bytes)
	Color    bool // ANSI bold and red; the caller knows whether it is a terminal
	Counters bool // all device counters, not only those that moved
	Width    int  // columns to stay within where possible; below one means 100
}

// WriteText prints the document for people: a table with perftest's columns and
// the tail for every group of results with the same stack, workload, operation
// and load, then the stacks side by side. t_max is the true maximum, t_stdev the
// true deviation and t_typical the median.
func WriteText(w io.Writer, d *Document, o TextOptions) error {
	if o.Width < 1 {
		o.Width = 100
	}
	p := textPrinter{TextOptions: o, one: d.ServerEnvironment == nil}
	p.environment("", &d.Environment)
	if d.ServerEnvironment != nil {
		p.environment("server: ", d.ServerEnvironment)
	}
	for _, g := range groupResults(d.Results, sweptLoads(d.Results)) {
		p.group(g)
	}
	p.sideBySide(d.Results)
	p.kvSideBySide(d.Results)
	p.callsBySide(d.Results)
	p.armsBySide(d.Results)
	p.rawSamples(d.Results)
	if p.marks {
		p.line("")
		p.wrapped("* rests on fewer than 10/(1-q) samples: read it as an estimate")
	}
	if len(d.Results) == 0 {
		p.line("no results")
	}
	if e := d.Error; e != nil {
		p.line("")
		p.styled(red, fmt.Sprintf("run ended early: %s: %s (exit code %d)", e.Operation, e.Message, e.ExitCode))
		if e.Hint != "" {
			p.wrapped("try: " + e.Hint)
		}
	}
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write text report: %w", err)
	}
	return nil
}

// ANSI styles.
const (
	bold = "\x1b[1m"
	red  = "\x1b[31m"
)

type textPrinter struct {
	TextOptions
	out   bytes.Buffer
	one   bool // both sides are on one machine
	marks bool // a percentile was marked, so the footnote is due
}

func (p *textPrinter) line(s string) { p.out.WriteString(s + "\n") }

func (p *textPrinter) wrapped(s string) {
	for _, l := range wrap(printable(s), p.Width, "  ") {
		p.line(l)
	}
}

func (p *textPrinter) styled(style, s string) {
	if !p.Color {
		p.wrapped(s)
		return
	}
	for _, l := range wrap(printable(s), p.Width, "  ") {
		p.line(style + l + "\x1b[0m")
	}
}

func (p *textPrinter) table(t *table) {
	for _, r := range t.rows {
		for _, c := range r.cells {
			p.marks = p.marks || c.mark
		}
	}
	for _, l := range t.layout(p.Width) {
		p.line(l)
	}
}

func (p *textPrinter) environment(prefix string, e *Environment) {
	parts := []string{"rdmaperf " + e.Version, e.Go, strings.TrimSpace(e.OS + " " + e.Kernel), fmt.Sprintf("%d x %s", e.CPUs, e.CPU)}
	if e.Hypervisor {
		parts = append(parts, "virtual machine")
	}
	if len(e.Governors) > 0 {
		parts = append(parts, "governor "+strings.Join(e.Governors, " and "))
	}
	p.wrapped(prefix + strings.Join(parts, ", "))
}

// load is what two results must share to stand in one table.
type load struct {
	workload, op, polling, roundTrip string
	depth, qps, threads              int
	hol                              holLoad
	arrivals                         string // of an open loop, whose rate stands in the table
	run                              string // of a scenario: two runs of one point are not repeats
	bothWays                         bool   // a bidirectional stream
	train                            trainLoad
	rpc                              rpcLoad
	kv                               kvLoad
	sweep                            bool // several numbers of QPs, which stand in the table
}

func loadOf(r *Result) load {
	l := load{r.Workload, r.Op, r.Polling, r.RoundTrip, r.Depth, r.QPs, max(r.Threads, 1), holLoadOf(r), r.Arrivals, "", r.Bidirectional != nil, trainLoadOf(r), rpcLoadOf(r), kvLoadOf(r), false}
	l.run, _ = r.Parameters["run"].(string)
	if r.HOL != nil {
		l.qps = 0 // one or two by the arm, which the table names
	}
	return l
}

// what names the work, conditions everything that shapes the figure.
func (l load) what() string {
	what := strings.TrimSpace(l.workload + " " + l.op)
	if l.rpc != (rpcLoad{}) {
		what = l.workload + " " + l.rpc.call
	}
	if l.kv != (kvLoad{}) {
		what = l.workload + " YCSB " + l.kv.mix
	}
	if l.bothWays {
		what += " in both directions"
	}
	if l.run != "" {
		what += ", run " + l.run
	}
	return what
}

func (l load) conditions() string {
	if l.hol != (holLoad{}) {
		return l.holConditions()
	}
	if l.train != (trainLoad{}) {
		return l.trainConditions()
	}
	if l.rpc != (rpcLoad{}) {
		return l.rpcConditions()
	}
	parts := []string{"depth " + strconv.Itoa(l.depth)}
	if l.workload == "connect" {
		parts = []string{"a thread for each connection at once"}
		if !l.sweep {
			parts = []string{integer(int64(l.qps)) + " at once, a thread each"}
		}
	} else if !l.sweep {
		parts = append(parts, plural(int64(l.qps), l.connections()))
	}
	if l.workload == "connect" {
		parts = append(parts, "one listening thread")
	} else if l.workload == "incast" {
		parts = append(parts, "a thread for each client, one at the server")
	} else if l.threads > 1 {
		parts = append(parts, plural(int64(l.threads), "thread"))
	}
	if l.polling != "" {
		parts = append(parts, l.polling+" polling")
	}
	if l.arrivals != "" {
		parts = append(parts, "open loop with "+l.arrivals+" arrivals")
	}
	if l.roundTrip != "" {
		parts = append(parts, l.roundTrip+" round trip")
	}
	return strings.Join(parts, ", ")
}

// resultGroup is one table and the line before it.
type resultGroup struct {
	load
	stack, label, measuredBy string
	verified                 bool
}

type groupedResults struct {
	resultGroup
	results []*Result
}

// groupResults keeps the order in which groups and results appear. The numbers of
// QPs of a swept load stand together.
func groupResults(results []Result, swept map[load]bool) []*groupedResults {
	var groups []*groupedResults
	index := map[resultGroup]*groupedResults{}
	for i := range results {
		r := &results[i]
		key := resultGroup{loadOf(r), r.Stack, r.Label, r.MeasuredBy, r.Verified}
		if l := key.load.acrossQPs(); swept[l] {
			key.load = l
		}
		g := index[key]
		if g == nil {
			g = &groupedResults{resultGroup: key}
			index[key] = g
			groups = append(groups, g)
		}
		g.results = append(g.results, r)
	}
	return groups
}

// title is the bold line of a group; the line after it says the conditions.
func (g resultGroup) title() string {
	label := g.label
	if label == LabelMem {
		label += ", not a network"
	}
	return fmt.Sprintf("%s [%s]: %s", g.stack, label, g.what())
}

func (g resultGroup) conditions() string {
	s := g.load.conditions()
	if g.verified {
		s += ", verified"
	} else {
		s += ", not verified"
	}
	switch g.measuredBy {
	case "":
	case "both":
		s += ", measured by both sides"
	default:
		s += ", measured by " + g.measuredBy
	}
	return s
}

func (p *textPrinter) group(g *groupedResults) {
	p.line("")
	p.styled(bold, g.title())
	p.wrapped(g.conditions() + g.mostThreads())
	latency := table{columns: g.perRow(latencyColumns)}
	corrected, service := table{}, table{}
	throughput := table{columns: g.perRow(g.directionColumns(p.Gbits))}
	other := table{columns: g.perRow([]column{{name: "#bytes"}, {name: "#iterations"}, {name: "duration", unit: "sec"}})}
	rows, notes := g.collapse()
	for _, r := range rows {
		if r.Latency != nil && r.Connect == nil {
			latency.add(g.perRowCells(r, latencyCells(r.SizeBytes, r.Latency))...)
		}
		if r.LatencyCorrected != nil {
			corrected.add(g.perRowCells(r, latencyCells(r.SizeBytes, r.LatencyCorrected))...)
		}
		if r.LatencyService != nil {
			service.add(g.perRowCells(r, latencyCells(r.SizeBytes, r.LatencyService))...)
		}
		if r.streamed() {
			for _, cells := range g.directionCells(r, p.Gbits) {
				throughput.add(g.perRowCells(r, cells)...)
			}
		}
		if r.Latency == nil && r.LatencyCorrected == nil && r.Throughput == nil && r.HOL == nil && r.ParamServer == nil && r.Starvation == nil {
			other.add(g.perRowCells(r, []cell{{text: integer(r.SizeBytes)}, {text: integer(r.Operations)}, {text: number(float64(r.DurationNs)/1e9, 2)}})...)
		}
	}
	if len(corrected.rows) > 0 {
		// In one table with the raw figures, so that the columns line up.
		latency.rows = append(latency.rows, row{span: "corrected for coordinated omission:"})
		latency.rows = append(latency.rows, corrected.rows...)
	}
	if len(service.rows) > 0 {
		latency.rows = append(latency.rows, row{span: "without the wait for a late start:"})
		latency.rows = append(latency.rows, service.rows...)
	}
	for _, t := range []*table{&latency, &throughput, &other} {
		if len(t.rows) > 0 {
			p.table(t)
		}
	}
	p.holTable(rows)
	p.incastTable(rows)
	p.connectTable(rows)
	p.trainTable(rows)
	p.starvationTable(rows)
	p.kvTable(g, rows)
	for _, note := range notes {
		p.wrapped(note)
	}
	p.intervalTables(g)
	p.seriesTables(g)
	p.usage(g)
	p.callUsage(g)
	p.counters(g)
	p.remarks(g)
}

// usage says what the measuring took, of all windows of a group together.
func (p *textPrinter) usage(g *groupedResults) {
	var windows int64
	var cpu CPU
	var gc GC
	for _, r := range g.results {
		if r.CPU == nil {
			continue
		}
		windows += r.DurationNs
		cpu.ClientSeconds += r.CPU.ClientSeconds
		cpu.ServerSeconds += r.CPU.ServerSeconds
		if r.GC != nil {
			gc.ClientAllocations += r.GC.ClientAllocations
			gc.ServerAllocations += r.GC.ServerAllocations
		}
	}
	switch {
	case windows > 0 && g.label == LabelMem: // each side names the one process
		p.wrapped(fmt.Sprintf("in %s sec of windows: CPU of both sides %s sec; heap allocations of both %d",
			number(float64(windows)/1e9, 2), number(cpu.ClientSeconds, 2), gc.ClientAllocations))
	case windows > 0:
		p.wrapped(fmt.Sprintf("in %s sec of windows: CPU client %s sec, server %s sec; heap allocations client %d, server %d",
			number(float64(windows)/1e9, 2), number(cpu.ClientSeconds, 2), number(cpu.ServerSeconds, 2), gc.ClientAllocations, gc.ServerAllocations))
	}
}

// streamed tells whether the throughput says something of its own: the rate of a
// ping-pong does not, and that of connections has a table of its own.
func (r *Result) streamed() bool {
	return r.Throughput != nil && r.Connect == nil && (r.Workload != "latency" || r.Latency == nil)
}

// remarks are what a reader has to know before believing a row.
func (p *textPrinter) remarks(g *groupedResults) {
	results := g.results
	if ns := parameterNumber(results[0], "loop_overhead_ns"); ns > 0 {
		p.wrapped("the measuring loop itself takes " + number(ns, 0) + " ns of a round trip (on a null device)")
	}
	for _, r := range results {
		if r.Errors > 0 {
			p.styled(red, fmt.Sprintf("%s: %s", g.rowName(r), plural(r.Errors, "failed operation")))
		}
		if r.Latency != nil && r.Latency.Clamped > 0 {
			p.wrapped(fmt.Sprintf("%s: %s outside 0..60 s, counted at the limit in percentiles", g.rowName(r), plural(r.Latency.Clamped, "sample")))
		}
		if gc := r.GC; gc != nil && gc.ClientCollections+gc.ServerCollections > 0 {
			p.wrapped(fmt.Sprintf("%s: garbage collections in the window: client %d, server %d", g.rowName(r), gc.ClientCollections, gc.ServerCollections))
		}
	}
}

// latencyColumns are perftest's, in its order and words, and the tail. They say
// usec as perftest does.
var latencyColumns = []column{
	{name: "#bytes"}, {name: "#iterations"},
	{name: "t_min", unit: "usec"}, {name: "t_max", unit: "usec"}, {name: "t_typical", unit: "usec"},
	{name: "t_avg", unit: "usec"}, {name: "t_stdev", unit: "usec"},
	{name: "99%", unit: "usec"}, {name: "99.9%", unit: "usec"}, {name: "99.99%", unit: "usec"},
}

func latencyCells(size int64, l *Latency) []cell {
	cells := []cell{
		{text: integer(size)}, {text: integer(l.Count)},
		{text: usec(l.Min)}, {text: usec(l.Max)}, percentileCell(l, "p50"),
		{text: usec(l.Mean)}, {text: usec(l.StdDev)},
	}
	return append(cells, percentileCell(l, "p99"), percentileCell(l, "p999"), percentileCell(l, "p9999"))
}

// percentileCell prints one percentile and marks it when it rests on too few
// samples.
func percentileCell(l *Latency, name string) cell {
	for _, p := range l.Percentiles() {
		if p.Name == name {
			return cell{text: usec(p.Ns), mark: p.TooFew}
		}
	}
	panic("reports: no percentile " + name)
}

func throughputColumns(gbits bool) []column {
	unit := "MiB/sec"
	if gbits {
		unit = "Gb/sec"
	}
	return []column{{name: "#bytes"}, {name: "#iterations"}, {name: "BW average", unit: unit}, {name: "MsgRate", unit: "Mpps"}}
}

func throughputCells(r *Result, gbits bool) []cell {
	return []cell{
		{text: integer(r.SizeBytes)}, {text: integer(r.Operations)},
		{text: bandwidth(r.Throughput.BytesPerSecond, gbits)}, {text: number(r.Throughput.OperationsPerSecond/1e6, 6)},
	}
}

func bandwidth(bytesPerSecond float64, gbits bool) string {
	if gbits {
		return number(bytesPerSecond*8/1e9, 2)
	}
	return number(bytesPerSecond/(1<<20), 2)
}

func usec(ns float64) string { return number(ns/1000, 2) }

// number prints v, or a dash for what is no number.
func number(v float64, decimals int) string {
	if !finite(v) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return integer(n) + " " + what + "s"
}

func integer(n int64) string { return strconv.FormatInt(n, 10) }
