package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the verdict, the conformance and the figures of a page as
// GitHub's markdown, for the summary of a pipeline: what WriteHTML shows without
// its charts. The same input gives the same bytes.
func WriteMarkdown(w io.Writer, docs []*Document, o HTMLOptions) error {
	p := newPage(docs, o)
	var out bytes.Buffer
	fmt.Fprintf(&out, "### %s\n\n", markdownText(p.Verdict.Headline))
	if p.Subtitle != "" {
		fmt.Fprintf(&out, "%s\n\n", markdownText(p.Subtitle))
	}
	for _, m := range p.Verdict.Marks {
		fmt.Fprintf(&out, "- %s %s\n", m.Sign, markdownText(m.Text))
	}
	if c := p.Conformance; c != nil {
		markdownTable(&out, c.Summary)
		if len(c.Notable.Rows) > 0 {
			markdownTable(&out, c.Notable)
		}
		markdownTable(&out, c.Overview)
	}
	for _, t := range p.Tables {
		markdownTable(&out, t)
	}
	if _, err := w.Write(bytes.Map(pageRune, out.Bytes())); err != nil {
		return fmt.Errorf("write markdown: %w", err)
	}
	return nil
}

// markdownTable writes a table with its caption above: markdown has none.
func markdownTable(out *bytes.Buffer, t htmlTable) {
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
			if c.Mark {
				text += `\*`
			}
			if strings.HasSuffix(c.Class, "bad") {
				text = "**" + text + "**"
			}
			out.WriteString("| " + text + " ")
		}
		out.WriteString("|\n")
	}
}

// markdownSigns are those that GitHub's markdown gives a meaning inside a line,
// with the one that would call a person.
const markdownSigns = "\\`*_<>[]|~#@&$"

// markdownText makes a line of text that reads as it is.
func markdownText(s string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(visible(s)), " ") {
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

// WriteMarkdown prints the comparison as one table, with what differs and which
// thresholds were missed.
func (c *Comparison) WriteMarkdown(w io.Writer) error {
	var out bytes.Buffer
	for _, r := range []struct {
		which string
		run   *ComparedRun
	}{{"old", &c.Old}, {"new", &c.New}} {
		fmt.Fprintf(&out, "- %s\n", markdownText(comparedRunLine(r.which, r.run)))
	}
	for _, d := range c.Unlike {
		fmt.Fprintf(&out, "- **not alike**: %s\n", markdownText(d.String()))
	}
	for _, m := range c.Missed {
		fmt.Fprintf(&out, "- **missed**: %s\n", markdownText(m))
	}
	t := htmlTable{Caption: "Medians over repeats", Head: headCells("point", "figure", "old", "new", "change", "test")}
	for _, p := range c.Points {
		name := p.Point
		for _, ch := range p.Changes {
			change := numberCell(formatPercent(ch.Percent))
			if ch.Significant {
				change.Class = "n bad" // the look of what must not be overlooked, better or worse
			}
			t.Rows = append(t.Rows, []htmlCell{textCell(name), textCell(ch.Figure), numberCell(formatQuantity(ch.quantity, ch.Old)),
				numberCell(formatQuantity(ch.quantity, ch.New)), change, textCell(ch.verdict())})
			name = ""
		}
	}
	markdownTable(&out, t)
	for _, l := range c.onlyLines() {
		fmt.Fprintf(&out, "\n%s\n", markdownText(l))
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}
