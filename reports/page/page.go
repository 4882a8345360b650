// Package page is what a page about result documents says, as data. Renderers draw it.
package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Options adds to a page what the documents do not hold.
type Options struct {
	Names       []string     // of the documents, in their order; may be shorter
	Conformance []CaseResult // read with ReadConformance

	// Own are the sections of a workload whose charts of its figures do not show its point, by its name.
	Own map[string][]OwnSection
}

// OwnSection is a group of charts that a workload makes by itself.
type OwnSection func(set *reports.Set) view.Section

// Page is a page about documents, as data.
type Page struct {
	Title, Subtitle string
	Head            head
	Sections        []view.Section
	Results         []resultTables
	Compared        []comparedRuns
	Conformance     *conformanceView
	Runs            []runView
}

// New makes the page of some documents; the same input gives the same page.
func New(docs []*reports.Document, o Options) *Page {
	set := reports.NewSet(docs, o.Names)
	p := &Page{Title: "rdmaperf report", Subtitle: subtitle(docs), Sections: sectionsOf(set, o.Own),
		Head: head{headline(set, o.Conformance), newAnswers(set, docs), newMarks(set, docs, o.Conformance)}}
	p.Results = append(publishedTables(docs), newResultTables(set)...)
	p.Compared = newComparedRuns(set, docs)
	p.Conformance = newConformanceView(o.Conformance)
	for i, d := range docs {
		p.Runs = append(p.Runs, newRunView(d, set.DocName(i)))
	}
	return p
}

func sectionsOf(set *reports.Set, own map[string][]OwnSection) (out []view.Section) {
	add := func(s view.Section) {
		if len(s.Figures) > 0 {
			tellApart(s.Figures)
			for i := range s.Figures {
				legible(&s.Figures[i])
				s.Figures[i].Shows = shows(s.Figures[i].Chart)
			}
			out = append(out, s)
		}
	}
	for _, workload := range view.Unique(set.Samples, func(x *reports.Measured) string { return x.Workload }) {
		for _, of := range own[workload] {
			add(of(set))
		}
		if own[workload] == nil {
			add(charts.FigureSection(set, workload))
		}
	}
	rest := *set
	rest.Samples = slices.DeleteFunc(slices.Clone(set.Samples), func(x *reports.Measured) bool {
		_, ofPair := x.Dim("from") // a chart for each pair of hosts would show nothing
		return ofPair
	})
	for _, of := range []OwnSection{charts.PercentileSection, charts.SizeSection, charts.ThroughputSection,
		charts.RateSection, charts.SweepSection, charts.SeriesSection} {
		add(of(&rest))
	}
	return out
}

// tellApart adds to titles that charts of a section share what of their captions differs, also to the charts' own.
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
			for _, part := range partsOf(figures[k]) {
				count[part]++
			}
		}
		seen := map[string]bool{title: true}
		for n, k := range same {
			own := view.Only(partsOf(figures[k]), func(part string) bool { return count[part] < len(same) })
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

func partsOf(f view.Figure) []string {
	return view.Unique(strings.Split(f.Caption, ", "), func(part string) string { return part })
}

func subtitle(docs []*reports.Document) string {
	parts := view.Unique(docs, func(d *reports.Document) string {
		host := d.Environment.Hostname
		return d.Started.UTC().Format("2 January 2006, 15:04 UTC") + view.When(host != "", " on "+view.Visible(host))
	})
	const show = 3
	if len(parts) > show {
		return fmt.Sprintf("%s, and %s more", parts[0], view.Plural(int64(len(parts)-1), "run"))
	}
	return strings.Join(parts, " · ")
}
