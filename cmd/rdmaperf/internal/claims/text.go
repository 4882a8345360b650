package claims

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

const columns = 80

// WriteText prints a paragraph for each claim, and its figures below it, in 80 columns.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	block(&b, "", r.Title)
	block(&b, "", r.Machine())
	for _, c := range r.Claims {
		b.WriteByte('\n')
		block(&b, fmt.Sprintf("%-4s ", c.ID), string(c.Verdict)+": "+c.Says)
		if why := c.Reason(); why != "" {
			block(&b, "     ", why)
		}
		for _, p := range c.Published {
			block(&b, "     ", "published: "+p)
		}
		for _, f := range c.Findings {
			block(&b, "     ", f.mark()+f.Line())
		}
		for _, t := range c.Tables {
			b.WriteString(t.text("     "))
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.Summary())
	_, err := io.WriteString(w, b.String())
	return err
}

// Reason is why the claim is not shown, where no finding says it.
func (c Outcome) Reason() string {
	if slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Why == c.Why }) {
		return ""
	}
	return c.Why
}

func (f Finding) mark() string {
	switch f.Verdict {
	case NotShown:
		return "! "
	case Undecided, Cannot:
		return "? "
	}
	return "- "
}

// Line is the finding with its reason.
func (f Finding) Line() string {
	if f.Why == "" {
		return f.Text
	}
	return f.Text + " [" + string(f.Verdict) + ": " + f.Why + "]"
}

// Machine says where and how it was measured.
func (r *Report) Machine() string {
	e := &r.Environment
	s := fmt.Sprintf("%d x %s, kernel %s, %s", e.CPUs, e.CPU, e.Kernel, e.Go)
	if e.Hypervisor {
		s += ", virtual"
	}
	s += ", commit " + commit(e) + ", " + r.Started.UTC().Format("2006-01-02")
	if r.Quick {
		s += ", quick"
	}
	return s
}

func commit(e *reports.Environment) string {
	const most = 12
	if e.Commit == "" {
		return "unknown"
	}
	return e.Commit[:min(most, len(e.Commit))]
}

func block(b *strings.Builder, lead, words string) {
	for _, line := range view.Wrap(words, columns-len(lead), "  ") {
		b.WriteString(lead + line + "\n")
		lead = strings.Repeat(" ", len(lead))
	}
}
