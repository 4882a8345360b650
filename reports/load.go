package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Load is what two results must share to share one table.
type Load struct {
	Workload, Op, Polling, RoundTrip string
	loop                             string // of a ping-pong: plain, provider
	Depth, QPs, threads              int
	arrivals                         string // of an open loop, whose rate stands in the table
	run                              string // of a scenario: two runs of one point are not repeats
	impairment                       string
	appWork                          int64  // ns of the application at the receiver for each message
	neighbours                       int    // threads that spin beside it
	title, note                      string // as the workload describes its results
	Sweep                            bool   // several numbers of QPs, which are in the table
}

// LoadOf is the load of a result.
func LoadOf(r *Result) Load {
	l := Load{Workload: r.Workload, Op: r.Op, Polling: r.Polling, RoundTrip: r.RoundTrip,
		Depth: r.Depth, QPs: r.QPs, threads: max(r.Threads, 1), arrivals: r.Arrivals, appWork: r.AppWorkNs,
		impairment: r.Impairment, neighbours: r.Neighbours, title: r.Title, note: r.Note}
	l.run, _ = r.Parameters["run"].(string)
	l.loop = loopOf(r)
	return l
}

// What names the work.
func (l Load) What() string { return l.named(l.Workload) }

// Title names the work on a page.
func (l Load) Title() string { return view.Capital(l.named(cmp.Or(l.title, l.Workload))) }

func (l Load) named(workload string) string {
	return strings.TrimSpace(workload+" "+l.Op) + view.When(l.run != "", ", run "+l.run)
}

// Conditions are everything that shapes the figure but the stack.
func (l Load) Conditions() string {
	return view.Join(", ", "depth "+strconv.Itoa(l.Depth),
		view.When(!l.Sweep, view.Plural(int64(l.QPs), l.Connections())),
		view.When(l.threads > 1, view.Plural(int64(l.threads), "thread")), l.impairment,
		view.When(l.appWork > 0, time.Duration(l.appWork).String()+" of application work a message"),
		view.When(l.neighbours > 0, "with "+view.Plural(int64(l.neighbours), "busy neighbour")),
		view.When(l.Polling != "", l.Polling+" polling"),
		view.When(l.arrivals != "", "open loop with "+l.arrivals+" arrivals"), view.When(l.loop != "", l.loop+" loop"),
		view.When(l.RoundTrip != "", l.RoundTrip+" round trip"), l.note)
}

// Called is the workload in a sentence.
func (l Load) Called() string { return cmp.Or(l.title, view.Capital(l.Workload)) }

type resultGroup struct {
	Load
	stack, Label, measuredBy string
	verified                 bool
}

// Grouped is the results of one table. Dims differ between them, Fixed is what all share, in words.
type Grouped struct {
	resultGroup
	Results []*Result
	Dims    []DimDef
	Fixed   string
}

// GroupResults keeps the order in which groups and results appear.
func GroupResults(results []Result, swept map[Load]bool) []*Grouped {
	var groups []*Grouped
	for _, of := range GroupBy(Pointers(results), func(r *Result) (resultGroup, bool) {
		key := resultGroup{LoadOf(r), r.Stack, r.Label, r.MeasuredBy, r.Verified}
		if l := key.Load.AcrossQPs(); swept[l] {
			key.Load = l
		}
		return key, true
	}) {
		g := &Grouped{resultGroup: of.Key, Results: of.Samples}
		g.Dims, g.Fixed = Differing(g.Results)
		groups = append(groups, g)
	}
	return groups
}

// Title is the bold line of a group; the line after it says the conditions.
func (g resultGroup) Title() string {
	return fmt.Sprintf("%s [%s%s]: %s", g.stack, g.Label, view.When(g.Label == LabelMem, ", not a network"), g.What())
}

// Conditions are those of the load, the dimensions that all results share, and who measured and compared.
func (g *Grouped) Conditions() string {
	by := g.measuredBy
	if by == "both" {
		by = "both sides"
	}
	return view.Join(", ", g.Load.Conditions(), g.Fixed, view.When(!g.verified, "not ")+"verified",
		view.When(by != "", "measured by "+by))
}

// SweptLoads are the loads that were measured with several numbers of QPs, which then share one table.
func SweptLoads(results []Result) map[Load]bool {
	swept := map[Load]bool{}
	for _, g := range GroupBy(Pointers(results), func(r *Result) (Load, bool) { return LoadOf(r).AcrossQPs(), true }) {
		swept[g.Key] = len(Distinct(g.Samples, func(r *Result) int { return r.QPs })) > 1
	}
	return swept
}

// AcrossQPs is what the points of a sweep share; it may begin with fewer QPs than threads.
func (l Load) AcrossQPs() Load {
	l.QPs, l.threads, l.Sweep = 0, 0, true
	return l
}

// PerRow puts in front what differs from row to row: the dimensions, the offered rate and the QPs.
func (g *Grouped) PerRow(columns []view.Column) []view.Column {
	front := DimColumns(g.Dims)
	if g.arrivals != "" {
		front = append(front, view.Column{Name: "rate", Unit: "/s"})
	}
	if g.Sweep {
		front = append(front, view.Column{Name: g.Connections() + "s"})
	}
	return append(front, columns...)
}

// PerRowCells are the cells below the columns of PerRow.
func (g *Grouped) PerRowCells(r *Result, cells []view.Cell) []view.Cell {
	front := r.DimCells(g.Dims)
	if g.arrivals != "" {
		front = append(front, view.Cell{Text: view.RateText(r.Rate)})
	}
	if g.Sweep {
		front = append(front, view.Cell{Text: strconv.Itoa(r.QPs)})
	}
	return append(front, cells...)
}

// RowName tells the rows of a table apart, in a sentence.
func (g *Grouped) RowName(r *Result) string {
	return view.Join(", ", view.Plural(r.SizeBytes, "byte")+view.When(r.Rate > 0, " at "+view.RateText(r.Rate)+"/s"),
		view.Printable(r.dimWords(g.Dims))) + view.When(g.Sweep, " on "+view.Plural(int64(r.QPs), g.Connections()))
}

// MostThreads is what a sweep's conditions say of threads.
func (g *Grouped) MostThreads() string {
	most := slices.Max(view.Each(g.Results, func(r *Result) int { return r.Threads }))
	return view.When(g.Sweep && most > 1, ", at most "+view.Plural(int64(most), "thread"))
}

// Connections is what one of its QPs is called: calls have connections.
func (l Load) Connections() string {
	if l.Op == "call" {
		return "connection"
	}
	return "QP"
}

// BesideConditions are those of a table of stacks side by side.
func BesideConditions(l Load, rate float64, repeated bool) string {
	return view.Join(", ", l.Conditions(), view.When(rate > 0, view.RateText(rate)+" offered a second"),
		view.When(repeated, "median of repeats"))
}

// SideBlock is one table of stacks side by side.
type SideBlock struct {
	Title, Conditions string
	Lines             []string
	Table             *view.Table
}

// ParameterNumber reads one numeric option of a result, just made or read back, or zero.
func ParameterNumber(r *Result, name string) float64 {
	switch v := r.Parameters[name].(type) {
	case float64:
		return v
	case int:
		return float64(v)
	case int64:
		return float64(v)
	}
	return 0
}

// loopOf is the loop of a ping-pong: plain or provider, in older documents by the parameter volleys.
func loopOf(r *Result) string {
	if s, ok := r.Parameters["loop"].(string); ok {
		return s
	}
	switch r.Parameters["volleys"] {
	case true:
		return "provider"
	case false:
		return "plain"
	}
	return ""
}
