package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// CaseResult is one line of the conformance records: what one case found out
// about one transport.
type CaseResult struct {
	ID        string   `json:"id"`
	Clause    string   `json:"clause"`
	Unchecked string   `json:"unchecked"` // sections of the clause that could not be held against the specification
	Level     string   `json:"level"`
	Transport string   `json:"transport"`
	Verdict   string   `json:"verdict"`
	Want      []string `json:"want"`
	Got       string   `json:"got"`
	Evidence  string   `json:"evidence"`
	Ledger    string   `json:"ledger"`
}

// ReadConformance reads JSON lines. Fields that it does not know are ignored,
// empty lines too.
func ReadConformance(r io.Reader) ([]CaseResult, error) {
	var out []CaseResult
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20) // evidence may hold a stack trace
	for n := 1; lines.Scan(); n++ {
		b := bytes.TrimSpace(lines.Bytes())
		if len(b) == 0 {
			continue
		}
		var c CaseResult
		if err := json.Unmarshal(b, &c); err != nil {
			return nil, fmt.Errorf("read conformance records: line %d: %w", n, err)
		}
		if c.ID == "" || c.Transport == "" || c.Verdict == "" {
			return nil, fmt.Errorf("read conformance records: line %d: no id, transport or verdict", n)
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read conformance records: %w", err)
	}
	return out, nil
}

// clauseOf is a case's clause, and in words what of it nobody could check.
func clauseOf(c *CaseResult) string {
	if c.Unchecked == "" {
		return c.Clause
	}
	return c.Clause + " (not checked: " + c.Unchecked + ")"
}

// verdictSigns gives every verdict a sign of its own, so that the matrix reads
// without colour, and the class of its look.
var verdictSigns = []struct{ verdict, sign, class string }{
	{"pass", "✓", "good"}, {"fail", "✕", "bad"}, {"error", "‼", "bad"}, {"xpass", "⚑", "warn"},
	{"xfail", "≈", "warn"}, {"unsupported", "○", "dim"}, {"notrun", "–", "dim"},
}

func verdictLook(v string) (sign, class string) {
	for _, s := range verdictSigns {
		if s.verdict == v {
			return s.sign, s.class
		}
	}
	return "?", "warn"
}

// conformanceView is the matrix, what stands out of it first.
type conformanceView struct {
	Transports []string
	Cases      int
	Summary    view.Grid
	Overview   view.Grid // group by transport
	Notable    view.Grid // neither passed nor unsupported, with the evidence
	Groups     []conformanceGroup
}

// conformanceGroup is the cases before the slash of their IDs.
type conformanceGroup struct {
	Name  string
	Table view.Grid
}

func newConformanceView(cases []CaseResult) *conformanceView {
	if len(cases) == 0 {
		return nil
	}
	v := &conformanceView{}
	counts := map[string]map[string]int{}
	var kinds, ids []string
	cells := map[[2]string]*CaseResult{}
	byID := map[string]*CaseResult{}
	for i := range cases {
		c := &cases[i]
		if counts[c.Transport] == nil {
			counts[c.Transport] = map[string]int{}
			v.Transports = append(v.Transports, c.Transport)
		}
		counts[c.Transport][c.Verdict]++
		if !slices.Contains(kinds, c.Verdict) {
			kinds = append(kinds, c.Verdict)
		}
		if byID[c.ID] == nil {
			byID[c.ID] = c
			ids = append(ids, c.ID)
		}
		cells[[2]string{c.ID, c.Transport}] = c
	}
	v.Cases = len(ids)
	slices.SortStableFunc(kinds, func(a, b string) int { return verdictOrder(a) - verdictOrder(b) })

	v.Summary = view.Grid{Caption: "Verdicts by transport",
		Head: view.HeadCells(append([]string{"transport"}, kinds...)...)}
	for _, t := range v.Transports {
		row := []view.GridCell{view.NameCell(t)}
		for _, k := range kinds {
			row = append(row, view.NumberCell(view.Integer(int64(counts[t][k]))))
		}
		v.Summary.Rows = append(v.Summary.Rows, row)
	}

	v.Notable = view.Grid{Caption: "Cases that did not simply pass", Head: view.HeadCells("case", "transport",
		"verdict", "clause", "evidence")}
	for i := range cases {
		if c := &cases[i]; c.Verdict != "pass" && c.Verdict != "unsupported" {
			v.Notable.Rows = append(v.Notable.Rows, []view.GridCell{view.NameCell(c.ID), view.TextCell(c.Transport),
				verdictCell(c), view.TextCell(clauseOf(c)), view.TextCell(evidence(c))})
		}
	}
	v.Overview = view.Grid{Caption: "Verdicts by group of cases", Note: legendOf(kinds),
		Head: view.HeadCells(append([]string{"group"}, v.Transports...)...)}
	index := map[string]int{}
	for _, id := range ids {
		name, _, _ := strings.Cut(id, "/")
		at, ok := index[name]
		if !ok {
			at = len(v.Groups)
			index[name] = at
			v.Groups = append(v.Groups,
				conformanceGroup{view.Visible(name), view.Grid{Caption: "Cases of " + view.Visible(name),
					Head: view.HeadCells(append(append([]string{"case", "level"}, v.Transports...), "clause",
						"evidence")...)}})
		}
		row := []view.GridCell{view.NameCell(id), view.TextCell(byID[id].Level)}
		var proof []string
		for _, t := range v.Transports {
			c := cells[[2]string{id, t}]
			if c == nil {
				row = append(row, view.GridCell{Text: "no record", Class: "dim"})
				continue
			}
			row = append(row, verdictCell(c))
			if e := evidence(c); e != "" {
				proof = append(proof, t+": "+e)
			}
		}
		v.Groups[at].Table.Rows = append(v.Groups[at].Table.Rows, append(row, view.TextCell(clauseOf(byID[id])),
			view.TextCell(strings.Join(proof, " · "))))
	}
	for _, g := range v.Groups {
		v.Overview.Rows = append(v.Overview.Rows, overviewRow(cases, g.Name, kinds, v.Transports))
	}
	return v
}

// legendOf explains the signs in use.
func legendOf(kinds []string) string {
	parts := make([]string, len(kinds))
	for i, k := range kinds {
		sign, _ := verdictLook(k)
		parts[i] = sign + " " + view.Visible(k)
	}
	return strings.Join(parts, ", ")
}

// overviewRow counts the verdicts of one group; the worst gives the look.
func overviewRow(cases []CaseResult, group string, kinds, transports []string) []view.GridCell {
	row := []view.GridCell{view.NameCell(group)}
	for _, t := range transports {
		counts := map[string]int{}
		for i := range cases {
			if name, _, _ := strings.Cut(cases[i].ID, "/"); view.Visible(name) == group && cases[i].Transport == t {
				counts[cases[i].Verdict]++
			}
		}
		var parts []string
		look := "v"
		for _, k := range kinds {
			if counts[k] == 0 {
				continue
			}
			sign, class := verdictLook(k)
			parts = append(parts, fmt.Sprintf("%d %s", counts[k], sign))
			if look == "v" || class == "bad" || (class == "warn" && !strings.HasSuffix(look, "bad")) {
				look = "v " + class
			}
		}
		row = append(row, view.GridCell{Text: strings.Join(parts, " "), Class: look})
	}
	return row
}

func verdictOrder(v string) int {
	for i, s := range verdictSigns {
		if s.verdict == v {
			return i
		}
	}
	return len(verdictSigns)
}

func verdictCell(c *CaseResult) view.GridCell {
	sign, class := verdictLook(c.Verdict)
	return view.GridCell{Text: sign + " " + view.Visible(c.Verdict), Class: "v " + class}
}

// evidence is all that a record says for its verdict.
func evidence(c *CaseResult) string {
	var parts []string
	if c.Verdict != "pass" && len(c.Want) > 0 {
		parts = append(parts, "want "+strings.Join(c.Want, " or "))
	}
	if c.Verdict != "pass" && c.Got != "" {
		parts = append(parts, "got "+c.Got)
	}
	for _, s := range []string{c.Evidence, c.Ledger} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return view.Shorten(strings.Join(parts, "; "), 600)
}

// conformanceHeadline is the sentence of a page without figures.
func conformanceHeadline(cases []CaseResult) string {
	var ids, transports []string
	for i := range cases {
		if c := &cases[i]; !slices.Contains(ids, c.ID) {
			ids = append(ids, c.ID)
		}
		if t := view.Shorten(cases[i].Transport, reports.NameRoom); !slices.Contains(transports, t) {
			transports = append(transports, t)
		}
	}
	if len(cases) == 0 {
		return "There are no results to show."
	}
	what := strings.Join(transports, ", ")
	if len([]rune(what)) > 2*reports.NameRoom {
		what = view.Plural(int64(len(transports)), "transport")
	}
	return fmt.Sprintf("Conformance of %s: %s.", what, view.Plural(int64(len(ids)), "case"))
}

func conformanceMarks(cases []CaseResult) []mark {
	var order []string
	counts := map[[2]string]int{}
	for i := range cases {
		c := &cases[i]
		if !slices.Contains(order, c.Transport) {
			order = append(order, c.Transport)
		}
		counts[[2]string{c.Transport, c.Verdict}]++
	}
	var out []mark
	for _, t := range order {
		count := func(verdict string) int { return counts[[2]string{t, verdict}] }
		red, absent := count("fail")+count("error"), count("notrun")
		text := fmt.Sprintf("Conformance of %s: %d passed, %d failed.", view.Visible(t), count("pass"), red)
		if absent > 0 {
			text = fmt.Sprintf("Conformance of %s: %d passed, %d failed, %d did not run.", view.Visible(t),
				count("pass"), red, absent)
		}
		switch {
		case red > 0:
			out = append(out, bad(text))
		case absent > 0 || count("pass") == 0:
			out = append(out, warn(text))
		default:
			out = append(out, good(text))
		}
	}
	return out
}
