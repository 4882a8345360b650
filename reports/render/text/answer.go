package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// A screen has so many lines for a run of at most seven stacks and four columns, and for a larger one.
const (
	screenLines = 40
	largeLines  = 60
	screenRows  = 7
	screenPoint = 4
)

// leastSentences are shown however long the matrix is.
const leastSentences = 3

// answer prints what a document shows: machine, matrix, sentences, what limits them, and warnings.
func (p *printer) answer(d *reports.Document) {
	a := d.Answer
	p.oneLine(machine(d))
	p.line("")
	p.line(p.matrix(a)...)
	p.wrapped(a.IntervalsNote() + ".")
	// Of figures of their own the matrix has but the first.
	if len(d.Results) > 0 && !slices.ContainsFunc(d.Results, func(r reports.Result) bool { return len(r.Figures) == 0 }) &&
		!p.sideBySide(d.Results) {
		p.groups(d.Results)
	}
	tail := p.apart(func() {
		p.reliance(a.Reliance)
		p.end(d)
	})
	most := largeLines
	if len(a.Rows) <= screenRows && len(a.Narrow().Columns) <= screenPoint {
		most = screenLines
	}
	shown := *a
	for {
		told := p.apart(func() { p.sentences(&shown) })
		n := len(shown.Conclusions)
		if n <= leastSentences || strings.Count(p.out.String()+told+tail, "\n") <= most {
			p.out.WriteString(told + tail)
			return
		}
		last := lastOfLargest(&shown)
		shown.Conclusions = slices.Delete(slices.Clone(shown.Conclusions), last, last+1)
		shown.Omitted++
	}
}

func (p *printer) figures(d *reports.Document) {
	p.oneLine(machine(d))
	if len(d.Answer.Rows) > 0 && d.Answer.Rounds() > 1 {
		p.line("")
		p.line(p.matrix(d.Answer)...)
		p.wrapped(d.Answer.IntervalsNote() + ".")
	}
	p.groups(d.Results)
	p.sideBySide(d.Results)
	p.footnotes()
	p.reliance(d.Answer.Reliance)
	p.end(d)
}

func (p *printer) groups(results []reports.Result) {
	for _, g := range reports.GroupResults(results, reports.SweptLoads(results)) {
		p.groupTables(g)
	}
}

// end prints what a run was asked for beside its figures, its warnings, and where the rest is.
func (p *printer) end(d *reports.Document) {
	p.rawSamples(d.Results)
	p.impaired(d.Results)
	p.published(d.Published, d.Results)
	p.warnings(d)
	p.wrapped("Every figure and condition: --details")
}

func (p *printer) apart(print func()) string {
	before := p.out.Len()
	print()
	s := p.out.String()[before:]
	p.out.Truncate(before)
	return s
}

func lastOfLargest(a *reports.Answer) (last int) {
	largest := slices.MaxFunc(a.Topics(), func(a, b *reports.GroupOf[string, reports.Conclusion]) int {
		return len(a.Samples) - len(b.Samples)
	})
	for i, c := range a.Conclusions {
		if c.Topic == largest.Key {
			last = i
		}
	}
	return last
}

func (p *printer) oneLine(s string) {
	p.line(cut(view.Printable(s), p.Width))
}

func cut(s string, width int) string {
	r := []rune(s)
	if len(r) > width {
		r = append(r[:width-1], '…')
	}
	return string(r)
}

const mostCPU = 24

// machine is where a document is from, and how it was measured.
func machine(d *reports.Document) string {
	e := &d.Environment
	server := ""
	if s := d.ServerEnvironment; s != nil {
		server = "server " + s.Hostname
	}
	results := reports.Pointers(d.Results)
	stacks := view.Unique(results, reports.TransportOf)
	polling := view.Join(" and ", view.Unique(results, func(r *reports.Result) string { return r.Polling })...)
	return view.Join(", ", fmt.Sprintf("%d x %s", e.CPUs, cut(e.CPU, mostCPU)), view.When(e.Hypervisor, "virtual"),
		server, view.Plural(int64(len(stacks)), "stack"), view.Plural(int64(d.Answer.Rounds()), "round"),
		view.When(polling != "", polling+" polling"))
}

func (p *printer) sentences(a *reports.Answer) {
	p.line("")
	for _, t := range a.Topics() {
		p.styled(bold, t.Key)
		for _, c := range t.Samples {
			p.wrapped("- " + c.Text + ".")
		}
	}
	if s := a.CountsNote(); s != "" {
		p.wrapped(s + ".")
	}
}

// relianceLines are the most that what limits the figures takes: four sentences, of which two are long.
const relianceLines = 4

// reliance prints as many of the sentences as fit.
func (p *printer) reliance(sentences []string) {
	var lines []string
	for _, s := range sentences {
		l := view.Wrap("- "+view.Printable(s)+".", p.Width, "  ")
		if len(lines)+len(l) <= relianceLines {
			lines = append(lines, l...)
		}
	}
	if len(lines) == 0 {
		return
	}
	p.heading("What you can rely on")
	p.line(lines...)
}

// mostWarnings bounds them beside an early end, which is always said.
const mostWarnings = 3

func (p *printer) warnings(d *reports.Document) {
	lines := reports.Warnings(d)
	for _, l := range lines[:min(len(lines), mostWarnings)] {
		p.oneLine("! " + l)
	}
	p.earlyEnd(d.Error)
}

// matrix is the figures of the rows by column, or by row where there are many of few stacks, in blocks that fit.
func (p *printer) matrix(a *reports.Answer) []string {
	u := view.Units{Gbits: p.Gbits}
	if len(a.Columns) > screenPoint {
		a = a.Narrow()
	}
	ways := []func(*reports.Answer, int, view.Units) *grid{byColumn, byRow}
	if len(a.Columns) > screenPoint && len(a.Columns) > len(a.Rows) {
		slices.Reverse(ways)
	}
	for _, way := range ways {
		for _, try := range []struct{ digits, gap int }{{3, 2}, {2, 2}, {2, 1}} {
			g := way(a, try.digits, u)
			if g.gap = try.gap; g.least() <= p.Width {
				return g.lines(p.Width)
			}
		}
	}
	g := byColumn(a, 2, u)
	g.gap, g.above = 2, g.nameWidth() > p.Width/3
	return g.blocks(p.Width)
}

type grid struct {
	names []string     // of the rows
	heads []gridColumn // with a cell for each row
	gap   int          // spaces between columns
	above bool         // a name has a line of its own
}

type gridColumn struct {
	head  []string // lines before they are wrapped
	cells []reports.AnswerText
}

func byColumn(a *reports.Answer, digits int, u view.Units) *grid {
	g := &grid{}
	for _, r := range a.Rows {
		g.names = append(g.names, view.Printable(r.Name()))
	}
	for i, c := range a.Columns {
		unit, texts := a.ColumnTexts(i, digits, u)
		g.heads = append(g.heads, gridColumn{[]string{c.Title, c.Point, bracketed(unit)}, texts})
	}
	return g
}

func byRow(a *reports.Answer, digits int, u view.Units) *grid {
	g := &grid{heads: make([]gridColumn, len(a.Rows))}
	for i := range a.Rows {
		g.heads[i].head = []string{view.Printable(a.Rows[i].Name())}
	}
	for i, c := range a.Columns {
		unit, texts := a.ColumnTexts(i, digits, u)
		g.names = append(g.names, strings.TrimSpace(c.Point+", "+c.Title+" "+bracketed(unit)))
		for k, t := range texts {
			g.heads[k].cells = append(g.heads[k].cells, t)
		}
	}
	return g
}

func bracketed(unit string) string { return view.When(unit != "", "["+unit+"]") }

func (c gridColumn) widths() (value, within int) {
	for _, t := range c.cells {
		value = max(value, utf8.RuneCountInString(t.Value))
		if t.Within != "" {
			within = max(within, utf8.RuneCountInString(t.Within)+3)
		}
	}
	return value, within
}

// width is the least of a column: that of its cells, or of the longest word above them.
func (c gridColumn) width() int {
	value, within := c.widths()
	w := value + within
	for _, h := range c.head {
		for _, word := range strings.Fields(h) {
			for _, part := range view.Folded(word, 1) {
				w = max(w, utf8.RuneCountInString(part))
			}
		}
	}
	return w
}

func (g *grid) nameWidth() int {
	if g.above {
		return 0
	}
	return slices.Max(append(view.Each(g.names, utf8.RuneCountInString), 0))
}

func (g *grid) least() int {
	w := g.nameWidth()
	for _, c := range g.heads {
		w += g.gap + c.width()
	}
	return w
}

func (c gridColumn) headLines(width int) (lines []string) {
	for _, h := range c.head {
		if h != "" {
			lines = append(lines, view.Wrap(view.Printable(h), width, "")...)
		}
	}
	return lines
}

// lines draw the table; what is left of the width goes to the columns with the longest heads.
func (g *grid) lines(width int) []string {
	widths := view.Each(g.heads, gridColumn.width)
	most := 0
	for left := width - g.least(); ; left-- {
		longest := 0
		for i := range g.heads {
			if len(g.heads[i].headLines(widths[i])) > len(g.heads[longest].headLines(widths[longest])) {
				longest = i
			}
		}
		most = len(g.heads[longest].headLines(widths[longest]))
		if left <= 0 || most == len(g.heads[longest].headLines(width)) {
			break
		}
		widths[longest]++
	}
	heads := make([][]string, len(g.heads))
	for i := range heads {
		heads[i] = g.heads[i].headLines(widths[i])
	}
	name, gap := g.nameWidth(), strings.Repeat(" ", g.gap)
	var lines []string
	for k := range most {
		line := strings.Repeat(" ", name)
		for i, h := range heads {
			text := ""
			if at := k - most + len(h); at >= 0 { // the last lines stand above the figures
				text = h[at]
			}
			line += gap + padded(text, widths[i])
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	for k, n := range g.names {
		line := padded(n, name)
		if g.above {
			lines, line = append(lines, view.Folded(n, width)...), ""
		}
		for i := range g.heads {
			t := g.heads[i].cells[k]
			value, _ := g.heads[i].widths()
			text := strings.Repeat(" ", value-utf8.RuneCountInString(t.Value)) + t.String()
			line += gap + padded(text, widths[i])
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// blocks are tables below each other, each with as many columns as fit.
func (g *grid) blocks(width int) (lines []string) {
	part := *g
	for at := 0; at < len(g.heads); {
		n := 1
		for n < len(g.heads)-at {
			if part.heads = g.heads[at : at+n+1]; part.least() > width {
				break
			}
			n++
		}
		part.heads = g.heads[at : at+n]
		if at > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, part.lines(width)...)
		at += n
	}
	return lines
}

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}
