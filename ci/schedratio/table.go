package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// measures are the values of each series, by repeat.
type measures map[string]map[int]float64

func (m measures) add(series string, repeat int, x float64) {
	if m[series] == nil {
		m[series] = map[int]float64{}
	}
	m[series][repeat] = x
}

// document takes the figures of one run.
func (m measures) document(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	doc, err := reports.ReadDocument(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for i := range doc.Results {
		r := &doc.Results[i]
		switch {
		case r.HOL != nil:
			m.add(fmt.Sprintf("%s/%s/p99/%d", r.Transport, r.HOL.Arm, r.HOL.BulkSizeBytes), r.Repeat, r.HOL.ProbeLoaded.P99)
		case r.Throughput != nil && r.CPU != nil && r.Throughput.BytesPerSecond > 0:
			rate := r.Throughput.BytesPerSecond
			bytes := rate * float64(r.DurationNs) / 1e9
			m.add(fmt.Sprintf("%s/rate/%d", r.Transport, r.SizeBytes), r.Repeat, rate)
			m.add(fmt.Sprintf("%s/cpu/%d", r.Transport, r.SizeBytes), r.Repeat, (r.CPU.ClientSeconds+r.CPU.ServerSeconds)/bytes*1e9)
		}
	}
	return nil
}

var benchLine = regexp.MustCompile(`^BenchmarkPerRequest/(bare|fifo|strict)/single\S*\s.*?([0-9.]+) cpu-ns/request`)

// bench takes the cost of a request that is posted alone.
func (m measures) bench(text string) {
	count := map[string]int{}
	for l := range strings.Lines(text) {
		if f := benchLine.FindStringSubmatch(l); f != nil {
			x, _ := strconv.ParseFloat(f[2], 64)
			count[f[1]]++
			m.add(f[1]+"/request", count[f[1]], x)
		}
	}
}

// row is one line as data: how two series are compared, and the bound of it. less:
// the bound is the most and not the least.
type row struct {
	name           string
	series, beside string
	minus          bool // the difference, else the ratio
	bound          float64
	less           bool
}

const mib = 1 << 20

func rows() []row {
	p99 := func(stack, arm string, size int) string { return fmt.Sprintf("%s/%s/p99/%d", stack, arm, size) }
	list := []row{
		{name: "probe p99 beside 1 MiB bulk, raw over sched", series: p99("iwarp", "same-qp", mib), beside: p99("sched+iwarp", "same-qp", mib), bound: 10},
		{name: "sched p99, beside 16 MiB over beside 1 MiB", series: p99("sched+iwarp", "same-qp", 16*mib), beside: p99("sched+iwarp", "same-qp", mib), bound: 1.5, less: true},
		{name: "raw p99, beside 16 MiB over beside 1 MiB", series: p99("iwarp", "same-qp", 16*mib), beside: p99("iwarp", "same-qp", mib)},
		{name: "p99 beside 1 MiB bulk, sched over two queue pairs", series: p99("sched+iwarp", "same-qp", mib), beside: p99("iwarp", "two-qp", mib), bound: 1, less: true},
	}
	for _, size := range []int{64, 64 << 10, mib, 16 * mib} {
		bound := 0.98
		if size == 64 {
			bound = 0.97
		}
		list = append(list, row{name: "bulk of " + reports.FormatSize(int64(size)) + ", sched over raw", series: fmt.Sprintf("sched+iwarp/rate/%d", size), beside: fmt.Sprintf("iwarp/rate/%d", size), bound: bound})
	}
	for _, size := range []int{64 << 10, mib, 16 * mib} {
		list = append(list, row{name: "CPU per GB of " + reports.FormatSize(int64(size)) + ", sched over raw", series: fmt.Sprintf("sched+iwarp/cpu/%d", size), beside: fmt.Sprintf("iwarp/cpu/%d", size), bound: 1.03, less: true})
	}
	return append(list,
		row{name: "ns a request posted alone, sched(fifo) above bare", series: "fifo/request", beside: "bare/request", minus: true, bound: 30, less: true},
		row{name: "ns a request posted alone, sched(strict) above bare", series: "strict/request", beside: "bare/request", minus: true})
}

// line is one measured row. Value is the median of Values, one for each repeat.
type line struct {
	Name    string          `json:"name"`
	Series  string          `json:"series"`
	Beside  string          `json:"beside"`
	Values  []float64       `json:"values"`
	Value   float64         `json:"value"`
	Target  string          `json:"target,omitempty"`
	Verdict targets.Verdict `json:"verdict,omitempty"`
}

func (m measures) lines() (all []line) {
	for _, w := range rows() {
		l := line{Name: w.name, Series: w.series, Beside: w.beside, Values: []float64{}}
		for repeat, x := range m[w.series] {
			switch y, found := m[w.beside][repeat]; {
			case !found || y <= 0:
			case w.minus:
				l.Values = append(l.Values, x-y)
			default:
				l.Values = append(l.Values, x/y)
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
		l.Verdict = targets.Target{Bound: w.bound, Less: w.less}.Judge(l.Value, len(l.Values))
		all = append(all, l)
	}
	return all
}

func print(w io.Writer, lines []line) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	fmt.Fprintf(out, "%-52s %8s  %-17s %-14s %s\n", "measure", "median", "of repeats", "target", "verdict")
	for _, l := range lines {
		if l.Verdict == targets.NotMeasured {
			fmt.Fprintf(out, "%-52s %8s  %-17s %-14s %s\n", l.Name, "-", "-", l.Target, l.Verdict)
			continue
		}
		fmt.Fprintf(out, "%-52s %8.2f  %-17s %-14s %s\n", l.Name, l.Value, fmt.Sprintf("%.2f to %.2f", l.Values[0], l.Values[len(l.Values)-1]), l.Target, l.Verdict)
	}
}

// outcome is the table's exit code.
func outcome(lines []line) error {
	var o targets.Outcome
	for _, l := range lines {
		o.Add(l.Name, l.Verdict)
	}
	return o.Err()
}
