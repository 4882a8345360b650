package reports

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Kind describes the results of one workload as data: what tells points apart,
// under which conditions they hold, which figures they have, and how they stand
// in tables and charts. Everything that is drawn, compared or exported reads this
// table, and nothing else knows a workload. A method that is nil leaves its part to
// what all results have in common: latency, throughput, series.
//
// A Kind is constant and shared: its methods only read results.
type Kind struct {
	Workload string // as in Result.Workload
	Called   string // in a sentence, if not by that name
	Bare     bool   // says something of results without detail, too

	// What a point is.

	Share         func(r *Result) any         // what results in one table have in common beside the load; comparable
	What          func(l Load) string         // the work in a title, instead of workload and operation
	Title         func(l Load) string         // the same on a page
	Conditions    func(l Load) string         // all that shapes a figure but the stack
	Connection    string                      // what one of its QPs is called; empty for QP
	AnyQPs        bool                        // results with other numbers of QPs stand in one table
	OwnThreads    bool                        // the conditions say where threads are
	Variant       func(r *Result) string      // tells apart what stands in one table, repeats aside
	NamesRows     bool                        // the variant stands in the name of a row
	Aside         func(r *Result) string      // what of the variant the name of a row lacks where counters stand
	SeriesOf      func(r *Result) string      // what a series over time is of
	Arm           func(r *Result) string      // the variant in which a stack was measured, on a page
	Shape         func(r *Result) string      // what results on one chart share beside the load, in words
	Sleeps        func(r *Result) bool        // it sleeps between messages; nil: with event polling
	Contradiction func(r *Result) string      // why its figures cannot be; "" where they can
	Medians       func(all []*Result) any     // the detail of several repeats
	Directions    func(r *Result) []Direction // a throughput in parts and their sum

	// Figures.

	Results  *Workload
	Spreads  []Spread      // figures whose spread over repeats is said
	Interval *IntervalForm // intervals in a table of their own form

	// Tables.

	PingPong      bool // its rate says nothing that its latency does not
	OwnLatency    bool // its tables have the latency
	OwnRate       bool // its tables have the throughput
	OwnTable      bool // its tables have all there is
	Tables        func(g *Grouped, rows []*Result, u view.Units) []Block
	Usage         func(g *Grouped) []string
	SideBySide    []*SideBySide
	OwnSideBySide bool                        // stacks stand beside each other in those alone
	Loops         func(r *Result) []NamedLoop // open loops beside the result's own
	PageTables    func(of Condition, samples []*Measured) []view.Grid
	PageBlocks    bool // Tables stand on the page too, one for each load and stack

	// Charts and the verdict.

	Sections    []*PageSection
	OwnCharts   bool // none of the common charts and cards
	OwnRates    bool // no common charts of throughput
	OwnSweep    bool // no common charts over connections
	Card        *CardKind
	LatencyCard func(k Condition) string // begins the title of a card of latency

}

// PlainKind is that of workloads that have nothing of their own.
var PlainKind = &Kind{}

// AnyKind never returns nil.
func (r *Result) AnyKind() *Kind {
	if r.Kind == nil || r.Detail == nil && !r.Kind.Bare {
		return PlainKind
	}
	return r.Kind
}

// Equal tells whether both are the same: a kind is known by its address.
func (k *Kind) Equal(o *Kind) bool { return k == o }

// KindOf finds the kind of a workload, nil for none.
func KindOf(kinds []*Kind, workload string) *Kind {
	if i := slices.IndexFunc(kinds, func(k *Kind) bool { return k.Workload == workload }); i >= 0 {
		return kinds[i]
	}
	return nil
}

// Ask calls a method of a kind that may be nil.
func Ask(f func(r *Result) string, r *Result) string {
	if f == nil {
		return ""
	}
	return f(r)
}

// variant tells apart what stands in one table.
func (r *Result) variant() string { return Ask(r.AnyKind().Variant, r) }

// Spread is a figure whose spread over repeats is said.
type Spread struct {
	Name string
	Of   func(r *Result) float64
}

// Block is one table of a text and the sentence before it.
type Block struct {
	Lead  string
	Table *view.Table
}

// SideBySide is a way to hold stacks against each other. Several kinds may share
// one; each is asked once, in the order of rank.
type SideBySide struct {
	Rank   int
	Tables func(results []Result, u view.Units) []SideBlock
}

// SideBlock is one table of stacks side by side.
type SideBlock struct {
	Title, Conditions string
	Lines             []string
	Table             *view.Table
}

// PageSection is a group of charts. Several kinds may share one; each is asked
// once, in the order of rank: the common ones are from 100 to 199, and 300.
type PageSection struct {
	Rank int
	Of   func(set *Set) view.Section
}

// IntervalForm is the form of means and intervals where a variant stands in front.
type IntervalForm struct {
	Of      string // what stands beside the arm
	Columns func(u view.Units) []view.Column
	Rows    func(r *Result) []IntervalRow
}

// IntervalRow names its figures as thresholds do.
type IntervalRow struct {
	Arm, Of string
	Figures []string
}

// CardKind makes cards of the verdict for all results of a kind, in the order of
// rank before those of latency and throughput.
type CardKind struct {
	Rank   int
	Has    func(s *Measured) bool
	Figure func(s *Measured) float64
	Kicker func(k Condition) string
	Winner string // behind its name
	Note   func(in []*Measured) string
}

// PercentileCell prints one percentile and marks it when it rests on too few
// samples.
func PercentileCell(l *Latency, name string) view.Cell {
	for _, p := range l.Percentiles() {
		if p.Name == name {
			return view.Cell{Text: p.Text(), Mark: p.TooFew}
		}
	}
	panic("reports: no percentile " + name)
}

// IntervalTimes are the columns of means of latencies.
var IntervalTimes = []view.Column{{Name: "p50", Unit: "us"}, {Name: "mean", Unit: "us"}, {Name: "p99", Unit: "us"}}
