package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

type comparedRuns struct {
	Title, Summary string
	Unlike         []string  // why the runs cannot well be compared
	Clear          view.Grid // changes that are no chance
	Rest           view.Grid // all others
}

// newComparedRuns compares every document with the first, but those that have no point in common with it.
func newComparedRuns(set *reports.Set, docs []*reports.Document) []comparedRuns {
	var out []comparedRuns
	for i := 1; i < len(docs); i++ {
		c, err := reports.Compare(docs[0], docs[i], nil)
		if err != nil {
			continue
		}
		out = append(out, newComparison(c, view.Visible(set.DocName(0)), view.Visible(set.DocName(i))))
	}
	return out
}

func newComparison(c *reports.Comparison, before, after string) comparedRuns {
	v := comparedRuns{Title: after + " against " + before}
	v.Unlike = view.Each(c.Unlike, func(d reports.Difference) string { return view.Visible(d.String()) })
	head := view.HeadCells("point", "figure", before, after, "change", "test")
	v.Clear, v.Rest = view.Grid{Caption: "Changes that are no chance",
		Note: "Medians over repeats; Mann-Whitney test, p below 0.05.", Head: head},
		view.Grid{Caption: "Figures without a clear change",
			Note: strings.TrimSpace("Medians over repeats. " + c.Footnote()), Head: head}
	better, worse, untested := 0, 0, 0
	for _, p := range c.Points {
		for _, ch := range p.Changes {
			row := append([]view.GridCell{view.NameCell(p.Point)}, ChangeCells(&ch)...)
			if !ch.Significant {
				if ch.P == nil {
					untested++
				}
				v.Rest.Rows = append(v.Rest.Rows, row)
				continue
			}
			if (ch.New > ch.Old) == (ch.Better == reports.More) {
				better++
				row[4] = view.GridCell{Text: "✓ " + row[4].Text, Class: "n good"}
			} else {
				worse++
				row[4] = view.GridCell{Text: "✕ " + row[4].Text, Class: "n bad"}
			}
			v.Clear.Rows = append(v.Clear.Rows, row)
		}
	}
	all := better + worse + len(v.Rest.Rows)
	alone := len(c.OnlyOld) + len(c.OnlyNew)
	v.Summary = fmt.Sprintf("Of %s of %s, %d got better and %d worse beyond chance.", view.Plural(int64(all), "figure"),
		view.Plural(int64(len(c.Points)), "point"), better, worse) +
		view.When(untested > 0, fmt.Sprintf(" %d could not be tested for want of repeats.", untested)) +
		view.When(alone > 0, " "+view.Plural(int64(alone), "point")+" of one run only: the charts below have them.")
	return v
}

// ChangeCells are a change in a table, its test with a star where a footnote is due.
func ChangeCells(ch *reports.Change) []view.GridCell {
	texts := ch.Texts()
	if ch.Few() {
		texts[4] += "*"
	}
	return slices.Concat([]view.GridCell{view.TextCell(texts[0])}, view.NumberCells(texts[1:4]...),
		[]view.GridCell{view.TextCell(texts[4])})
}
