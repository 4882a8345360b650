package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Options adds to a page what the documents do not hold. The zero value is
// a page without file names and without conformance.
type Options struct {
	Names       []string     // of the documents, in their order; may be shorter
	Conformance []CaseResult // read with ReadConformance
}

// Page is a page about documents, as data.
type Page struct {
	Title, Subtitle string
	Verdict         verdict
	Sections        []view.Section
	Results         []resultTables
	Compared        []comparedRuns
	Conformance     *conformanceView
	Runs            []runView
}

// New makes the page of some documents; the same input gives the same page.
func New(docs []*reports.Document, o Options) *Page {
	set := reports.NewSet(docs, o.Names)
	p := &Page{Title: "rdmaperf report", Subtitle: subtitle(docs), Verdict: newVerdict(set, docs, o.Conformance), Sections: sectionsOf(set)}
	p.Results = append(publishedTables(docs), newResultTables(set)...)
	p.Compared = newComparedRuns(set, docs)
	p.Conformance = newConformanceView(o.Conformance)
	for i, d := range docs {
		p.Runs = append(p.Runs, newRunView(d, set.DocName(i)))
	}
	return p
}

// commonSections are those that any result may stand in.
var commonSections = []*reports.PageSection{{Rank: 100, Of: charts.PercentileSection}, {Rank: 110, Of: charts.SizeSection}, {Rank: 120, Of: charts.ThroughputSection}, {Rank: 130, Of: charts.RateSection}, {Rank: 140, Of: charts.SweepSection}, {Rank: 300, Of: charts.SeriesSection}}

// sectionsOf are the sections that have a chart, in order.
func sectionsOf(set *reports.Set) []view.Section {
	all := slices.Clone(commonSections)
	for _, s := range set.Samples {
		for _, own := range s.AnyKind().Sections {
			if !slices.Contains(all, own) {
				all = append(all, own)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *reports.PageSection) int { return cmp.Compare(a.Rank, b.Rank) })
	var out []view.Section
	for _, p := range all {
		if s := p.Of(set); len(s.Figures) > 0 {
			tellApart(s.Figures)
			out = append(out, s)
		}
	}
	return out
}

// tellApart adds to titles that several charts of a section share what of their captions
// differs, so that each can be named. A chart's own title, which a screen reader says and a
// saved file keeps, gets the same words.
func tellApart(figures []view.Figure) {
	for i := range figures {
		title := figures[i].Title
		var same []int
		for k := range figures {
			if k >= i && figures[k].Title == title {
				same = append(same, k)
			}
		}
		if len(same) < 2 {
			continue
		}
		count := map[string]int{}
		for _, k := range same {
			parts := strings.Split(figures[k].Caption, ", ")
			slices.Sort(parts)
			for _, part := range slices.Compact(parts) {
				count[part]++
			}
		}
		seen := map[string]bool{title: true}
		for n, k := range same {
			var own []string
			for _, part := range strings.Split(figures[k].Caption, ", ") {
				if count[part] < len(same) && !slices.Contains(own, part) {
					own = append(own, part)
				}
			}
			words := strings.Join(own, ", ")
			if words == "" || seen[title+", "+words] {
				words = strings.TrimPrefix(words+", chart "+view.Integer(int64(n+1)), ", ")
			}
			figures[k].Title += ", " + words
			seen[figures[k].Title] = true
			view.AddToTitle(figures[k].Chart, words)
		}
	}
}

// subtitle says when and where.
func subtitle(docs []*reports.Document) string {
	var parts []string
	for _, d := range docs {
		s := d.Started.UTC().Format("2 January 2006, 15:04 UTC")
		if h := d.Environment.Hostname; h != "" {
			s += " on " + view.Visible(h)
		}
		if !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	const show = 3
	if len(parts) > show {
		return fmt.Sprintf("%s, and %s more", parts[0], view.Plural(int64(len(parts)-1), "run"))
	}
	return strings.Join(parts, " · ")
}
