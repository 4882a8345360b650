package reports

import (
	"cmp"
	"fmt"
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

// What names the work, conditions everything that shapes the figure.
func (l Load) What() string {
	what := strings.TrimSpace(l.Workload + " " + l.Op)
	if l.run != "" {
		what += ", run " + l.run
	}
	return what
}

// Conditions are everything that shapes the figure but the stack.
func (l Load) Conditions() string {
	parts := []string{"depth " + strconv.Itoa(l.Depth)}
	if !l.Sweep {
		parts = append(parts, view.Plural(int64(l.QPs), l.Connections()))
	}
	if l.threads > 1 {
		parts = append(parts, view.Plural(int64(l.threads), "thread"))
	}
	if l.impairment != "" {
		parts = append(parts, l.impairment)
	}
	if l.appWork > 0 {
		parts = append(parts, time.Duration(l.appWork).String()+" of application work a message")
	}
	if l.neighbours > 0 {
		parts = append(parts, "with "+view.Plural(int64(l.neighbours), "busy neighbour"))
	}
	if parts = append(parts, l.Manner()...); l.note != "" {
		parts = append(parts, l.note)
	}
	return strings.Join(parts, ", ")
}

// Title names the work on a page.
func (l Load) Title() string {
	what := strings.TrimSpace(cmp.Or(l.title, l.Workload) + " " + l.Op)
	if l.run != "" {
		what += ", run " + l.run
	}
	return view.Capital(what)
}

// Called is the workload in a sentence.
func (l Load) Called() string { return cmp.Or(l.title, view.Capital(l.Workload)) }

// Manner is how completions are waited for, when operations begin, and what a
// sample covers.
func (l Load) Manner() []string {
	var parts []string
	if l.Polling != "" {
		parts = append(parts, l.Polling+" polling")
	}
	if l.arrivals != "" {
		parts = append(parts, "open loop with "+l.arrivals+" arrivals")
	}
	if l.loop != "" {
		parts = append(parts, l.loop+" loop")
	}
	if l.RoundTrip != "" {
		parts = append(parts, l.RoundTrip+" round trip")
	}
	return parts
}

// resultGroup is one table and the line before it.
type resultGroup struct {
	Load
	stack, Label, measuredBy string
	verified                 bool
}

// Grouped is the results of one table. Dims are the dimensions that differ between them, Fixed is what all share, in
// words.
type Grouped struct {
	resultGroup
	Results []*Result
	Dims    []DimDef
	Fixed   string
}

// GroupResults keeps the order in which groups and results appear. The numbers of
// QPs of a swept load stand together.
func GroupResults(results []Result, swept map[Load]bool) []*Grouped {
	var groups []*Grouped
	index := map[resultGroup]*Grouped{}
	for i := range results {
		r := &results[i]
		key := resultGroup{LoadOf(r), r.Stack, r.Label, r.MeasuredBy, r.Verified}
		if l := key.Load.AcrossQPs(); swept[l] {
			key.Load = l
		}
		g := index[key]
		if g == nil {
			g = &Grouped{resultGroup: key}
			index[key] = g
			groups = append(groups, g)
		}
		g.Results = append(g.Results, r)
	}
	for _, g := range groups {
		g.Dims, g.Fixed = Differing(g.Results)
	}
	return groups
}

// Title is the bold line of a group; the line after it says the conditions.
func (g resultGroup) Title() string {
	label := g.Label
	if label == LabelMem {
		label += ", not a network"
	}
	return fmt.Sprintf("%s [%s]: %s", g.stack, label, g.What())
}

// Conditions are those of the load, the dimensions that all results share, and who measured and compared.
func (g *Grouped) Conditions() string {
	s := g.Load.Conditions()
	if g.Fixed != "" {
		s += ", " + g.Fixed
	}
	if g.verified {
		s += ", verified"
	} else {
		s += ", not verified"
	}
	switch g.measuredBy {
	case "":
	case "both":
		s += ", measured by both sides"
	default:
		s += ", measured by " + g.measuredBy
	}
	return s
}

// A sweep over the number of QPs stands in one table with the number in front, so
// that it reads as a curve from top to bottom.

// SweptLoads are the loads of a document that were measured with several numbers
// of QPs, by what they share.
func SweptLoads(results []Result) map[Load]bool {
	first := map[Load]int{}
	swept := map[Load]bool{}
	for i := range results {
		l, qps := LoadOf(&results[i]).AcrossQPs(), results[i].QPs
		if n, seen := first[l]; !seen {
			first[l] = qps
		} else if n != qps {
			swept[l] = true
		}
	}
	return swept
}

// AcrossQPs is what the points of a sweep share. Threads are part of the sweep: it
// may begin with fewer QPs than threads.
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
	name := view.Plural(r.SizeBytes, "byte")
	if r.Rate > 0 {
		name += " at " + view.RateText(r.Rate) + "/s"
	}
	if words := r.dimWords(g.Dims); words != "" {
		name += ", " + view.Printable(words)
	}
	if g.Sweep {
		name += " on " + view.Plural(int64(r.QPs), g.Connections())
	}
	return name
}

// MostThreads is what a sweep's conditions say of threads, which its first rows may
// have fewer of.
func (g *Grouped) MostThreads() string {
	most := 1
	for _, r := range g.Results {
		most = max(most, r.Threads)
	}
	if !g.Sweep || most == 1 {
		return ""
	}
	return ", at most " + view.Plural(int64(most), "thread")
}

// Connections is what one of its QPs is called: calls have connections.
func (l Load) Connections() string {
	if l.Op == "call" {
		return "connection"
	}
	return "QP"
}

// Loop says whether operations wait for each other.
func (l Load) Loop() string {
	if l.arrivals != "" {
		return "open loop with " + l.arrivals + " arrivals"
	}
	return "closed loop"
}

// BesideConditions are those of a table of stacks side by side.
func BesideConditions(l Load, rate float64, repeated bool) string {
	conditions := l.Conditions()
	if rate > 0 {
		conditions += ", " + view.RateText(rate) + " offered a second"
	}
	if repeated {
		conditions += ", median of repeats"
	}
	return conditions
}
