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

// OnlyLines lists the points that have no partner.
func (c *Comparison) OnlyLines() []string {
	var lines []string
	for _, name := range c.OnlyOld {
		lines = append(lines, "only in the old run: "+name)
	}
	for _, name := range c.OnlyNew {
		lines = append(lines, "only in the new run: "+name)
	}
	return lines
}

// Verdict says in words what the test means.
func (c *Change) Verdict() string {
	switch {
	case c.P == nil:
		return c.Test
	case c.Significant:
		return "significant, " + c.Test
	}
	return "could be chance, " + c.Test
}
