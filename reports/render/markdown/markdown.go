// Package markdown writes a page and a comparison as GitHub's markdown: everything but the charts.
package markdown

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render/html"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Write writes what a page shows as GitHub's markdown, without charts: what was found, and the figures folded below it.
func Write(w io.Writer, docs []*reports.Document, o page.Options) error {
	p := page.New(docs, o)
	var out bytes.Buffer
	fmt.Fprintf(&out, "### %s\n\n", markdownText(p.Head.Headline))
	if p.Subtitle != "" {
		fmt.Fprintf(&out, "%s\n", markdownText(p.Subtitle))
	}
	list := func(lines []string) {
		for _, l := range lines {
			fmt.Fprintf(&out, "- %s\n", markdownText(l))
		}
	}
	for _, a := range p.Head.Answers {
		if a.Name != "" {
			fmt.Fprintf(&out, "\n#### %s\n", markdownText(a.Name))
		}
		markdownTable(&out, a.Matrix)
		for _, t := range a.Topics {
			fmt.Fprintf(&out, "\n**%s**\n\n", markdownText(t.Topic))
			for _, c := range t.Cards {
				list([]string{c.Text})
			}
		}
		if a.Counts != "" {
			fmt.Fprintf(&out, "\n%s\n", markdownText(a.Counts))
		}
		if len(a.Reliance) > 0 {
			fmt.Fprintf(&out, "\n**What you can rely on**\n\n")
			list(a.Reliance)
		}
	}
	out.WriteString("\n")
	for _, m := range p.Head.Marks {
		fmt.Fprintf(&out, "- %s %s\n", m.Sign, markdownText(m.Text))
	}
	if c := p.Conformance; c != nil {
		markdownTable(&out, c.Summary)
		if len(c.Notable.Rows) > 0 {
			markdownTable(&out, c.Notable)
		}
		markdownTable(&out, c.Overview)
	}
	for _, c := range p.Compared {
		fmt.Fprintf(&out, "\n#### %s\n\n%s\n", markdownText(c.Title), markdownText(c.Summary))
		for _, u := range c.Unlike {
			fmt.Fprintf(&out, "- **not alike**: %s\n", markdownText(u))
		}
		if len(c.Clear.Rows) > 0 {
			markdownTable(&out, c.Clear)
		}
	}
	if len(p.Results) > 0 {
		out.WriteString("\n<details><summary>Figures</summary>\n")
		for _, r := range p.Results {
			for _, t := range r.Main {
				t.Caption, t.Note = r.Title+": "+t.Caption, r.Note
				markdownTable(&out, t)
			}
		}
		out.WriteString("\n</details>\n")
	}
	return reports.WriteAll(w, "markdown", bytes.Map(html.PageRune, out.Bytes()))
}

func markdownTable(out *bytes.Buffer, t view.Grid) {
	fmt.Fprintf(out, "\n**%s**", markdownText(t.Caption))
	if t.Note != "" {
		fmt.Fprintf(out, " %s", markdownText(t.Note))
	}
	out.WriteString("\n\n")
	var head, rule strings.Builder
	for _, c := range t.Columns() {
		head.WriteString("| " + markdownText(c.Text) + " ")
		if strings.HasPrefix(c.Class, "n") {
			rule.WriteString("|---:")
		} else {
			rule.WriteString("|---")
		}
	}
	fmt.Fprintf(out, "%s|\n%s|\n", head.String(), rule.String())
	for _, row := range t.Rows {
		for _, c := range row {
			text := markdownText(c.Text)
			if strings.HasSuffix(c.Class, "bad") {
				text = "**" + text + "**"
			}
			out.WriteString("| " + text + " ")
		}
		out.WriteString("|\n")
	}
}

// markdownSigns have a meaning inside a line of GitHub's markdown.
const markdownSigns = "\\`*_<>[]|~#@&$"

func markdownText(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(view.Visible(s)), " ") {
		switch {
		case r == '@':
			b.WriteString("@\u200b") // no backslash takes the mention away
			continue
		case strings.ContainsRune(markdownSigns, r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// WriteComparison prints a comparison as one table, with what differs and which thresholds were missed.
func WriteComparison(w io.Writer, c *reports.Comparison) error {
	var out bytes.Buffer
	for _, l := range text.ComparedRunLines(c) {
		fmt.Fprintf(&out, "- %s\n", markdownText(l))
	}
	for _, d := range c.Unlike {
		fmt.Fprintf(&out, "- **not alike**: %s\n", markdownText(d.String()))
	}
	for _, m := range c.Missed {
		fmt.Fprintf(&out, "- **failed**%s\n", markdownText(strings.TrimPrefix(m, "failed")))
	}
	t := view.Grid{Caption: "Medians over repeats", Head: view.HeadCells("point", "figure", "old", "new", "change",
		"test")}
	for _, p := range c.Points {
		name := p.Point
		for _, ch := range p.Changes {
			row := page.ChangeCells(&ch)
			if ch.Significant {
				row[3].Class = "n bad" // the look of what must not be overlooked, better or worse
			}
			t.Add([]view.GridCell{view.TextCell(name)}, row)
			name = ""
		}
	}
	markdownTable(&out, t)
	if note := c.Footnote(); note != "" {
		fmt.Fprintf(&out, "\n%s\n", markdownText(note))
	}
	for _, l := range c.OnlyLines() {
		fmt.Fprintf(&out, "\n%s\n", markdownText(l))
	}
	return reports.WriteAll(w, "comparison", out.Bytes())
}
