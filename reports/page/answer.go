package page

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// head is the top of the page: what was measured, what it shows, and what a reader must know of it.
type head struct {
	Headline string
	Answers  []answerView
	Marks    []mark
}

type answerView struct {
	Name     string // of the document, where there are several
	Matrix   view.Grid
	Topics   []topicView
	Counts   string
	Reliance []string
}

type topicView struct {
	Topic string
	Cards []card
}

type card struct {
	Figure, Text string
	Slot         int
}

func newAnswers(set *reports.Set, docs []*reports.Document) (all []answerView) {
	for i, d := range docs {
		if d.Answer == nil || len(d.Answer.Rows) == 0 {
			continue
		}
		v := answerView{Matrix: matrix(d.Answer), Counts: sentence(d.Answer.CountsNote())}
		if len(docs) > 1 {
			v.Name = view.Visible(set.DocName(i))
		}
		for _, t := range d.Answer.Topics() {
			v.Topics = append(v.Topics, topicView{view.Visible(t.Key), view.Each(t.Samples,
				func(c reports.Conclusion) card { return newCard(set, d.Answer, &c) })})
		}
		v.Reliance = view.Each(d.Answer.Reliance, func(s string) string { return sentence(view.Visible(s)) })
		all = append(all, v)
	}
	return all
}

// quote is the ratio in a sentence, as it is said there.
var quote = regexp.MustCompile(`(at least |no more than )?\b\d[\d.]*x( sooner| the \S+)?`)

func newCard(set *reports.Set, a *reports.Answer, c *reports.Conclusion) card {
	v := card{Figure: quote.FindString(c.Text), Text: sentence(view.Visible(c.Text))}
	if v.Figure == "" {
		v.Figure = view.Digits3(c.Factor) + "x"
	}
	row := slices.IndexFunc(a.Rows, func(r reports.AnswerRow) bool { return r.Name() == c.Stack })
	if row < 0 {
		return v
	}
	if i := slices.IndexFunc(set.Samples, func(s *reports.Measured) bool {
		return view.Visible(reports.TransportOf(s.Result)) == a.Rows[row].Stack
	}); i >= 0 {
		v.Slot = set.Samples[i].Slot % view.Slots
	}
	return v
}

func sentence(s string) string { return s + view.When(s != "" && !strings.HasSuffix(s, "."), ".") }

// mostColumns is how many fit the page without being joined.
const mostColumns = 4

func matrix(a *reports.Answer) view.Grid {
	note := a.IntervalsNote()
	if len(a.Columns) > mostColumns {
		a = a.Joined()
	}
	t := view.Grid{Caption: note, Head: view.HeadCells("stack")}
	for i := range a.Rows {
		t.Add([]view.GridCell{view.NameCell(a.Rows[i].Name())})
	}
	for k, c := range a.Columns {
		unit, texts := a.ColumnTexts(k, 3, view.Units{})
		name := view.Visible(strings.Trim(c.Point+", "+c.Title, ", "))
		if unit == "us" {
			unit = "µs" // as in the charts
		}
		t.Head = append(t.Head, view.GridCell{Text: name + view.When(unit != "", " ["+unit+"]")})
		for i, text := range texts {
			t.Rows[i] = append(t.Rows[i], view.NumberCell(text.String()))
		}
	}
	return t
}
