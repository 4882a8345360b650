package mesh

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

type found struct {
	size   int
	gone   map[int]string
	differ []difference
	lacks  map[string][]string // hosts by what they lack
	apart  []string            // pairs of hosts that have no address family in common
	took   time.Duration
	bad    int // findings
}

func lacks(members []*member) map[string][]string {
	all := map[string][]string{}
	for _, m := range members {
		if m == nil {
			continue
		}
		for _, l := range m.Lacks {
			if !slices.Contains(all[l], m.Host) {
				all[l] = append(all[l], m.Host)
			}
		}
	}
	return all
}

func (f *found) details(e *reports.Environment) {
	if e.Details == nil {
		e.Details = map[string]string{}
	}
	e.Details["mesh.ranks"] = fmt.Sprint(f.size)
	for r, why := range f.gone {
		e.Details[fmt.Sprintf("mesh.gone.%d", r)] = why
	}
	if len(f.apart) > 0 {
		e.Details["mesh.apart"] = strings.Join(f.apart, "; ")
	}
	for _, d := range f.differ {
		e.Details["mesh.differs."+d.Fact] = d.String()
	}
}

func (f *found) corrupt(doc *reports.Document) bool {
	return slices.ContainsFunc(doc.Results, func(r reports.Result) bool {
		d := reports.DetailOf[results.Mesh](&r)
		return d != nil && strings.HasPrefix(d.Failed, corruptMark)
	})
}

// corruptMark begins the reason of a pair that failed by data corruption.
const corruptMark = "data corruption: "

const (
	mostLines   = 40
	mostColumns = 80
)

func (f *found) text(w io.Writer, doc *reports.Document) {
	s := results.Summarise(doc.Results)
	var lines []string
	add := func(indent int, format string, args ...any) {
		pad := strings.Repeat(" ", indent)
		for i, l := range view.Wrap(fmt.Sprintf(format, args...), mostColumns-indent, "  ") {
			if i == 0 || l != "" {
				l = pad + l
			}
			lines = append(lines, strings.TrimRight(l, " "))
		}
	}
	list := func(title string, n int, item func(i int) string) {
		add(0, "")
		add(0, "%s", title)
		for i := range n {
			if i == mostOf && n > mostOf+1 {
				add(2, "and %d more", n-i)
				return
			}
			add(2, "%s", item(i))
		}
	}
	switch {
	case s == nil:
		add(0, "Nothing was measured.")
	case len(s.Findings) == 0 && s.Failed == 0 && len(f.gone) == 0:
		add(0, "Nothing is slow: %s, %s.", meshOf(f, s), worst(s))
	case len(s.Findings) == 0:
		add(0, "None of what was measured is slow: %s, %s.", meshOf(f, s), worst(s))
	default:
		f.bad = len(s.Findings)
		add(0, "Slow in %s:", meshOf(f, s))
		for i := range s.Findings {
			if i == mostFindings {
				add(2, "and %d more", len(s.Findings)-i)
				break
			}
			add(2, "%s", s.Sentence(&s.Findings[i]))
			for _, e := range s.Evidence(&s.Findings[i]) {
				add(4, "%s", e)
			}
		}
	}
	if s != nil && s.Contended > 0 {
		add(0, "")
		add(0, "CPU contention in %d of %d measurements, which are evidence only beyond the time that it took.",
			s.Contended, s.Windows)
	}
	if len(f.gone) > 0 {
		gone := slices.Sorted(maps.Keys(f.gone))
		list("Ranks that did not take part to the end:", len(gone), func(i int) string {
			return fmt.Sprintf("rank %d: %s", gone[i], f.gone[gone[i]])
		})
	}
	if s != nil && s.Failed > 0 {
		var failed []string
		for i := range doc.Results {
			d := reports.DetailOf[results.Mesh](&doc.Results[i])
			if d != nil && d.Failed != "" && !d.Gone {
				failed = append(failed, fmt.Sprintf("%s from rank %d to %d: %s", d.Measure, d.From, d.To, view.Printable(d.Failed)))
			}
		}
		list("Pairs without a figure:", len(failed), func(i int) string { return failed[i] })
	}
	if n := len(f.apart); n > 0 {
		add(0, "")
		add(0, "Left out, without an address family in common: %s of hosts, such as %s.", view.Plural(int64(n), "pair"),
			view.Printable(f.apart[0]))
	}
	if len(f.differ) > 0 {
		list("Hosts that differ:", len(f.differ), func(i int) string { return view.Printable(f.differ[i].String()) })
	}
	if len(f.lacks) > 0 {
		keys := slices.Sorted(maps.Keys(f.lacks))
		list("What hosts lack (rdmaperf doctor there says more):", len(keys), func(i int) string {
			return view.Printable(keys[i]) + ": " + hostList(f.lacks[keys[i]])
		})
	}
	if s != nil {
		lines = append(lines, "")
		lines = append(lines, f.table(s, doc.Results)...)
	}
	if len(lines) > mostLines {
		lines = append(lines[:mostLines-1], "… the rest is on the page")
	}
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
}

const mostFindings, mostOf = 5, 3

func hostList(hosts []string) string {
	list := strings.Join(hosts[:min(len(hosts), 3)], ", ")
	if more := len(hosts) - 3; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return view.Printable(list)
}

// shareOf says what part of its link the worst and the best pair have; "" where that is not known.
func shareOf(measure, stack string, all []reports.Result) string {
	least, most, expected := math.Inf(1), 0., 0.
	for i := range all {
		d := reports.DetailOf[results.Mesh](&all[i])
		if share, ok := all[i].Figure("share"); ok && d.Measure == measure && reports.TransportOf(&all[i]) == stack {
			least, most, expected = min(least, share), max(most, share), max(expected, d.Expected)
		}
	}
	if expected == 0 {
		return ""
	}
	return fmt.Sprintf("%-12s%-23s %.0f%% to %.0f%% of the %s of link and slot", measure,
		view.Shorten(view.Printable(stack), 23), 100*least, 100*most, view.BandwidthLabel(expected))
}

func meshOf(f *found, s *results.Summary) string {
	return fmt.Sprintf("%d ranks on %s, %s, in %.3gs", f.size, view.Plural(int64(s.Hosts), "host"),
		view.Plural(int64(s.Links), "pair"), f.took.Seconds())
}

func worst(s *results.Summary) string {
	ratio, text := 0.0, ""
	for _, m := range s.Measures {
		if r := spreadOf(m); r.low > 0 && r.high/r.low > ratio {
			ratio = r.high / r.low
			text = fmt.Sprintf("the worst %s is %.2gx of the best", m.Name, r.low/r.high)
			if !m.More {
				text = fmt.Sprintf("the worst %s is %.2gx of the best", m.Name, ratio)
			}
		}
	}
	return text
}

type spread struct {
	low, median, high float64
	n                 int
}

func spreadOf(m *verdict.Measure) (s spread) {
	var all []float64
	for _, v := range m.Values {
		if x := v[len(v)-1]; x > 0 && !math.IsInf(x, 0) {
			all = append(all, x)
		}
	}
	slices.Sort(all)
	if s.n = len(all); s.n > 0 {
		s.low, s.median, s.high = all[0], all[s.n/2], all[s.n-1]
	}
	return s
}

func (f *found) table(s *results.Summary, all []reports.Result) []string {
	lines := []string{fmt.Sprintf("%-12s%-23s %12s %12s %12s %5s", "", "", "best", "median", "worst", "pairs")}
	for _, m := range s.Measures {
		sp, label := spreadOf(m), view.NsLabel
		best, worst := sp.low, sp.high
		if m.More {
			label, best, worst = view.BandwidthLabel, sp.high, sp.low
		}
		lines = append(lines, fmt.Sprintf("%-12s%-23s %12s %12s %12s %5d", m.Name,
			view.Shorten(view.Printable(m.Stack), 23), label(best), label(sp.median), label(worst), sp.n))
	}
	for _, m := range s.Measures {
		if line := shareOf(m.Name, m.Stack, all); line != "" {
			lines = append(lines, line)
		}
	}
	for _, r := range s.Allreduces {
		d := reports.DetailOf[results.Mesh](r)
		if r.Latency == nil || r.Throughput == nil {
			lines = append(lines, view.Printable(fmt.Sprintf("allreduce  %s: %s", reports.TransportOf(r), d.Failed)))
			continue
		}
		lines = append(lines, fmt.Sprintf("%-12s%-23s %d ranks, %s of %s: %s, %s a link", d.Measure,
			view.Shorten(view.Printable(reports.TransportOf(r)), 23), d.Ranks, r.Op, reports.FormatSize(r.SizeBytes),
			view.NsLabel(r.Latency.P50), view.BandwidthLabel(r.Throughput.BytesPerSecond)))
	}
	return lines
}
