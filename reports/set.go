package reports

import (
	"fmt"
	"slices"
	"sort"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Measured is one result with the series that it belongs to.
type Measured struct {
	*Result
	SeriesName string // stack, and the document where stacks collide
	Short      string // series, where there is little room
	Slot       int    // colour, dash and marker of the series on the whole page
	Rate       float64
	Extra      string // its dimensions, in words
}

// Name tells repeats of one point apart.
func (s *Measured) Name() string {
	if s.Repeat > 0 {
		return fmt.Sprintf("%s, repeat %d", s.SeriesName, s.Repeat)
	}
	return s.SeriesName
}

// Condition is what two samples must share to stand in one chart.
type Condition struct {
	Load
	Rate  float64
	Extra string
}

// Condition is what the sample shares with others of one chart.
func (s *Measured) Condition() Condition { return Condition{LoadOf(s.Result), s.Rate, s.Extra} }

// Describe says all that shapes the figure.
func (c Condition) Describe() string {
	s := c.Load.Conditions()
	if c.Rate > 0 {
		s += ", " + view.RateLabel(c.Rate) + " offered"
	}
	if c.Extra != "" {
		s += ", " + c.Extra
	}
	return s
}

// Set is every result of every document, in order.
type Set struct {
	Samples []*Measured
	Order   []string // series by first appearance; the first is the base
	Short   []string // their short names
	names   []string // of the documents, "" for a single one without
}

// NewSet puts the results of documents into series; names are those of the files.
func NewSet(docs []*Document, names []string) *Set {
	set := &Set{names: documentNames(names, len(docs))}
	type place struct {
		Condition
		Stack string
		Size  int64
	}
	// A stack measured at the same place in two documents is two series: the
	// two files are there to be told apart.
	seen := map[place]int{}
	collide := map[string]bool{}
	owner := []int{}
	for i, d := range docs {
		for k := range d.Results {
			r := &d.Results[k]
			s := &Measured{Result: r, SeriesName: view.Visible(r.Stack), Rate: r.Rate,
				Extra: view.Visible(r.DimWords())}
			at := place{Condition: s.Condition(), Stack: r.Stack, Size: r.SizeBytes}
			if first, ok := seen[at]; ok && first != i {
				collide[r.Stack] = true
			} else if !ok {
				seen[at] = i
			}
			set.Samples = append(set.Samples, s)
			owner = append(owner, i)
		}
	}
	var asked []string
	for i, s := range set.Samples {
		document := ""
		if collide[s.Stack] {
			document = " · " + view.Visible(set.DocName(owner[i]))
			s.SeriesName += document
		}
		slot := slices.Index(set.Order, s.SeriesName)
		if slot < 0 {
			slot = len(set.Order)
			set.Order = append(set.Order, s.SeriesName)
			if s.Transport == "" { // older documents
				document = ""
			}
			asked = append(asked, view.Visible(s.Transport)+document)
		}
		s.Slot = slot
	}
	set.Short = ShortNames(set.Order, asked)
	for _, s := range set.Samples {
		s.Short = set.Short[s.Slot]
	}
	return set
}

// Shared tells whether two stacks were measured under the same conditions.
func (set *Set) Shared() bool {
	type place struct {
		Condition
		Size int64
	}
	series := map[place]string{}
	for _, s := range set.Samples {
		at := place{Condition: s.Condition(), Size: s.SizeBytes}
		if other, ok := series[at]; ok && other != s.SeriesName {
			return true
		}
		series[at] = s.SeriesName
	}
	return false
}

// DocName names a document on the page.
func (set *Set) DocName(i int) string {
	return set.names[i]
}

// BySeries is the samples of one place, series after series.
type BySeries struct {
	Series string
	Short  string // series, where there is little room
	Slot   int
	Runs   []*Measured
}

// Split sorts samples into series, in the page's order.
func Split(samples []*Measured) []*BySeries {
	var out []*BySeries
	index := map[string]*BySeries{}
	for _, s := range samples {
		b := index[s.SeriesName]
		if b == nil {
			b = &BySeries{Series: s.SeriesName, Short: s.Short, Slot: s.Slot}
			index[s.SeriesName] = b
			out = append(out, b)
		}
		b.Runs = append(b.Runs, s)
	}
	sort.SliceStable(out, func(i, k int) bool { return out[i].Slot < out[k].Slot })
	return out
}

// Group is samples that share a key, in order of first appearance.
type Group[K comparable] struct {
	Key     K
	Samples []*Measured
}

// GroupBy sorts samples by a key; those for which it is false are left out.
func GroupBy[K comparable](samples []*Measured, key func(*Measured) (K, bool)) []*Group[K] {
	var out []*Group[K]
	index := map[K]*Group[K]{}
	for _, s := range samples {
		k, ok := key(s)
		if !ok {
			continue
		}
		g := index[k]
		if g == nil {
			g = &Group[K]{Key: k}
			index[k] = g
			out = append(out, g)
		}
		g.Samples = append(g.Samples, s)
	}
	return out
}

// SizesOf returns the sizes present, rising.
func SizesOf(samples []*Measured) []int64 {
	var sizes []int64
	for _, s := range samples {
		sizes = append(sizes, s.SizeBytes)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// MedianOf is the median of one figure over repeats.
func MedianOf(runs []*Measured, figure func(*Measured) float64) float64 {
	v := make([]float64, len(runs))
	for i, r := range runs {
		v[i] = figure(r)
	}
	return Median(v)
}

// Pooled merges the latencies of repeats into one distribution. Without
// histograms it gives nil and the named percentiles have to do.
func Pooled(ls []*Latency) *hdrhistogram.Histogram {
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

// Latencies is every distribution that the common figures and the kind's rest on.
func (s *Measured) Latencies() []*Latency {
	var out []*Latency
	if s.Latency != nil {
		out = append(out, s.Latency)
	}
	for _, l := range s.Result.Latencies {
		out = append(out, l.Latency)
	}
	return out
}
