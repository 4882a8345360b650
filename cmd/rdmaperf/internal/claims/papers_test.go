package claims

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Claims are complete: each has a rule with a bound, each bound has an arm that must break it, and what is compared
// differs.
func TestPapers(t *testing.T) {
	papers, ids := map[string]bool{}, map[string]bool{}
	for _, p := range All {
		if papers[p.Name] || p.Title == "" || p.Source == "" || len(p.Claims) == 0 {
			t.Errorf("paper %q: twice, or without title, source or claims", p.Name)
		}
		papers[p.Name] = true
		for _, c := range p.Claims {
			if ids[c.ID] || c.Says == "" || !strings.HasSuffix(c.Says, ".") || c.Source == "" {
				t.Errorf("%s: twice, or without sentence or source", c.ID)
			}
			ids[c.ID] = true
			judged := c.Needs.Other != ""
			for _, r := range c.Rules {
				judged = judged || r.pass != nil || r.bounded()
				checkRule(t, c.ID, r)
			}
			if !judged {
				t.Errorf("%s: no rule has a bound", c.ID)
			}
		}
	}
}

func checkRule(t *testing.T, id string, r Rule) {
	for _, p := range r.cases {
		if _, err := path.Match(p, ""); err != nil {
			t.Errorf("%s, %s: %q: %v", id, r.What, p, err)
		}
	}
	if r.pass != nil || !r.bounded() {
		return
	}
	o, ok := r.against()
	if !ok {
		t.Errorf("%s, %s: names no arm that must break it", id, r.What)
		return
	}
	same := true
	for i, term := range r.terms {
		same = same && term.of.key() == o.terms[i].of.key() && (term.to == nil || term.to.key() == o.terms[i].to.key())
		if term.to != nil && o.terms[i].of.key() == o.terms[i].to.key() && r.within(1) {
			t.Errorf("%s, %s: two equal arms keep it", id, r.What)
		}
	}
	if same {
		t.Errorf("%s, %s: the arm that must break it is the same", id, r.What)
	}
	for _, a := range r.ats() {
		for _, condition := range strings.Fields(a.Where) {
			if !regexp.MustCompile(`^[a-z_]+!?=\S+$`).MatchString(condition) {
				t.Errorf("%s, %s: condition %q", id, r.What, condition)
			}
		}
		beside := slices.ContainsFunc(a.Run.Beside, func(t *tool) bool { return t.stack == a.Stack && t.figure.Name == a.Figure })
		stacks := strings.Join(fields(a.Run.Args), " ")
		if a.Stack != "" && a.Stack != "pin" && !beside && !strings.Contains(stacks, a.Stack) {
			t.Errorf("%s, %s: %q does not run %s", id, r.What, a.Run.Args, a.Stack)
		}
	}
}

// A command line is split as a shell splits it.
func TestFields(t *testing.T) {
	got := fields("run --transport 'sched(slice=1K, window=2K)+iwarp,tcp'  -s 64 ''")
	want := []string{"run", "--transport", "sched(slice=1K, window=2K)+iwarp,tcp", "-s", "64", ""}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
}
