package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the comparison, indented and with a final newline.
func (c *Comparison) WriteJSON(w io.Writer) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // thresholds hold > and <, and people read this too
	enc.SetIndent("", "  ")
	err := enc.Encode(c)
	if err == nil {
		_, err = w.Write(out.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// compareWidth keeps the table's lines whole: scripts read them.
const compareWidth = 1 << 16

// WriteText prints the comparison as a table, one line per figure.
func (c *Comparison) WriteText(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintln(&out, comparedRunLine("old", &c.Old))
	fmt.Fprintln(&out, comparedRunLine("new", &c.New))
	for _, d := range c.Unlike {
		fmt.Fprintf(&out, "not alike: %s\n", d)
	}
	t := table{columns: []column{{name: "point", left: true}, {name: "figure", left: true}, {name: "old"}, {name: "new"}, {name: "change"}, {name: "test", left: true}}}
	for _, p := range c.Points {
		name := p.Point
		for _, ch := range p.Changes {
			t.add(cell{text: name}, cell{text: ch.Figure}, cell{text: formatQuantity(ch.quantity, ch.Old)}, cell{text: formatQuantity(ch.quantity, ch.New)},
				cell{text: formatPercent(ch.Percent)}, cell{text: ch.verdict()})
			name = ""
		}
	}
	out.WriteByte('\n')
	for _, l := range t.layout(compareWidth) {
		out.WriteString(l + "\n")
	}
	for i, l := range c.onlyLines() {
		if i == 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintln(&out, l)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// comparedRunLine names a run in one line.
func comparedRunLine(which string, r *ComparedRun) string {
	s := fmt.Sprintf("%s: rdmaperf %s, %s, %s", which, printable(r.Version), printable(r.Go), r.Started.UTC().Format("2006-01-02T15:04:05Z"))
	if r.Hostname != "" {
		s += ", on " + printable(r.Hostname)
	}
	if r.Error != "" {
		s += ", ended early: " + printable(r.Error)
	}
	return s
}

// onlyLines lists the points that have no partner.
func (c *Comparison) onlyLines() []string {
	var lines []string
	for _, name := range c.OnlyOld {
		lines = append(lines, "only in the old run: "+name)
	}
	for _, name := range c.OnlyNew {
		lines = append(lines, "only in the new run: "+name)
	}
	return lines
}

// verdict says in words what the test means.
func (c *Change) verdict() string {
	switch {
	case c.P == nil:
		return c.Test
	case c.Significant:
		return "significant, " + c.Test
	}
	return "could be chance, " + c.Test
}
