package conform

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestCatalogue keeps the catalogue usable as a document: every case can be addressed, looked up and understood.
func TestCatalogue(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+/[a-z]+(-[a-z0-9]+)*$`)
	groups := map[string]int{}
	seen := map[string]bool{}
	cases := Catalogue()
	for _, c := range cases {
		if !word.MatchString(c.ID) || seen[c.ID] {
			t.Errorf("ID %q is no word ID, or there twice", c.ID)
		}
		seen[c.ID] = true
		groups[c.Group()]++
		if c.Clause == "" || (c.Run == nil) == (c.Lacks == "") || !strings.HasSuffix(c.Requirement, ".") {
			t.Errorf("%s: clause %q, requirement %q", c.ID, c.Clause, c.Requirement)
		}
		if c.Needs.Features&c.Without != 0 {
			t.Errorf("%s needs what it excludes", c.ID)
		}
		// What a case says was not checked is in its clause, and no clause says it by punctuation.
		if strings.Contains(c.Clause, "?") {
			t.Errorf("%s: clause %q has a question mark", c.ID, c.Clause)
		}
		for _, s := range strings.Split(c.Unchecked, ", ") {
			if s != "" && !strings.Contains(c.Clause, strings.TrimPrefix(s, "IBTA ")) {
				t.Errorf("%s: %q is not in the clause %q", c.ID, s, c.Clause)
			}
		}
		text, err := Explain(cases, c.ID)
		if err != nil || !strings.Contains(text, c.Requirement) || !strings.Contains(text, c.Clause) {
			t.Errorf("Explain(%s) = %q, %v", c.ID, text, err)
		}
	}
	for _, g := range []string{"dev", "qps", "ord", "snd", "inl", "imm", "wim", "rdw", "rdr", "atm", "fen", "srq",
		"rnr", "acc", "inv", "mw", "flu", "cqo", "evt", "lrg", "pri", "cm", "dth"} {
		if groups[g] == 0 {
			t.Errorf("group %s is empty", g)
		}
		delete(groups, g)
	}
	if len(groups) > 0 || len(cases) < 75 {
		t.Errorf("unknown groups %v, %d cases", groups, len(cases))
	}
	var list bytes.Buffer
	if err := List(&list, cases); err != nil || strings.Count(list.String(), "\n") != len(cases)+2 ||
		!strings.Contains(list.String(), "not held against the licensed specification") {
		t.Errorf("List: %v, %d lines", err, strings.Count(list.String(), "\n"))
	}
	if _, err := Explain(Catalogue(), "no/such-case"); !errors.Is(err, ErrUsage) {
		t.Errorf("Explain of an unknown case: %v", err)
	}
}

// TestEveryCapabilityHasACase: coverage can be reached at all, in the fast profile.
func TestEveryCapabilityHasACase(t *testing.T) {
	var all rdma.Need
	for _, c := range Catalogue() {
		if c.Profile == Fast && c.Level != May {
			all.Ops |= c.Needs.Ops
			all.Features |= c.Needs.Features
		}
	}
	for op := rdma.Opcode(0); int(op) < rdma.NumOpcodes; op++ {
		if !all.Ops.Has(op) {
			t.Errorf("no case needs operation %s", op)
		}
	}
	for f := rdma.Features(1); f.String() != ""; f <<= 1 {
		if !all.Features.Has(f) {
			t.Errorf("no case needs feature %s", f)
		}
	}
}

func TestSelect(t *testing.T) {
	cases := []Case{{ID: "snd/sizes"}, {ID: "snd/list"}, {ID: "rdw/sizes"}, {ID: "lrg/max", Profile: Full}}
	for _, v := range []struct {
		only, skip []string
		p          Profile
		want       string
		usage      bool
	}{
		{want: "snd/sizes snd/list rdw/sizes"},
		{p: Full, want: "snd/sizes snd/list rdw/sizes lrg/max"},
		{only: []string{"snd"}, want: "snd/sizes snd/list"},
		{only: []string{"*/sizes"}, want: "snd/sizes rdw/sizes"},
		{only: []string{"s*"}, want: "snd/sizes snd/list"},
		{only: []string{"*"}, skip: []string{"rdw", "*/list"}, want: "snd/sizes"},
		{only: []string{"lrg/max"}, want: "lrg/max"}, // named exactly
		{only: []string{"lrg/*"}, usage: true},       // a pattern does not raise the profile
		{only: []string{"snd/none"}, usage: true},
		{only: []string{"snd", "none"}, usage: true},
		{only: []string{"["}, usage: true},
		{skip: []string{"a["}, usage: true},
		{skip: []string{"*"}, usage: true},
	} {
		got, err := Select(cases, v.only, v.skip, v.p)
		var ids []string
		for _, c := range got {
			ids = append(ids, c.ID)
		}
		if strings.Join(ids, " ") != v.want || errors.Is(err, ErrUsage) != v.usage {
			t.Errorf("Select(%q, %q, %s) = %q, %v; want %q, usage %v", v.only, v.skip, v.p, ids, err, v.want, v.usage)
		}
	}
}

func TestProfileNames(t *testing.T) {
	for _, p := range []Profile{Fast, Full} {
		if got, err := ParseProfile(p.String()); got != p || err != nil {
			t.Errorf("ParseProfile(%q) = %v, %v", p, got, err)
		}
	}
	if _, err := ParseProfile("slow"); !errors.Is(err, ErrUsage) {
		t.Errorf("ParseProfile(slow): %v", err)
	}
}

// TestPattern: what a payload check can see depends on the pattern having no
// repetition at the distances at which implementations cut messages.
func TestPattern(t *testing.T) {
	p := patternOf(1<<17, 42)
	for _, d := range []int{1, 2, 4, 8, 64, 512, 1448, 1460, 4096, 65536} {
		same := 0
		for i := 0; i+d < len(p); i++ {
			if p[i] == p[i+d] {
				same++
			}
		}
		if same > len(p)/64 {
			t.Errorf("%d of %d bytes equal at distance %d", same, len(p), d)
		}
	}
	if slices.Equal(patternOf(64, 1), patternOf(64, 2)) || !slices.Equal(p[:100], patternOf(100, 42)) {
		t.Error("the pattern does not depend on the seed alone")
	}
}

// TestScopeNamesGroupsThatExist: an area is covered by groups of cases, suites or scripts
// that are there, and is never short of more than it has.
func TestScopeNamesGroupsThatExist(t *testing.T) {
	groups := map[string]bool{}
	for _, c := range Catalogue() {
		groups[c.Group()] = true
	}
	for i := range Areas {
		a := &Areas[i]
		if a.covered() < 0 || (a.covered() > 0) != (a.By != "") {
			t.Errorf("%s: %d of %d covered by %q", a.Name, a.covered(), a.Requirements, a.By)
		}
		for _, by := range strings.Split(a.By, ", ") {
			_, err := os.Stat("../../" + by)
			switch {
			case by == "", by == "--wire", by == "grpc and lite suites", groups[by]:
			case strings.HasPrefix(by, "ci/") && err == nil:
			default:
				t.Errorf("%s: covered by %q, which is not there", a.Name, by)
			}
		}
	}
	if covered, all := Scope(); all < 290 || covered >= all {
		t.Errorf("%d of %d", covered, all)
	}
}

func TestDocumentedScopeIsThatOfTheTable(t *testing.T) {
	want := scopeTable()
	page, err := os.ReadFile("../../docs/reference/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/reference/conformance.md does not have this table:\n%s", want)
	}
	if !slices.Contains(strings.Fields(ScopeText()), "requirements") {
		t.Error(ScopeText())
	}
}

// scopeTable is the areas of the catalogue as a table of Markdown, and below it what is not covered, with the reasons.
func scopeTable() string {
	var b strings.Builder
	b.WriteString("| area | requirements | covered | by |\n|---|---|---|---|\n")
	for i := range Areas {
		a := &Areas[i]
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", a.Name, a.Requirements, a.covered(), a.By)
	}
	fmt.Fprintf(&b, "\n%s. Not covered:\n\n", ScopeText())
	for i := range Areas {
		for _, x := range Areas[i].Absent {
			fmt.Fprintf(&b, "- %s: %s (%d): %s.\n", Areas[i].Name, x.What, x.Count, x.Reason)
		}
	}
	return b.String()
}
