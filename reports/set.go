package reports

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Measured is one result with the series that it belongs to.
type Measured struct {
	*Result
	SeriesName string // stack, and the document where stacks collide
	Short      string // series, where there is little room
	Slot       int    // colour, dash and marker of the series on the whole page
	Extra      string // its dimensions, in words
}

// Name tells repeats of one point apart.
func (s *Measured) Name() string {
	return s.SeriesName + view.When(s.Repeat > 0, fmt.Sprintf(", repeat %d", s.Repeat))
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
	return view.Join(", ", c.Load.Conditions(), view.When(c.Rate > 0, view.RateLabel(c.Rate)+" offered"), c.Extra)
}

// At is a condition at one size.
type At struct {
	Condition
	Size int64
}

// At is where the sample stands among all.
func (s *Measured) At() At { return At{s.Condition(), s.SizeBytes} }

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
		At
		stack string
	}
	// A stack measured at the same place in two documents is two series.
	seen := map[place]int{}
	collide := map[string]bool{}
	owner := []int{}
	for i, d := range docs {
		for _, r := range Pointers(d.Results) {
			s := &Measured{Result: r, SeriesName: view.Visible(r.Stack), Extra: view.Visible(r.DimWords())}
			at := place{s.At(), r.Stack}
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
	series := map[At]string{}
	return slices.ContainsFunc(set.Samples, func(s *Measured) bool {
		other, ok := series[s.At()]
		series[s.At()] = s.SeriesName
		return ok && other != s.SeriesName
	})
}

// DocName names a document on the page.
func (set *Set) DocName(i int) string { return set.names[i] }

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
	for _, g := range GroupBy(samples, func(s *Measured) (string, bool) { return s.SeriesName, true }) {
		first := g.Samples[0]
		out = append(out, &BySeries{Series: g.Key, Short: first.Short, Slot: first.Slot, Runs: g.Samples})
	}
	slices.SortStableFunc(out, func(a, b *BySeries) int { return cmp.Compare(a.Slot, b.Slot) })
	return out
}

// GroupOf is what shares a key, in order of first appearance.
type GroupOf[K comparable, T any] struct {
	Key     K
	Samples []T
}

// Group is a group of samples.
type Group[K comparable] = GroupOf[K, *Measured]

// GroupBy sorts samples by a key; those for which it is false are left out.
func GroupBy[K comparable, T any](samples []T, key func(T) (K, bool)) []*GroupOf[K, T] {
	var out []*GroupOf[K, T]
	index := map[K]*GroupOf[K, T]{}
	for _, s := range samples {
		k, ok := key(s)
		if !ok {
			continue
		}
		g := index[k]
		if g == nil {
			g = &GroupOf[K, T]{Key: k}
			index[k] = g
			out = append(out, g)
		}
		g.Samples = append(g.Samples, s)
	}
	return out
}

// Pointers are those to the results themselves.
func Pointers(results []Result) []*Result {
	all := make([]*Result, len(results))
	for i := range results {
		all[i] = &results[i]
	}
	return all
}

// ResultsOf are the results of samples.
func ResultsOf(samples []*Measured) []*Result {
	return view.Each(samples, func(s *Measured) *Result { return s.Result })
}

// Distinct are the values that samples have, each once, rising.
func Distinct[T any, V cmp.Ordered](samples []T, of func(T) V) []V {
	values := view.Each(samples, of)
	slices.Sort(values)
	return slices.Compact(values)
}

// SizesOf returns the sizes present, rising.
func SizesOf(samples []*Measured) []int64 {
	return Distinct(samples, func(s *Measured) int64 { return s.SizeBytes })
}

// MedianOf is the median of one figure over repeats.
func MedianOf[T any](repeats []T, figure func(T) float64) float64 {
	return Median(view.Each(repeats, figure))
}

// Pooled merges the latencies of repeats into one distribution, nil where one has no histogram.
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

// documentNames are the files' own names, with as many directories as tell them apart.
func documentNames(files []string, documents int) []string {
	names := make([]string, documents)
	for i := range names {
		if i < len(files) && files[i] != "" {
			names[i] = filepath.Base(files[i])
		} else if documents > 1 {
			names[i] = fmt.Sprintf("run %d", i+1)
		}
	}
	const depth = 8 // directories that are looked at
	for n := 2; n <= depth; n++ {
		count := map[string]int{}
		for _, name := range names {
			count[name]++
		}
		for i, name := range names {
			if i < len(files) && files[i] != "" && count[name] > 1 {
				names[i] = tail(filepath.ToSlash(filepath.Clean(files[i])), n)
			}
		}
	}
	for i, name := range names { // one file twice
		if slices.Index(names, name) != i {
			names[i] += fmt.Sprintf(" (%d)", i+1)
		}
	}
	return names
}

func tail(path string, n int) string {
	parts := strings.Split(strings.TrimLeft(path, "/"), "/")
	return strings.Join(parts[max(len(parts)-n, 0):], "/")
}

// TransportOf is the transport as it was asked for, or else the stack.
func TransportOf(r *Result) string { return cmp.Or(r.Transport, r.Stack) }

// Layers are the layers of a stack's name, outermost first: a plus sign in parentheses is part of a layer.
func Layers(stack string) (layers []string) {
	depth, begin := 0, 0
	for i, c := range stack {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '+' && depth == 0:
			layers, begin = append(layers, stack[begin:i]), i+1
		}
	}
	return append(layers, strings.TrimSpace(stack[begin:]))
}

// NameRoom is how many characters a short name has at most: about one line of a headline.
const NameRoom = 40

// ShortNames are what series are called where there is little room, no two equal. full are stacks with every parameter,
// asked the same as they were asked for.
func ShortNames(full, asked []string) []string {
	short := make([]string, len(full))
	count := map[string]int{}
	for i, name := range full {
		if asked[i] != "" && len(asked[i]) < len(name) {
			name = asked[i]
		}
		short[i] = view.Shorten(name, NameRoom)
		count[short[i]]++
	}
	for i, name := range short {
		if count[name] > 1 {
			number := fmt.Sprintf(" #%d", i+1)
			short[i] = view.Shorten(name, NameRoom-len(number)) + number
		}
	}
	return short
}

// Offered is the load of an open loop in operations a second, empty for a closed one.
func Offered(r *Result) string { return view.When(r.Rate != 0, view.RateText(r.Rate)) }
