package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/kinds"
	holkind "github.com/rdmaperf/rdmaperf/reports/kinds/hol"
)

// measures are the values of each series in the order of the repeats.
type measures map[string][]float64

func (m measures) add(series string, x float64) { m[series] = append(m[series], x) }

// document takes the figures of one run.
func (m measures) document(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	doc, err := reports.ReadDocument(f, kinds.All())
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for i := range doc.Results {
		r := &doc.Results[i]
		switch {
		case holkind.Of(r) != nil:
			m.add(p99(r.Transport, holkind.Of(r).Arm, r.Op, holkind.Of(r).BulkSizeBytes), holkind.Of(r).ProbeLoaded.P99)
		case r.Throughput != nil && r.CPU != nil && r.Throughput.BytesPerSecond > 0:
			rate := r.Throughput.BytesPerSecond
			bytes := rate * float64(r.DurationNs) / 1e9
			m.add(fmt.Sprintf("%s/rate/%d", r.Transport, r.SizeBytes), rate)
			m.add(fmt.Sprintf("%s/cpu/%d", r.Transport, r.SizeBytes), (r.CPU.ClientSeconds+r.CPU.ServerSeconds)/bytes*1e9)
			if r.CPU.MachineSeconds > 0 {
				m.add(fmt.Sprintf("%s/machine/%d", r.Transport, r.SizeBytes), r.CPU.MachineSeconds/bytes*1e9)
			}
		}
	}
	return nil
}

func p99(stack, arm, op string, size int64) string {
	return fmt.Sprintf("%s/%s/%s/p99/%d", stack, arm, op, size)
}

var benchLine = regexp.MustCompile(`^BenchmarkPerRequest/(bare|fifo|strict)/single\S*\s.*?([0-9.]+) cpu-ns/request`)

// Streams of writes alone, as the benchmark in package sched prints a round of them.
var (
	aloneLine   = regexp.MustCompile(`^BenchmarkAlone/(nocrc/|verbs/)?([0-9]+)([KM]?)(-\d+)?\s`)
	aloneFigure = regexp.MustCompile(`(\S+) (bare|sched)-(B/s|cpu-s/GB|machine-s/GB)`)
)

// bench takes the cost of a request that is posted alone, and streams over iWARP or, as
// verbs, over the stack given. They stand for those of documents, whose windows lie
// farther apart.
func (m measures) bench(text, stack string) {
	alone := measures{}
	defer func() { maps.Copy(m, alone) }()
	for l := range strings.Lines(text) {
		if f := aloneLine.FindStringSubmatch(l); f != nil {
			below := map[string]string{"": "iwarp", "nocrc/": withoutCRC, "verbs/": stack}[f[1]]
			size, _ := strconv.Atoi(f[2])
			size <<= map[string]int{"K": 10, "M": 20}[f[3]]
			for _, v := range aloneFigure.FindAllStringSubmatch(l, -1) {
				arm, what := map[string]string{"bare": below, "sched": "sched+" + below}[v[2]], map[string]string{"B/s": "rate", "cpu-s/GB": "cpu", "machine-s/GB": "machine"}[v[3]]
				x, _ := strconv.ParseFloat(v[1], 64)
				alone.add(fmt.Sprintf("%s/%s/%d", arm, what, size), x)
			}
		}
		if f := benchLine.FindStringSubmatch(l); f != nil {
			x, _ := strconv.ParseFloat(f[2], 64)
			m.add(f[1]+"/request", x)
		}
	}
}

// row is one line as data: how two series are compared, and the bound of it. less:
// the bound is the most and not the least.
type row struct {
	set            string
	name           string
	series, beside string // beside "": the series itself, of a unit of 1000
	minus          bool   // the difference, else the ratio
	bound          float64
	less           bool
	shown          bool // and not judged
}

const mib = 1 << 20

// withoutCRC is the stack of the set nocrc. A path that sums nothing is faster, so that
// what waits costs more of it: with 1 MiB the tier once had 0.94x of it.
const withoutCRC = "iwarp(nocrc)"

// Sets of lines, as --only names them.
const (
	setHOL     = "hol"
	setBulk    = "bulk"
	setCPU     = "cpu"
	setMachine = "machine"
	setNoCRC   = "nocrc"
	setSends   = "sends"
	setRequest = "request"
)

func sets() []string {
	return []string{setHOL, setBulk, setCPU, setMachine, setNoCRC, setSends, setRequest}
}

// rows are the lines of the sets for the stack given, with a tier and without one, and of
// nocrc for its own. large is the longest message.
func rows(stack string, large int64, only []string) []row {
	long := reports.FormatSize(large)
	sched, cutting := "sched+"+stack, "sched(sends=slice)+"+stack
	probe := func(stack, arm string, size int64) string { return p99(stack, arm, "write", size) }
	list := []row{
		{set: setHOL, name: "probe p99 beside 1M bulk, raw over sched", series: probe(stack, "same-qp", mib), beside: probe(sched, "same-qp", mib), bound: 10},
		{set: setHOL, name: "sched p99, beside " + long + " bulk over beside 1M", series: probe(sched, "same-qp", large), beside: probe(sched, "same-qp", mib), bound: 1.5, less: true},
		{set: setHOL, name: "raw p99, beside " + long + " bulk over beside 1M", series: probe(stack, "same-qp", large), beside: probe(stack, "same-qp", mib)},
		{set: setHOL, name: "p99 beside 1M bulk, sched over two queue pairs", series: probe(sched, "same-qp", mib), beside: probe(stack, "two-qp", mib), bound: 1, less: true},
		{set: setHOL, name: "us of the probe's p99 beside 1M bulk, raw", series: probe(stack, "same-qp", mib)},
		{set: setHOL, name: "us of the probe's p99 beside 1M bulk, two QPs", series: probe(stack, "two-qp", mib)},
		{set: setHOL, name: "us of the probe's p99 beside 1M bulk, sched", series: probe(sched, "same-qp", mib)},
	}
	for _, size := range []int64{64, 64 << 10, mib, large} {
		bound := 0.98
		if size == 64 {
			bound = 0.97
		}
		list = append(list, row{set: setBulk, name: "bulk of " + reports.FormatSize(size) + ", sched over raw", series: fmt.Sprintf("%s/rate/%d", sched, size), beside: fmt.Sprintf("%s/rate/%d", stack, size), bound: bound})
	}
	for _, size := range []int64{64 << 10, mib, large} {
		list = append(list, row{set: setCPU, name: "CPU per GB of " + reports.FormatSize(size) + ", sched over raw", series: fmt.Sprintf("%s/cpu/%d", sched, size), beside: fmt.Sprintf("%s/cpu/%d", stack, size), bound: 1.03, less: true},
			row{set: setMachine, name: "machine's CPU per GB of " + reports.FormatSize(size) + ", sched over raw", series: fmt.Sprintf("%s/machine/%d", sched, size), beside: fmt.Sprintf("%s/machine/%d", stack, size), bound: 1.03, less: true})
	}
	for _, size := range []int64{64 << 10, mib} {
		name := " of " + reports.FormatSize(size) + " without CRC, sched over raw"
		list = append(list,
			row{set: setNoCRC, name: "bulk" + name, series: fmt.Sprintf("sched+%s/rate/%d", withoutCRC, size), beside: fmt.Sprintf("%s/rate/%d", withoutCRC, size), bound: 0.98},
			row{set: setNoCRC, name: "CPU per GB" + name, series: fmt.Sprintf("sched+%s/cpu/%d", withoutCRC, size), beside: fmt.Sprintf("%s/cpu/%d", withoutCRC, size), bound: 1.03, less: true})
	}
	list = append(list,
		row{set: setSends, name: "probe p99 beside 1M sends, raw over sched", series: p99(stack, "same-qp", "send", mib), beside: p99(cutting, "same-qp", "send", mib), bound: 10},
		row{set: setSends, name: "the same with sends left whole", series: p99(stack, "same-qp", "send", mib), beside: p99(sched, "same-qp", "send", mib)},
		row{set: setRequest, name: "ns a request posted alone, sched(fifo) above bare", series: "fifo/request", beside: "bare/request", minus: true, bound: 30, less: true},
		row{set: setRequest, name: "ns a request posted alone, sched(strict) above bare", series: "strict/request", beside: "bare/request", minus: true})
	return slices.DeleteFunc(list, func(w row) bool { return !slices.Contains(only, w.set) })
}

// line is one measured row. Value is the median of Values, one for each repeat, and
// Interval where that lies with this scatter.
type line struct {
	Name     string          `json:"name"`
	Series   string          `json:"series"`
	Beside   string          `json:"beside,omitempty"`
	Values   []float64       `json:"values"`
	Value    float64         `json:"value"`
	Interval [2]float64      `json:"interval"`
	Target   string          `json:"target,omitempty"`
	Verdict  targets.Verdict `json:"verdict,omitempty"`
}

func (m measures) lines(list []row) (all []line) {
	for _, w := range list {
		l := line{Name: w.name, Series: w.series, Beside: w.beside, Values: []float64{}}
		for repeat, x := range m[w.series] {
			switch beside := m[w.beside]; {
			case w.beside == "":
				l.Values = append(l.Values, x/1000)
			case repeat >= len(beside) || beside[repeat] <= 0:
			case w.minus:
				l.Values = append(l.Values, x-beside[repeat])
			default:
				l.Values = append(l.Values, x/beside[repeat])
			}
		}
		if w.bound > 0 {
			l.Target = fmt.Sprintf("at least %v", w.bound)
			if w.less {
				l.Target = fmt.Sprintf("at most %v", w.bound)
			}
		}
		slices.Sort(l.Values)
		l.Value = targets.Median(l.Values)
		l.Interval[0], l.Interval[1] = targets.Interval(l.Values)
		if w.shown {
			w.bound, l.Target = 0, ""
		}
		l.Verdict = targets.Target{Bound: w.bound, Less: w.less}.JudgeAll(l.Values)
		all = append(all, l)
	}
	return all
}

func print(w io.Writer, lines []line) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	fmt.Fprintf(out, "%-52s %8s  %-17s %3s  %-14s %s\n", "measure", "median", "95 % of medians", "of", "target", "verdict")
	for _, l := range lines {
		if l.Verdict == targets.NotMeasured {
			fmt.Fprintf(out, "%-52s %8s  %-17s %3d  %-14s %s\n", l.Name, "-", "-", 0, l.Target, l.Verdict)
			continue
		}
		fmt.Fprintf(out, "%-52s %8s  %-17s %3d  %-14s %s\n", l.Name, digits(l.Value), digits(l.Interval[0])+" to "+digits(l.Interval[1]), len(l.Values), l.Target, l.Verdict)
	}
}

// digits are as many as mean something.
func digits(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// outcome is the table's exit code.
func outcome(lines []line) error {
	var o targets.Outcome
	for _, l := range lines {
		o.Add(l.Name, l.Verdict)
	}
	return o.Err()
}
