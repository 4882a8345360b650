package conform

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// WriteJSONL writes one JSON object a result and line: the source of which every other form is a view.
func WriteJSONL(w io.Writer, reports ...Report) error {
	bw := bufio.NewWriter(w)
	enc := json.NewEncoder(bw)
	enc.SetEscapeHTML(false)
	for i := range reports {
		for k := range reports[i].Results {
			if err := enc.Encode(&reports[i].Results[k]); err != nil {
				return err
			}
		}
	}
	return bw.Flush()
}

// WriteMatrix writes cases by transports, the counts, and an explanation of every verdict
// that is not a pass. For a terminal of so many columns, 0 for any number, transports whose
// names do not fit side by side are numbered, and longer lines continue in the next one.
func WriteMatrix(w io.Writer, columns int, reports ...Report) error {
	var text bytes.Buffer
	bw := bufio.NewWriter(&text)
	ids, byID := rows(reports)
	wide := len("case")
	for _, id := range ids {
		wide = max(wide, len(id))
	}
	cols, room := make([]int, len(reports)), wide+2+len("should")
	for i := range reports {
		cols[i] = max(len(reports[i].Transport), len(Unsupported))
		room += 2 + cols[i]
	}
	name := func(i int) string { return reports[i].Transport }
	if columns > 0 && room > columns {
		for i := range reports {
			cols[i] = len(Unsupported)
			fmt.Fprintf(bw, "[%d]  %s\n", i+1, reports[i].Transport)
		}
		fmt.Fprintln(bw)
		name = func(i int) string { return fmt.Sprintf("[%d]", i+1) }
	}
	line := func(first, second string, cell func(i int) string) {
		text := fmt.Sprintf("%-*s  %-6s", wide, first, second)
		for i := range reports {
			text += fmt.Sprintf("  %-*s", cols[i], cell(i))
		}
		fmt.Fprintln(bw, strings.TrimRight(text, " "))
	}
	line("case", "level", name)
	for _, id := range ids {
		level := ""
		for _, r := range byID[id] {
			if r != nil {
				level = r.Level
			}
		}
		line(id, level, func(i int) string {
			if r := byID[id][i]; r != nil {
				return string(r.Verdict)
			}
			return "-"
		})
	}
	fmt.Fprintln(bw)
	for _, v := range Verdicts {
		total := 0
		for i := range reports {
			total += reports[i].Counts()[v]
		}
		if total > 0 || v == Pass || v == Fail {
			line(string(v), "", func(i int) string { return fmt.Sprint(reports[i].Counts()[v]) })
		}
	}
	fmt.Fprintf(bw, "\n%s (docs/reference/conformance.md)\n", ScopeText())
	for i := range reports {
		explain(bw, &reports[i])
	}
	bw.Flush() // into memory
	_, err := io.WriteString(w, fold(text.String(), columns))
	return err
}

// fold breaks lines of more than so many columns between words; 0 leaves them.
func fold(text string, columns int) string {
	if columns == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > columns; {
			at := len(string([]rune(line)[:columns+1]))
			if at = strings.LastIndexByte(line[:at], ' '); at <= 4 {
				break // one long word
			}
			b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
			line = "    " + line[at+1:]
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// rows lists the case IDs in the order in which they appear first, and the records of each transport.
func rows(reports []Report) ([]string, map[string][]*Result) {
	var ids []string
	byID := map[string][]*Result{}
	for i := range reports {
		for k := range reports[i].Results {
			r := &reports[i].Results[k]
			if byID[r.ID] == nil {
				byID[r.ID] = make([]*Result, len(reports))
				ids = append(ids, r.ID)
			}
			byID[r.ID][i] = r
		}
	}
	// The coverage check of any transport stays the last row.
	if k := slices.Index(ids, coverageID); k >= 0 {
		ids = append(slices.Delete(ids, k, k+1), coverageID)
	}
	return ids, byID
}

func explain(w io.Writer, rep *Report) {
	if rep.Err != nil {
		fmt.Fprintf(w, "\n%s: %v\n", rep.Transport, rep.Err)
	}
	for _, v := range []Verdict{NotRun, Unsupported} {
		explainAbsent(w, rep, v)
	}
	for i := range rep.Results {
		r := &rep.Results[i]
		if r.Verdict == Pass || r.Verdict == Unsupported || r.Verdict == NotRun {
			continue
		}
		fmt.Fprintf(w, "\n%s  %s  %s (%s, %s, seed %d, %v)\n", rep.Transport, r.ID, r.Verdict, r.Level,
			clauseText(r.Clause, r.Unchecked), r.Seed, time.Duration(r.DurationNS).Round(time.Millisecond))
		for _, f := range []struct{ name, text string }{
			{"requires", r.Requirement}, {"want", strings.Join(r.Want, " or ")}, {"got", r.Got},
			{"evidence", r.Evidence}, {"ledger", r.Ledger},
		} {
			if f.text != "" {
				fmt.Fprintf(w, "  %-8s  %s\n", f.name, strings.ReplaceAll(f.text, "\n", "\n            "))
			}
		}
	}
}

func explainAbsent(w io.Writer, rep *Report, v Verdict) {
	byWhy := map[string][]string{}
	var order []string
	for i := range rep.Results {
		if r := &rep.Results[i]; r.Verdict == v {
			if byWhy[r.Evidence] == nil {
				order = append(order, r.Evidence)
			}
			byWhy[r.Evidence] = append(byWhy[r.Evidence], r.ID)
		}
	}
	for _, why := range order {
		ids := byWhy[why]
		fmt.Fprintf(w, "\n%s  %d %s: %s\n", rep.Transport, len(ids), v, why)
		if rep.Err != nil && len(ids) == len(rep.Results) {
			continue // nothing ran at all
		}
		line := " "
		for _, id := range ids {
			if len(line)+1+len(id) > 100 {
				fmt.Fprintln(w, line)
				line = " "
			}
			line += " " + id
		}
		fmt.Fprintln(w, line)
	}
}
