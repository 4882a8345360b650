package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// width is what terminals have.
const width = 80

// print1 prints a claim for people.
func print1(w io.Writer, l line) {
	wrap(w, fmt.Sprintf("%-4s %-8s ", l.name, l.verdict), "              ", l.what)
	for _, c := range l.commands {
		wrap(w, "     $ ", "         ", c)
	}
	for _, f := range l.figures {
		wrap(w, "     ", "       ", f)
	}
	for _, y := range l.why {
		if !strings.HasPrefix(y, "against the claim: ") || len(l.figures) == 0 {
			wrap(w, "     ! ", "       ", y)
		}
	}
	if bad := against(l.why); len(bad) > 0 {
		wrap(w, "     ! ", "       ", "against the claim: "+strings.Join(bad, "; "))
	}
}

func against(why []string) (bad []string) {
	for _, y := range why {
		if f, ok := strings.CutPrefix(y, "against the claim: "); ok {
			bad = append(bad, f)
		}
	}
	return bad
}

// wrap breaks text at blanks, and behind the commas and bars of a list.
func wrap(w io.Writer, first, rest, text string) {
	at, lead := "", first
	add := func(word, behind string) {
		if at != "" && len(lead)+len(at)+len(behind)+len(word) > width {
			fmt.Fprintln(w, lead+at)
			at, lead = "", rest
		}
		if at != "" {
			at += behind
		}
		at += word
	}
	for _, word := range strings.Fields(text) {
		if len(rest)+len(word) <= width {
			add(word, " ")
			continue
		}
		behind := " "
		for word != "" {
			n := strings.IndexAny(word, ",|") + 1
			if n == 0 {
				n = len(word)
			}
			add(word[:n], behind)
			word, behind = word[n:], ""
		}
	}
	fmt.Fprintln(w, lead+at)
}

// writePage writes the list as Markdown. Rows of claims that were not walked now stay as the
// file has them: the list may be made in parts.
func writePage(file, machine string, all []line) error {
	var b strings.Builder
	rows := map[string]string{}
	if old, err := os.ReadFile(file); err == nil {
		for row := range strings.Lines(string(old)) {
			if f := strings.SplitN(row, "|", 3); len(f) == 3 {
				rows[strings.TrimSpace(f[1])] = row
			}
		}
	}
	if machine != "" {
		fmt.Fprintf(&b, "%s\n\n", machine)
	}
	b.WriteString("| | claim | verdict | measured | by |\n|---|---|---|---|---|\n")
	cell := strings.NewReplacer("|", "\\|", "\n", " ")
	for _, l := range all {
		measured := l.figures
		for _, y := range l.why {
			if !strings.HasPrefix(y, "against the claim: ") {
				measured = append(measured, y)
			}
		}
		var by []string
		for _, c := range l.commands {
			by = append(by, "`"+strings.ReplaceAll(c, "|", "\\|")+"`")
		}
		rows[l.name] = fmt.Sprintf("| %s | %s | %s | %s | %s |\n", l.name, cell.Replace(l.what), l.verdict,
			cell.Replace(strings.Join(measured, "; ")), strings.Join(by, "<br>"))
	}
	for _, c := range claims {
		b.WriteString(rows[c.name])
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
