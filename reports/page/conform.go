package page

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// CaseResult is one line of the conformance records: one case on one transport.
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

// ReadConformance reads JSON lines, without empty lines and unknown fields.
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

func clauseOf(c *CaseResult) string {
	return c.Clause + view.When(c.Unchecked != "", " (not checked: "+c.Unchecked+")")
}

// verdictSigns are different for every verdict, so that the matrix reads without colour.
var verdictSigns = []struct{ verdict, sign, class string }{
	{"pass", "✓", "good"}, {"fail", "✕", "bad"}, {"error", "‼", "bad"}, {"xpass", "⚑", "warn"},
	{"xfail", "≈", "warn"}, {"unsupported", "○", "dim"}, {"notrun", "–", "dim"},
}

// verdictLook has the rank of a verdict, too; unknown ones are behind all others.
func verdictLook(v string) (rank int, sign, class string) {
	for i, s := range verdictSigns {
		if s.verdict == v {
			return i, s.sign, s.class
		}
	}
	return len(verdictSigns), "?", "warn"
}

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

func idOf(c CaseResult) string        { return c.ID }
func transportOf(c CaseResult) string { return c.Transport }

func newConformanceView(cases []CaseResult) *conformanceView {
	if len(cases) == 0 {
		return nil
	}
	v := &conformanceView{Transports: view.Unique(cases, transportOf), Cases: len(view.Unique(cases, idOf))}
	kinds := view.Unique(cases, func(c CaseResult) string { return c.Verdict })
	slices.SortStableFunc(kinds, func(a, b string) int {
		i, _, _ := verdictLook(a)
		k, _, _ := verdictLook(b)
		return cmp.Compare(i, k)
	})
	v.Summary = view.Grid{Caption: "Verdicts by transport",
		Head: view.HeadCells(append([]string{"transport"}, kinds...)...)}
	for _, t := range v.Transports {
		v.Summary.Add([]view.GridCell{view.NameCell(t)}, view.Each(kinds, func(kind string) view.GridCell {
			return view.NumberCell(view.Integer(int64(countOf(cases, t, kind))))
		}))
	}
	v.Notable = view.Grid{Caption: "Cases that did not simply pass", Head: view.HeadCells("case", "transport",
		"verdict", "clause", "evidence")}
	for _, c := range cases {
		if c.Verdict != "pass" && c.Verdict != "unsupported" {
			v.Notable.Add([]view.GridCell{view.NameCell(c.ID), view.TextCell(c.Transport), verdictCell(&c),
				view.TextCell(clauseOf(&c)), view.TextCell(evidence(&c))})
		}
	}
	v.Overview = view.Grid{Caption: "Verdicts by group of cases", Note: legendOf(kinds),
		Head: view.HeadCells(append([]string{"group"}, v.Transports...)...)}
	for _, g := range reports.GroupBy(cases, func(c CaseResult) (string, bool) {
		group, _, _ := strings.Cut(c.ID, "/")
		return group, true
	}) {
		name := view.Visible(g.Key)
		v.Groups = append(v.Groups, conformanceGroup{name, groupTable(name, g.Samples, v.Transports)})
		v.Overview.Add([]view.GridCell{view.NameCell(name)}, view.Each(v.Transports, func(t string) view.GridCell {
			return overviewCell(g.Samples, t, kinds)
		}))
	}
	return v
}

func countOf(cases []CaseResult, transport string, verdicts ...string) (n int) {
	for _, c := range cases {
		if c.Transport == transport && slices.Contains(verdicts, c.Verdict) {
			n++
		}
	}
	return n
}

func groupTable(name string, cases []CaseResult, transports []string) view.Grid {
	t := view.Grid{Caption: "Cases of " + name, Head: view.HeadCells(slices.Concat([]string{"case", "level"}, transports,
		[]string{"clause", "evidence"})...)}
	for _, g := range reports.GroupBy(cases, func(c CaseResult) (string, bool) { return c.ID, true }) {
		first := &g.Samples[0]
		var verdicts []view.GridCell
		var proof []string
		for _, transport := range transports {
			of := view.Only(g.Samples, func(c CaseResult) bool { return c.Transport == transport })
			if len(of) == 0 {
				verdicts = append(verdicts, view.GridCell{Text: "no record", Class: "dim"})
				continue
			}
			last := &of[len(of)-1]
			verdicts = append(verdicts, verdictCell(last))
			if e := evidence(last); e != "" {
				proof = append(proof, transport+": "+e)
			}
		}
		t.Add([]view.GridCell{view.NameCell(g.Key), view.TextCell(first.Level)}, verdicts,
			[]view.GridCell{view.TextCell(clauseOf(first)), view.TextCell(strings.Join(proof, " · "))})
	}
	return t
}

func legendOf(kinds []string) string {
	return strings.Join(view.Each(kinds, func(kind string) string {
		_, sign, _ := verdictLook(kind)
		return sign + " " + view.Visible(kind)
	}), ", ")
}

// overviewCell counts the verdicts of one group on a transport; the worst gives the look.
func overviewCell(cases []CaseResult, transport string, kinds []string) view.GridCell {
	var parts []string
	look := "v"
	for _, k := range kinds {
		n := countOf(cases, transport, k)
		if n == 0 {
			continue
		}
		_, sign, class := verdictLook(k)
		parts = append(parts, fmt.Sprintf("%d %s", n, sign))
		if look == "v" || class == "bad" || (class == "warn" && !strings.HasSuffix(look, "bad")) {
			look = "v " + class
		}
	}
	return view.GridCell{Text: strings.Join(parts, " "), Class: look}
}

func verdictCell(c *CaseResult) view.GridCell {
	_, sign, class := verdictLook(c.Verdict)
	return view.GridCell{Text: sign + " " + view.Visible(c.Verdict), Class: "v " + class}
}

func evidence(c *CaseResult) string {
	differs := c.Verdict != "pass"
	return view.Shorten(view.Join("; ", view.When(differs && len(c.Want) > 0, "want "+strings.Join(c.Want, " or ")),
		view.When(differs && c.Got != "", "got "+c.Got), c.Evidence, c.Ledger), 600)
}

func conformanceHeadline(cases []CaseResult) string {
	if len(cases) == 0 {
		return "There are no results to show."
	}
	transports := view.Unique(cases, func(c CaseResult) string { return view.Shorten(c.Transport, reports.NameRoom) })
	what := strings.Join(transports, ", ")
	if len([]rune(what)) > 2*reports.NameRoom {
		what = view.Plural(int64(len(transports)), "transport")
	}
	return fmt.Sprintf("Conformance of %s: %s.", what, view.Plural(int64(len(view.Unique(cases, idOf))), "case"))
}

func conformanceMarks(cases []CaseResult) (out []mark) {
	for _, t := range view.Unique(cases, transportOf) {
		passed, failed, absent := countOf(cases, t, "pass"), countOf(cases, t, "fail", "error"),
			countOf(cases, t, "notrun")
		text, of := fmt.Sprintf("Conformance of %s: %d passed, %d failed", view.Visible(t), passed, failed)+
			view.When(absent > 0, fmt.Sprintf(", %d did not run", absent)), good
		switch {
		case failed > 0:
			of = bad
		case absent > 0 || passed == 0:
			of = warn
		}
		out = append(out, of(text+"."))
	}
	return out
}
