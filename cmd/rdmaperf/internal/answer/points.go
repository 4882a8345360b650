package answer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// point is what the results of one column share: everything that shapes a figure but the stack and its variant.
type point struct {
	workload, op        string
	size                int64
	depth, qps, threads int
	rate                float64
	arrivals, roundTrip string
	impairment, run     string
	appWork             int64
	neighbours          int
	dims                string // but those of the variant
}

func (p point) isCall() bool { return p.op == "call" }

// variantDim tells the ways in which one stack was measured from each other.
const variantDim = "arm"

func variantOf(r *reports.Result) string {
	d, _ := r.Dim(variantDim)
	return d.Value
}

// tied are the dimensions that follow from the variant, and do not keep two variants out of one column.
type tied map[string]bool

func tiedDims(results []*reports.Result) tied {
	values := map[string]map[string][]string{} // by dimension and variant
	note := func(dim, variant, value string) {
		if values[dim] == nil {
			values[dim] = map[string][]string{}
		}
		if !slices.Contains(values[dim][variant], value) {
			values[dim][variant] = append(values[dim][variant], value)
		}
	}
	for _, r := range results {
		for _, d := range r.Dims {
			note(d.Name, variantOf(r), d.Value)
		}
		note("qps", variantOf(r), view.Integer(int64(r.QPs)))
	}
	t, several := tied{variantDim: true}, variants(results) > 1
	for dim, of := range values {
		one := len(of) > 0
		for _, v := range of {
			one = one && len(v) == 1
		}
		t[dim] = t[dim] || one && several
	}
	return t
}

func variants(results []*reports.Result) int { return len(view.Unique(results, variantOf)) }

func pointOf(r *reports.Result, t tied) point {
	p := point{workload: r.Workload, op: r.Op, size: r.SizeBytes, depth: r.Depth, qps: r.QPs,
		threads: max(r.Threads, 1), rate: r.Rate, arrivals: r.Arrivals, roundTrip: r.RoundTrip,
		impairment: r.Impairment, appWork: r.AppWorkNs, neighbours: r.Neighbours}
	p.run, _ = r.Parameters["run"].(string)
	if t["qps"] {
		p.qps = 0
	}
	own := view.Only(r.Dims, func(d reports.Dim) bool { return !t[d.Name] })
	p.dims = view.Visible(strings.Join(view.Each(own, reports.Dim.Words), ", "))
	return p
}

// mainFigure is the first figure that the workload shows. A median replaces a mean, which one stall can double, and
// small messages are counted.
func mainFigure(r *reports.Result, first int) (f reports.Figure, ok bool) {
	if f, ok = firstShown(r); !ok || rank(r, f) > first {
		return f, false
	}
	name := f.Name
	if prefix, mean := strings.CutSuffix(name, "mean"); mean {
		name = prefix + "p50"
	}
	if name == "bw" && r.SizeBytes < leastBulk {
		name = "rate"
	}
	if other, has := r.Find(name); has {
		f = other
	}
	return f, true
}

// firstShown is the first figure that the workload shows and that can be better.
func firstShown(r *reports.Result) (reports.Figure, bool) {
	return view.First(r.ShownFigures(), func(f reports.Figure) bool { return f.Better != reports.Neither })
}

func rank(r *reports.Result, f reports.Figure) int { return slices.Index(r.Shown, f.Name) }

// firstRanks are the ranks of the main figure of each workload and operation; a result without it is not compared.
func firstRanks(results []*reports.Result) map[[2]string]int {
	first := map[[2]string]int{}
	for _, r := range results {
		f, shown := firstShown(r)
		of := [2]string{r.Workload, r.Op}
		if old, ok := first[of]; shown && (!ok || rank(r, f) < old) {
			first[of] = rank(r, f)
		}
	}
	return first
}

// leastBulk is the size from which on messages are judged by bytes a second: a page.
const leastBulk = 4096

// priceFigure is the figure that pays for the main one: the bulk beside which probes were measured.
func priceFigure(r *reports.Result, of reports.Figure) (reports.Figure, bool) {
	if !strings.HasPrefix(of.Name, underLoad) {
		return reports.Figure{}, false
	}
	return r.Find(underLoad + "bw")
}

// underLoad begins the names of figures of probes that were measured while a bulk stream runs, and of that stream.
const underLoad = "loaded."

// mostColumns is how many figures are shown beside the name of a stack, without what pays for them.
const mostColumns = 6

// choose keeps the columns that are shown: all of a few points, else the ends of each sweep, else of each workload one.
func (m *matrix) choose() {
	all, points := m.columns, 0
	for _, c := range all {
		if !c.pays {
			points++
		}
	}
	if points <= mostColumns {
		return
	}
	if m.columns = ends(all); len(m.columns) > mostColumns {
		m.columns = each(all)
	}
}

func ends(all []*column) []*column {
	type sweep struct {
		workload, op, figure, dims, run string
	}
	keep := map[*column]bool{}
	for _, g := range reports.GroupBy(all, func(c *column) (sweep, bool) {
		s := sweep{c.workload, c.op, c.Name, c.dims, c.run}
		if c.Name == "rate" {
			s.figure = "bw" // of the same sweep
		}
		return s, true
	}) {
		keep[slices.MinFunc(g.Samples, bySweep)], keep[slices.MaxFunc(g.Samples, bySweep)] = true, true
	}
	return kept(all, keep)
}

func bySweep(a, b *column) int {
	return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.qps, b.qps), cmp.Compare(a.rate, b.rate))
}

func kept(all []*column, keep map[*column]bool) []*column {
	return view.Only(all, func(c *column) bool { return keep[c] })
}

// each is one column of each workload, and one of its calls. Where these are too many, calls of streams go first.
func each(all []*column) []*column {
	type kind struct {
		workload string
		call     bool
	}
	var best []*column
	for _, g := range reports.GroupBy(all, func(c *column) (kind, bool) { return kind{c.workload, c.isCall()}, !c.pays }) {
		first := g.Samples[0]
		for _, c := range g.Samples[1:] {
			if preferred(c, first) {
				first = c
			}
		}
		best = append(best, first)
	}
	slices.SortStableFunc(best, func(a, b *column) int { return cmp.Compare(weight(a), weight(b)) })
	keep := map[*column]bool{}
	for _, c := range best[:min(len(best), mostColumns)] {
		if keep[c] = true; c.price != nil {
			keep[c.price] = true
		}
	}
	return kept(all, keep)
}

func preferred(c, than *column) bool {
	if c.op != than.op {
		return c.op == "send"
	}
	if c.Quantity == reports.QuantityBytes || than.Quantity == reports.QuantityBytes {
		return c.size > than.size
	}
	return c.size < than.size
}

// weight orders kinds by who reads them: latencies of messages and calls, streams and probes, then the rest.
func weight(c *column) int {
	switch {
	case c.topic() == reports.TopicSmall && c.Quantity == reports.QuantityTime:
		return 0
	case !c.isCall():
		return 1
	}
	return 2
}
