package reports

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// sample is one result with the series that it belongs to.
type sample struct {
	*Result
	series string // stack, and the document where stacks collide
	short  string // series, where there is little room
	slot   int    // colour, dash and marker of the series on the whole page
	rate   float64
	extra  string // see shape
}

// name tells repeats of one point apart.
func (s *sample) name() string {
	if s.Repeat > 0 {
		return fmt.Sprintf("%s, repeat %d", s.series, s.Repeat)
	}
	return s.series
}

// condition is what two samples must share to stand in one chart.
type condition struct {
	load
	rate  float64
	extra string
}

func (s *sample) condition() condition { return condition{loadOf(s.Result), s.rate, s.extra} }

// describe says all that shapes the figure.
func (c condition) describe() string {
	s := c.load.conditions()
	if c.rate > 0 {
		s += ", " + rateLabel(c.rate) + " offered"
	}
	if c.extra != "" {
		s += ", " + c.extra
	}
	return s
}

// title names the work where a heading needs it.
func (c condition) title() string {
	if c.workload == "hol" {
		return strings.TrimSpace("Head-of-line " + c.op)
	}
	return capital(c.load.what())
}

// sampleSet is every result of every document, in order.
type sampleSet struct {
	samples []*sample
	order   []string // series by first appearance; the first is the base
	short   []string // their short names
	names   []string // of the documents, "" for a single one without
}

func newSampleSet(docs []*Document, names []string) *sampleSet {
	set := &sampleSet{names: documentNames(names, len(docs))}
	type place struct {
		condition
		stack string
		size  int64
	}
	// A stack measured at the same place in two documents is two series: the
	// two files are there to be told apart.
	seen := map[place]int{}
	collide := map[string]bool{}
	owner := []int{}
	for i, d := range docs {
		for k := range d.Results {
			r := &d.Results[k]
			s := &sample{Result: r, series: visible(r.Stack), rate: r.Rate, extra: shape(r)}
			at := place{s.condition(), r.Stack, r.SizeBytes}
			if first, ok := seen[at]; ok && first != i {
				collide[r.Stack] = true
			} else if !ok {
				seen[at] = i
			}
			set.samples = append(set.samples, s)
			owner = append(owner, i)
		}
	}
	var asked []string
	for i, s := range set.samples {
		document := ""
		if collide[s.Stack] {
			document = " · " + visible(set.docName(owner[i]))
			s.series += document
		}
		slot := slices.Index(set.order, s.series)
		if slot < 0 {
			slot = len(set.order)
			set.order = append(set.order, s.series)
			if s.Transport == "" { // older documents
				document = ""
			}
			asked = append(asked, visible(s.Transport)+document)
		}
		s.slot = slot
	}
	set.short = shortNames(set.order, asked)
	for _, s := range set.samples {
		s.short = set.short[s.slot]
	}
	return set
}

// arms are the variants in which a stack was measured, by first appearance.
func (set *sampleSet) arms() (arms []string) {
	for _, s := range set.samples {
		arm := ""
		switch {
		case s.ParamServer != nil:
			arm = visible(s.ParamServer.Arm)
		case s.HOL != nil:
			arm = holArm(s.HOL)
		}
		if arm != "" && !slices.Contains(arms, arm) {
			arms = append(arms, arm)
		}
	}
	return arms
}

// shared tells whether two stacks were measured under the same conditions.
func (set *sampleSet) shared() bool {
	type place struct {
		condition
		size int64
	}
	series := map[place]string{}
	for _, s := range set.samples {
		at := place{s.condition(), s.SizeBytes}
		if other, ok := series[at]; ok && other != s.series {
			return true
		}
		series[at] = s.series
	}
	return false
}

// docName names a document on the page.
func (set *sampleSet) docName(i int) string {
	return set.names[i]
}

// shape names the variant of a head-of-line result or of a training.
func shape(r *Result) string {
	if ps := r.ParamServer; ps != nil {
		return visible(ps.point())
	}
	if r.Starvation != nil {
		return r.Starvation.point()
	}
	if r.HOL == nil {
		return ""
	}
	return fmt.Sprintf("bulk of %s, %s", sizeLabel(r.HOL.BulkSizeBytes), holArm(r.HOL))
}

// holArm says whether probes and bulk shared a QP; documents without the field
// come from before there was a choice.
func holArm(h *HOL) string {
	if h.Arm == "" {
		return ArmSameQP
	}
	return visible(h.Arm)
}

// bySeries is the samples of one place, series after series.
type bySeries struct {
	series string
	short  string // series, where there is little room
	slot   int
	runs   []*sample
}

// split sorts samples into series, in the page's order.
func split(samples []*sample) []*bySeries {
	var out []*bySeries
	index := map[string]*bySeries{}
	for _, s := range samples {
		b := index[s.series]
		if b == nil {
			b = &bySeries{series: s.series, short: s.short, slot: s.slot}
			index[s.series] = b
			out = append(out, b)
		}
		b.runs = append(b.runs, s)
	}
	sort.SliceStable(out, func(i, k int) bool { return out[i].slot < out[k].slot })
	return out
}

// group is samples that share a key, in order of first appearance.
type group[K comparable] struct {
	key     K
	samples []*sample
}

func groupBy[K comparable](samples []*sample, key func(*sample) (K, bool)) []*group[K] {
	var out []*group[K]
	index := map[K]*group[K]{}
	for _, s := range samples {
		k, ok := key(s)
		if !ok {
			continue
		}
		g := index[k]
		if g == nil {
			g = &group[K]{key: k}
			index[k] = g
			out = append(out, g)
		}
		g.samples = append(g.samples, s)
	}
	return out
}

// sizesOf returns the sizes present, rising.
func sizesOf(samples []*sample) []int64 {
	var sizes []int64
	for _, s := range samples {
		sizes = append(sizes, s.SizeBytes)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// medianOf is the median of one figure over repeats.
func medianOf(runs []*sample, figure func(*sample) float64) float64 {
	v := make([]float64, len(runs))
	for i, r := range runs {
		v[i] = figure(r)
	}
	return median(v)
}

// pooled merges the latencies of repeats into one distribution. Without
// histograms it gives nil and the named percentiles have to do.
func pooled(ls []*Latency) *hdrhistogram.Histogram {
	var sum *hdrhistogram.Histogram
	for _, l := range ls {
		h, err := l.Histogram()
		if err != nil {
			return nil
		}
		if sum == nil {
			sum = h
			continue
		}
		if sum.Merge(h) != 0 {
			return nil // ranges differ: a sum would lack samples
		}
	}
	return sum
}

// nsLabel prints a time with three digits and its unit.
func nsLabel(ns float64) string {
	if !finite(ns) {
		return "-"
	}
	for _, u := range []struct {
		below, by float64
		unit      string
	}{{999.5, 1, "ns"}, {999.5e3, 1e3, "µs"}, {999.5e6, 1e6, "ms"}} {
		if ns < u.below {
			return digits3(ns/u.by) + " " + u.unit
		}
	}
	return digits3(ns/1e9) + " s"
}

// digits3 prints three significant digits and no exponent.
func digits3(v float64) string {
	switch {
	case !finite(v):
		return "-"
	case v == 0:
		return "0"
	case v < 0.01:
		return fmt.Sprintf("%.2g", v)
	case v < 0.9995:
		return trimZeros(fmt.Sprintf("%.3f", v))
	case v < 9.995:
		return trimZeros(fmt.Sprintf("%.2f", v))
	case v < 99.95:
		return trimZeros(fmt.Sprintf("%.1f", v))
	}
	return thousands(fmt.Sprintf("%.0f", v))
}

func trimZeros(s string) string { return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") }

// thousands parts a long whole number with narrow spaces.
func thousands(s string) string {
	if len(s) < 5 {
		return s
	}
	head := len(s) % 3
	var parts []string
	if head > 0 {
		parts = append(parts, s[:head])
	}
	for i := head; i < len(s); i += 3 {
		parts = append(parts, s[i:i+3])
	}
	return strings.Join(parts, "\u202f")
}

func sizeLabel(n int64) string {
	s := FormatSize(n)
	if s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
		return s + " B"
	}
	return s[:len(s)-1] + " " + s[len(s)-1:] + "iB"
}

func bandwidthLabel(bytesPerSecond float64) string {
	return digits3(bytesPerSecond/(1<<20)) + " MiB/s"
}

func rateLabel(perSecond float64) string {
	switch {
	case perSecond >= 1e6:
		return digits3(perSecond/1e6) + " M op/s"
	case perSecond >= 1e4:
		return digits3(perSecond/1e3) + " k op/s"
	}
	return digits3(perSecond) + " op/s"
}
