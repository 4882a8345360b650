package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// measures are the values of each series in the order of the repeats, in ns.
type measures targets.Measures

func (m measures) add(series string, x float64) { m[series] = append(m[series], x) }

// file takes a document of rdmaperf, the lines of the MPI program, or those of BenchmarkAlive.
func (m measures) file(name string) error {
	for suffix, take := range map[string]func(text string) error{".txt": m.mpi, ".bench": m.alive} {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return take(string(text))
	}
	doc, err := targets.ReadDocument(name)
	if err != nil {
		return err
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
		Use                         *latency
		Again                       *latency `json:"use_again"`
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
	add("use", d.Use)
	add("again", d.Again)
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
		Eager                 int64 `json:"eager_bytes"`
		Total                 latency
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("a result of an all-reduce: %w", err)
	}
	if d.Offload != "none" {
		return nil
	}
	stack := r.Transport
	if d.Eager == mpiEager {
		stack = asMPI(stack)
	}
	s := sum(stack, d.Ranks, d.Arm, d.Buffers, r.SizeBytes)
	if x, ok := best[s]; !ok || d.Total.P50 < x {
		best[s] = d.Total.P50
	}
	return nil
}

// mpiEager is up to which Open MPI copies messages over TCP.
const mpiEager = 64 << 10

// asMPI is a stack whose messages need no rendezvous up to the same size.
func asMPI(stack string) string { return stack + ", eager 64K" }

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

var procs = regexp.MustCompile(`-[0-9]+$`) // GOMAXPROCS, behind each name

// alive takes the lines of BenchmarkAlive, as go test prints them.
func (m measures) alive(text string) error {
	some := false
	for l := range strings.Lines(text) {
		w := strings.Fields(l)
		if len(w) < 4 || !strings.HasPrefix(w[0], "BenchmarkAlive/") {
			continue
		}
		kind := procs.ReplaceAllString(strings.TrimPrefix(w[0], "BenchmarkAlive/"), "")
		for i := 2; i+1 < len(w); i += 2 {
			v, err := strconv.ParseFloat(w[i], 64)
			if err != nil {
				return fmt.Errorf("a line of BenchmarkAlive: %q", l)
			}
			m.add(kind+"/"+w[i+1], v)
			some = true
		}
	}
	if !some {
		return fmt.Errorf("no line of BenchmarkAlive: %q", text)
	}
	return nil
}

// Sets of lines, as --only names them.
const (
	setAlloc  = "alloc"
	setCost   = "cost"
	setReduce = "allreduce"
	setMPI    = "mpi"
	setODP    = "odp"
)

func sets() []string { return []string{setAlloc, setCost, setReduce, setMPI, setODP} }

// row is one line as data: the ratio of two series, or one of them in ns.
type row struct {
	set, name      string
	series, beside string
	bound          float64
	less           bool
	minus          bool // the difference of the two
}

const mib = 1 << 20

// rows are the lines of the sets.
func rows(only []string) (list []row) {
	for _, k := range []struct{ name, series, beside string }{
		{"a block of an arena, one cache hears of it", "arena,watched", ""},
		{"declared memory: index and hook", "declared,watched", ""},
		{"a mapping, above its system call", "mapping,watched", "system-calls"},
	} {
		for _, what := range []string{"grow", "alloc", "free"} {
			name := "ns " + what + ", 100000 alive: "
			if what == "grow" {
				name = "ns alloc, until 100000 are alive: "
			}
			w := row{set: setAlloc, name: name + k.name, series: k.series + "/" + what + "-ns", bound: 1000, less: true}
			if k.beside != "" {
				// What the system takes scatters by more than the rest is, so this is shown alone.
				w.beside, w.minus, w.bound = k.beside+"/"+what+"-ns", true, 0
			}
			list = append(list, w)
		}
	}
	cost := func(arm string, size int64) string {
		return series("repeated", "register", arm, "base", "none", 1, size)
	}
	for _, size := range []int64{4 << 10, mib, 16 * mib} {
		bound := 100.0
		if size < mib {
			bound = 5
		}
		for _, arm := range []string{"cache", "prereg"} {
			list = append(list, row{setCost, fmt.Sprintf("register %s, none over %s", reports.FormatSize(size), arm),
				cost("none", size), cost(arm, size), bound, false, false})
		}
	}
	pair := func(threads int) string { return series("threads", "pair", "cache", "base", "none", threads, 64<<10) }
	list = append(list,
		row{setCost, "unmap 16M, prereg over prereg+lazy", series("new", "unmap", "prereg", "base", "none", 1, 16*mib),
			series("new", "unmap", "prereg+lazy", "base", "none", 1, 16*mib), 100, false, false},
		row{setCost, "ns a hit and its end, one thread", pair(1), "", 100, true, false},
		row{setCost, "ns a hit and its end, each of two threads", pair(2), "", 200, true, false},
		row{setCost, "register 64K, with a detour over without", series("repeated", "register", "none", "base", "hop",
			1, 64<<10), cost("none", 64<<10), 0, false, false})
	for _, ranks := range []int{2, 4} {
		for _, size := range []int64{mib, 16 * mib} {
			what := fmt.Sprintf("all-reduce of %s, %d ranks, ", reports.FormatSize(size), ranks)
			list = append(list,
				row{setReduce, what + "fresh: none over prereg+lazy", sum("iwarp", ranks, "none", "fresh", size),
					sum("iwarp", ranks, "prereg+lazy", "fresh", size), 1, false, false},
				row{setReduce, what + "reused: none over cache", sum("iwarp", ranks, "none", "reused", size),
					sum("iwarp", ranks, "cache", "reused", size), 0, false, false},
				row{setReduce, what + "reused: cache over prereg+lazy", sum("iwarp", ranks, "cache", "reused", size),
					sum("iwarp", ranks, "prereg+lazy", "reused", size), 0, false, false})
		}
		for _, size := range []int64{64 << 10, mib, 16 * mib} {
			for _, stack := range []string{"iwarp", "iwarp(nocrc)"} {
				w := row{setMPI, fmt.Sprintf("all-reduce of %s, %d ranks, MPI over %s", reports.FormatSize(size), ranks,
					stack), sum("mpi", ranks, "", "reused", size), sum(asMPI(stack), ranks, "cache", "reused", size), 1,
					false, false}
				if stack != "iwarp" { // TCP has no CRC; the target is that of the default
					w.bound = 0
				}
				list = append(list, w)
			}
		}
	}
	list = append(list, onDemand()...)
	return slices.DeleteFunc(list, func(w row) bool { return !slices.Contains(only, w.set) })
}

// onDemand are those of on-demand paging: buffers that are always new, used twice. That a
// warmed page is at most half again as slow as a pinned one is arbitrary, as in R9 of
// ci/register-list.
func onDemand() (list []row) {
	for _, size := range []int64{4 << 10, mib} {
		of := func(stage, arm string) string { return series("new", stage, arm, "base", "none", 1, size) }
		name := reports.FormatSize(size) + ", "
		list = append(list,
			row{setODP, name + "on demand: first touch over warmed", of("use", "odp"), of("again", "odp"), 1, false,
				false},
			row{setODP, name + "warmed: on demand over pinned", of("again", "odp"), of("again", "none"), 1.5, true,
				false},
			row{setODP, name + "first use: on demand over pinned", of("use", "odp"), of("use", "none"), 0, false,
				false},
			row{setODP, name + "register: none over odp", of("register", "none"), of("register", "odp"), 0, false,
				false})
	}
	return list
}

// lines measures the rows. Those of the sets shown are not judged, nor times where ratios
// alone are.
func (m measures) lines(list []row, shown []string, ratios bool) []targets.Line {
	all := make([]targets.Row, len(list))
	for i, w := range list {
		all[i] = targets.Row{Set: w.set, Name: w.name, Series: w.series, Beside: w.beside, Minus: w.minus,
			Target: targets.Target{Bound: w.bound, Less: w.less},
			Shown:  slices.Contains(shown, w.set) || ratios && (w.beside == "" || w.minus)}
	}
	return targets.Measures(m).Lines(all)
}
