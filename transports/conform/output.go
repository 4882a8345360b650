package conform

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// WriteJSONL writes one JSON object a result and line: the source of which every
// other form is a view.
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

// WriteMatrix writes cases by transports, the counts, and an explanation of
// every verdict that is not a pass.
func WriteMatrix(w io.Writer, reports ...Report) error {
	bw := bufio.NewWriter(w)
	ids, byID := rows(reports)
	wide := len("case")
	for _, id := range ids {
		wide = max(wide, len(id))
	}
	cols := make([]int, len(reports))
	for i := range reports {
		cols[i] = max(len(reports[i].Transport), len(Unsupported))
	}
	line := func(first, second string, cell func(i int) string) {
		text := fmt.Sprintf("%-*s  %-6s", wide, first, second)
		for i := range reports {
			text += fmt.Sprintf("  %-*s", cols[i], cell(i))
		}
		fmt.Fprintln(bw, strings.TrimRight(text, " "))
	}
	line("case", "level", func(i int) string { return reports[i].Transport })
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
	fmt.Fprintf(bw, "\n%s (docs/conformance.md)\n", ScopeText())
	for i := range reports {
		explain(bw, &reports[i])
	}
	return bw.Flush()
}

// rows lists the case IDs in the order in which they appear first, and the
// records of each transport.
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

// explain writes what is behind every verdict that is not a pass.
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
		fmt.Fprintf(w, "\n%s  %s  %s", rep.Transport, r.ID, r.Verdict)
		fmt.Fprintf(w, " (%s, %s, seed %d, %v)\n", r.Level, clauseText(r.Clause, r.Unchecked), r.Seed, time.Duration(r.DurationNS).Round(time.Millisecond))
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

// explainAbsent writes the cases that have no answer, grouped by why.
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
