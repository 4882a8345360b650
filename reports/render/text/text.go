// Package text writes results and comparisons as tables for people at a terminal.
package text

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Options chooses how WriteText prints. The zero value is plain text for 100 columns with bandwidth in MiB/s.
type Options struct {
	Gbits    bool // bandwidth in Gb/s (10^9 bits) instead of MiB/s (2^20 bytes)
	Color    bool // ANSI bold and red; the caller knows whether it is a terminal
	Counters bool // all device counters, not only those that moved
	Verbose  bool // also what only who measures the measuring wants to read
	Width    int  // columns to stay within where possible; below one means 100
	Details  bool // every figure, and not what they show

	Own []OwnTables // behind those of all workloads
}

// OwnTables are tables that a workload adds where those of all do not show its point.
type OwnTables func(results []reports.Result, u view.Units) []reports.SideBlock

// Write prints the document for people: what it shows, or with Details every figure.
func Write(w io.Writer, d *reports.Document, o Options) error {
	o.Details = o.Details || o.Counters || o.Verbose || d.Answer == nil ||
		slices.ContainsFunc(d.Results, func(r reports.Result) bool { return r.Series != nil })
	if o.Width < 1 {
		o.Width = map[bool]int{true: 100, false: 80}[o.Details]
	}
	p := printer{Options: o, one: d.ServerEnvironment == nil}
	switch {
	case o.Details:
		p.details(d)
	case len(d.Answer.Rows) > 1:
		p.answer(d)
	default:
		p.figures(d)
	}
	return reports.WriteAll(w, "text report", p.out.Bytes())
}

// details prints the tables of every group of results, then the stacks side by side.
func (p *printer) details(d *reports.Document) {
	p.environment("", &d.Environment)
	if d.ServerEnvironment != nil {
		p.environment("server: ", d.ServerEnvironment)
	}
	for _, g := range reports.GroupResults(d.Results, reports.SweptLoads(d.Results)) {
		p.group(g)
	}
	p.sideBySide(d.Results)
	p.rawSamples(d.Results)
	p.impaired(d.Results)
	p.published(d.Published, d.Results)
	p.footnotes()
	if len(d.Results) == 0 {
		p.line("no results")
	}
	for _, l := range reports.WakeupLines(d) {
		p.line("")
		p.wrapped(l)
	}
	for i, l := range reports.DisturbanceLines(d) {
		if i == 0 {
			p.line("")
		}
		p.styled(red, l)
	}
	if d.Error != nil {
		p.line("")
		p.earlyEnd(d.Error)
	}
}

func (p *printer) footnotes() {
	if p.bounds {
		p.line("")
		p.wrapped("> is at least that: operations were due and not done when the window ended, and count with the " +
			"time that they had waited by then")
	}
}

func (p *printer) earlyEnd(e *reports.RunError) {
	if e == nil {
		return
	}
	p.styled(red, fmt.Sprintf("run ended early: %s: %s (exit code %d)", e.Operation, e.Message, e.ExitCode))
	if e.Hint != "" {
		p.wrapped("try: " + e.Hint)
	}
}

// ANSI styles.
const (
	bold = "\x1b[1m"
	red  = "\x1b[31m"
)

type printer struct {
	Options
	out bytes.Buffer
	one bool // both sides are on one machine

	bounds bool // a lower bound was printed, so the footnote is due

	introduced []string // workloads
}

func (p *printer) line(lines ...string) {
	for _, l := range lines {
		p.out.WriteString(l + "\n")
	}
}

func (p *printer) wrapped(s string) { p.line(view.Wrap(view.Printable(s), p.Width, "  ")...) }

func (p *printer) styled(style, s string) {
	if !p.Color {
		p.wrapped(s)
		return
	}
	for _, l := range view.Wrap(view.Printable(s), p.Width, "  ") {
		p.line(style + l + "\x1b[0m")
	}
}

func (p *printer) heading(s string) {
	p.line("")
	p.styled(bold, s)
}

func (p *printer) table(t *view.Table) {
	if len(t.Rows) == 0 {
		return
	}
	for _, r := range t.Rows {
		for _, c := range r.Cells {
			p.bounds = p.bounds || strings.HasPrefix(c.Text, ">")
		}
	}
	p.line(layout(inMilliseconds(t), p.Width)...)
}

func (p *printer) environment(prefix string, e *reports.Environment) {
	wakeup := ""
	if e.Wakeup != nil {
		wakeup = e.Wakeup.String()
	}
	p.wrapped(view.Join(", ", fmt.Sprintf("%srdmaperf %s, %s, %s, %d x %s", prefix, e.Version, e.Go,
		strings.TrimSpace(e.OS+" "+e.Kernel), e.CPUs, e.CPU), view.When(e.Hypervisor, "virtual machine"),
		view.When(len(e.Governors) > 0, "governor "+strings.Join(e.Governors, " and ")), wakeup, e.IdleState,
		view.When(e.Awake != "", "kept awake by "+e.Awake)))
}

func (p *printer) group(g *reports.Grouped) {
	for _, note := range p.groupTables(g) {
		p.wrapped(note)
	}
	p.intervalTables(g)
	p.seriesTables(g)
	p.usage(g)
	p.counters(g)
	p.remarks(g)
}

// groupTables returns notes on what was done with repeats.
func (p *printer) groupTables(g *reports.Grouped) (notes []string) {
	p.heading(g.Title())
	p.wrapped(g.Conditions() + g.MostThreads())
	if first := g.Results[0]; first.Intro != "" && !slices.Contains(p.introduced, first.Workload) {
		p.introduced = append(p.introduced, first.Workload)
		p.wrapped(first.Intro)
	}
	u := view.Units{Gbits: p.Gbits}
	throughput := &view.Table{Columns: g.PerRow(throughputColumns(p.Gbits))}
	other := &view.Table{Columns: g.PerRow([]view.Column{{Name: "#bytes"}, {Name: "#iterations"},
		{Name: "duration", Unit: "s"}})}
	loops := &view.Table{Columns: g.PerRow([]view.Column{{Name: "#bytes"}, {Name: "due"}, {Name: "sent"},
		{Name: "completed"}, {Name: "offered", Unit: "/s"}, {Name: "achieved", Unit: "/s"}, {Left: true}})}
	rows, notes := g.Collapse()
	for _, r := range rows {
		add := func(t *view.Table, texts ...string) { t.Add(g.PerRowCells(r, view.Cells(texts...))...) }
		size, operations := view.Integer(r.SizeBytes), view.Integer(r.Operations)
		if r.Streamed() {
			add(throughput, size, operations, view.Bandwidth(r.Throughput.BytesPerSecond, p.Gbits),
				view.Number(r.Throughput.OperationsPerSecond/1e3, 3))
		}
		if len(r.Distributions()) == 0 && r.Throughput == nil && len(r.Figures) == 0 {
			add(other, size, operations, view.Number(float64(r.DurationNs)/1e9, 2))
		}
		if o := r.OpenLoop; o != nil {
			add(loops, slices.Concat([]string{size}, o.Texts(), []string{o.Mark()})...)
		}
	}
	for _, t := range []*view.Table{latencyTable(g, rows, p.Details), throughput, figureTable(g, rows, u), other,
		loops} {
		p.table(t)
	}
	return notes
}

func (p *printer) usage(g *reports.Grouped) {
	var windows int64
	var cpu reports.CPU
	var gc reports.GC
	for _, r := range g.Results {
		if r.CPU == nil {
			continue
		}
		windows += r.DurationNs
		cpu.ClientSeconds += r.CPU.ClientSeconds
		cpu.ServerSeconds += r.CPU.ServerSeconds
		cpu.ClientSwitches += r.CPU.ClientSwitches
		cpu.ServerSwitches += r.CPU.ServerSwitches
		if r.GC != nil {
			gc.ClientAllocations += r.GC.ClientAllocations
			gc.ServerAllocations += r.GC.ServerAllocations
		}
	}
	switch {
	case windows > 0 && g.Label == reports.LabelMem: // each side names the one process
		p.wrapped(fmt.Sprintf("in %s s of windows: CPU of both sides %s s", view.Number(float64(windows)/1e9, 2),
			view.Number(cpu.ClientSeconds, 2)) +
			view.When(p.Verbose, fmt.Sprintf("; heap allocations of both %d", gc.ClientAllocations)))
	case windows > 0:
		p.wrapped(fmt.Sprintf("in %s s of windows: CPU client %s s, server %s s",
			view.Number(float64(windows)/1e9, 2), view.Number(cpu.ClientSeconds, 2),
			view.Number(cpu.ServerSeconds, 2)) +
			view.When(cpu.ClientSwitches+cpu.ServerSwitches != 0, // what waiting costs where others want the CPUs
				fmt.Sprintf("; context switches client %d, server %d", cpu.ClientSwitches, cpu.ServerSwitches)) +
			view.When(p.Verbose, fmt.Sprintf("; heap allocations client %d, server %d", gc.ClientAllocations,
				gc.ServerAllocations)))
	}
}

// latencyColumns are without mean and deviation on a narrow terminal: they say least of a tail.
var latencyColumns = []view.Column{
	{Name: "#bytes"}, {Name: "#iterations"},
	{Name: "min", Unit: "us"}, {Name: "p50", Unit: "us"}, {Name: "p90", Unit: "us", Spare: 1},
	{Name: "p99", Unit: "us"}, {Name: "p99.9", Unit: "us"}, {Name: "p99.99", Unit: "us", Spare: 2},
	{Name: "max", Unit: "us"},
	{Name: "mean", Unit: "us", Spare: 3}, {Name: "stddev", Unit: "us", Spare: 4},
}

func latencyTimes(names ...string) []view.Column {
	return view.Each(names, func(name string) view.Column { return view.Column{Name: name, Unit: "us"} })
}

// rateColumn is in thousands: millions would leave large messages nothing but zeros.
var rateColumn = view.Column{Name: "rate", Unit: "k/s"}

func throughputColumns(gbits bool) []view.Column {
	unit := view.Units{Gbits: gbits}.Name()
	return []view.Column{{Name: "#bytes"}, {Name: "#iterations"}, {Name: "bandwidth", Unit: unit}, rateColumn}
}
