package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
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

// OnlyLines lists the points that have no partner.
func (c *Comparison) OnlyLines() []string {
	var lines []string
	for _, name := range c.Interrupted {
		lines = append(lines, "interrupted, and not compared: "+name)
	}
	for _, name := range c.OnlyOld {
		lines = append(lines, "only in the old run: "+name)
	}
	for _, name := range c.OnlyNew {
		lines = append(lines, "only in the new run: "+name)
	}
	return lines
}

// Verdict says in words what the test means. What the test says beside its result is
// left to the document; Few has the part of it that a reader must know.
func (c *Change) Verdict() string {
	test, _, _ := strings.Cut(c.Test, ", ")
	switch {
	case c.P == nil && c.Significant:
		return "significant, " + c.Test
	case c.P == nil:
		return c.Test
	case c.Significant:
		return "significant, " + test
	}
	return "could be chance, " + test
}

// Few tells a change that no test could have told from chance.
func (c *Change) Few() bool { return c.P != nil && min(c.OldN, c.NewN) < testableRepeats }

// Footnote is due where a change of Few is marked with *, else "".
func (c *Comparison) Footnote() string {
	for _, p := range c.Points {
		for i := range p.Changes {
			if p.Changes[i].Few() {
				return fmt.Sprintf("* no test tells a change between fewer than %d repeats a side from chance",
					testableRepeats)
			}
		}
	}
	return ""
}
