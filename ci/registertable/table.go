package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/kinds"
)

// measures are the values of each series in the order of the repeats, in ns.
type measures map[string][]float64

func (m measures) add(series string, x float64) { m[series] = append(m[series], x) }

// file takes a document of rdmaperf, or the lines of the MPI program.
func (m measures) file(name string) error {
	if strings.HasSuffix(name, ".txt") {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return m.mpi(string(text))
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	doc, err := reports.ReadDocument(f, kinds.All())
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	best := map[string]float64{} // of the algorithms
	for i := range doc.Results {
		r := &doc.Results[i]
		if err := m.register(r); err != nil {
			return err
		}
		if err := reduce(r, best); err != nil {
			return err
		}
	}
	for series, x := range best {
		m.add(series, x)
	}
	return nil
}

// latency is what the table reads of one.
type latency struct {
	P50 float64 `json:"p50"`
}

// register takes a result of the workload, by the members of its document.
func (m measures) register(r *reports.Result) error {
	raw := r.Others.Get("register")
	if raw == nil {
		return nil
	}
	var d struct {
		Arm, Pages, Offload         string
		Threads                     int
		Register, Deregister, Unmap *latency
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("a result of registrations: %w", err)
	}
	add := func(stage string, l *latency) {
		if l != nil && l.P50 > 0 {
			m.add(series(r.Op, stage, d.Arm, d.Pages, d.Offload, d.Threads, r.SizeBytes), l.P50)
		}
	}
	add("register", d.Register)
	add("unmap", d.Unmap)
	if d.Register != nil && d.Deregister != nil {
		add("pair", &latency{d.Register.P50 + d.Deregister.P50})
	}
	return nil
}

func series(op, stage, arm, pages, offload string, threads int, size int64) string {
	return fmt.Sprintf("%s/%s/%s/%s/%s/%d/%d", op, stage, arm, pages, offload, threads, size)
}

// reduce takes a result of an all-reduce: the better algorithm of each arm counts.
func reduce(r *reports.Result, best map[string]float64) error {
	raw := r.Others.Get("allreduce")
	if raw == nil {
		return nil
	}
	var d struct {
		Ranks                 int
		Arm, Buffers, Offload string
		Total                 latency
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("a result of an all-reduce: %w", err)
	}
	if d.Offload != "none" {
		return nil
	}
	s := sum(r.Transport, d.Ranks, d.Arm, d.Buffers, r.SizeBytes)
	if x, ok := best[s]; !ok || d.Total.P50 < x {
		best[s] = d.Total.P50
	}
	return nil
}

func sum(stack string, ranks int, arm, buffers string, size int64) string {
	return fmt.Sprintf("%s/%d/%s/%s/%d", stack, ranks, arm, buffers, size)
}

// mpi takes lines "ranks bytes buffers iterations p50 mean".
func (m measures) mpi(text string) error {
	for l := range strings.Lines(text) {
		var ranks, n int
		var size int64
		var buffers string
		var p50, mean float64
		if k, err := fmt.Sscan(l, &ranks, &size, &buffers, &n, &p50, &mean); err != nil || k != 6 {
			return fmt.Errorf("a line of MPI's all-reduce: %q", l)
		}
		m.add(sum("mpi", ranks, "", buffers, size), p50)
	}
	return nil
}

// Sets of lines, as --only names them.
const (
	setCost   = "cost"
	setReduce = "allreduce"
	setMPI    = "mpi"
)

func sets() []string { return []string{setCost, setReduce, setMPI} }

// row is one line as data: the ratio of two series, or one of them in ns.
type row struct {
	set, name      string
	series, beside string
	bound          float64
	less           bool
}

const mib = 1 << 20

// rows are the lines of the sets.
func rows(only []string) (list []row) {
	cost := func(arm string, size int64) string {
		return series("repeated", "register", arm, "base", "none", 1, size)
	}
	for _, size := range []int64{4 << 10, mib, 16 * mib} {
		bound := 100.0
		if size < mib {
			bound = 5
		}
		for _, arm := range []string{"cache", "prereg"} {
			list = append(list, row{setCost, fmt.Sprintf("register %s, none over %s", reports.FormatSize(size), arm), cost("none", size), cost(arm, size), bound, false})
		}
	}
	pair := func(threads int) string { return series("threads", "pair", "cache", "base", "none", threads, 64<<10) }
	list = append(list,
		row{setCost, "unmap 16M, prereg over prereg+lazy", series("new", "unmap", "prereg", "base", "none", 1, 16*mib), series("new", "unmap", "prereg+lazy", "base", "none", 1, 16*mib), 100, false},
		row{setCost, "ns a hit and its end, one thread", pair(1), "", 100, true},
		row{setCost, "ns a hit and its end, each of two threads", pair(2), "", 200, true},
		row{setCost, "register 64K, with a detour over without", series("repeated", "register", "none", "base", "hop", 1, 64<<10), cost("none", 64<<10), 0, false})
	for _, ranks := range []int{2, 4} {
		for _, size := range []int64{mib, 16 * mib} {
			what := fmt.Sprintf("all-reduce of %s, %d ranks, ", reports.FormatSize(size), ranks)
			list = append(list,
				row{setReduce, what + "fresh: none over prereg+lazy", sum("iwarp", ranks, "none", "fresh", size), sum("iwarp", ranks, "prereg+lazy", "fresh", size), 1, false},
				row{setReduce, what + "reused: none over cache", sum("iwarp", ranks, "none", "reused", size), sum("iwarp", ranks, "cache", "reused", size), 0, false},
				row{setReduce, what + "reused: cache over prereg+lazy", sum("iwarp", ranks, "cache", "reused", size), sum("iwarp", ranks, "prereg+lazy", "reused", size), 0, false})
		}
		for _, size := range []int64{64 << 10, mib, 16 * mib} {
			for _, stack := range []string{"iwarp", "iwarp(nocrc)"} {
				w := row{setMPI, fmt.Sprintf("all-reduce of %s, %d ranks, MPI over %s", reports.FormatSize(size), ranks, stack), sum("mpi", ranks, "", "reused", size), sum(stack, ranks, "cache", "reused", size), 1, false}
				if stack != "iwarp" { // TCP has no CRC; the target is that of the default
					w.bound = 0
				}
				list = append(list, w)
			}
		}
	}
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

func (m measures) lines(list []row, shown []string, ratios bool) (all []line) {
	for _, w := range list {
		l := line{Name: w.name, Series: w.series, Beside: w.beside, Values: []float64{}}
		for repeat, x := range m[w.series] {
			switch beside := m[w.beside]; {
			case w.beside == "":
				l.Values = append(l.Values, x)
			case repeat < len(beside) && beside[repeat] > 0:
				l.Values = append(l.Values, x/beside[repeat])
			}
		}
		l.Value = targets.Median(l.Values)
		l.Interval[0], l.Interval[1] = targets.Interval(l.Values)
		t := targets.Target{Bound: w.bound, Less: w.less}
		if slices.Contains(shown, w.set) || ratios && w.beside == "" {
			t = targets.Target{}
		}
		if t.Bound > 0 {
			l.Target = fmt.Sprintf("%s %v", t.Sign(), t.Bound)
		}
		l.Verdict = t.JudgeAll(l.Values)
		all = append(all, l)
	}
	return all
}

// table prints the lines.
func table(w io.Writer, lines []line) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	fmt.Fprintf(out, "%-62s %9s  %-21s %3s  %-8s %s\n", "measure", "median", "95 % of medians", "of", "target", "verdict")
	for _, l := range lines {
		value, interval := "-", "-"
		if len(l.Values) > 0 {
			value, interval = digits(l.Value), digits(l.Interval[0])+" to "+digits(l.Interval[1])
		}
		fmt.Fprintf(out, "%-62s %9s  %-21s %3d  %-8s %s\n", l.Name, value, interval, len(l.Values), l.Target, l.Verdict)
	}
}

// digits are as many as mean something.
func digits(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
