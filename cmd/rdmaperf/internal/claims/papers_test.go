package claims

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/reports"
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

var record = flag.String("record", "", "measure by this rdmaperf (-tags lwip) what testdata/recorded lacks")

// recorded are the figures of a paper's rules and of the arms that must break them, by key and round.
type recorded map[string][]float64

// recordedRounds are enough for an interval from their least to their greatest.
const recordedRounds, recordedLevel = 2, 0.5

// measureAll adds what is not recorded yet of a paper.
func measureAll(t *testing.T, p *Paper, all recorded) recorded {
	n := &runner{program: *record, dir: t.TempDir(), ran: map[string]*outcome{}, Options: Options{Quick: true,
		Progress: func(line string) { fmt.Fprintln(os.Stderr, line) }, Announce: func(string) {}}}
	for _, at := range comparedAts(p) {
		if all[at.key()] != nil {
			continue
		}
		n.look(context.Background(), at.Run, recordedRounds)
		s, err := n.read(at, recordedRounds)
		if err != nil {
			t.Logf("%s: %v", at.key(), err)
			continue
		}
		values := []float64{}
		for _, round := range slices.Sorted(maps.Keys(s.Rounds)) {
			values = append(values, s.Rounds[round].Value)
		}
		all[at.key()] = values
	}
	return all
}

// comparedAts are the figures of all rules with bounds of claims that two CPUs and no device show.
func comparedAts(p *Paper) (all []At) {
	for _, c := range p.Claims {
		for _, r := range c.Rules {
			if c.Needs == (Needs{}) && r.bounded() {
				all = append(all, r.ats()...)
			}
		}
	}
	return slices.DeleteFunc(all, func(a At) bool { return a.Run == rODP })
}

// On results of this machine, the arm that must break a rule breaks it, for every rule of every paper: one that holds
// there, too, decides nothing.
func TestRecordedArmsBreakTheirRules(t *testing.T) {
	for _, p := range All {
		file := filepath.Join("testdata", "recorded", p.Name+".json")
		all := recorded{}
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &all)
		}
		if *record != "" {
			b, err = json.MarshalIndent(measureAll(t, p, all), "", " ")
			if err == nil {
				err = os.WriteFile(file, b, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		read := func(a At) (series, error) {
			s := series{Rounds: map[int]answer.Value{}}
			if len(all[a.key()]) == 0 {
				return s, fmt.Errorf("%s is not recorded", a.key())
			}
			for i, v := range all[a.key()] {
				s.Rounds[i+1] = answer.Value{Value: v, Low: v, High: v}
			}
			s.Figure = reports.Figure{Name: a.Figure}
			return s, nil
		}
		for _, at := range comparedAts(p) {
			if _, err := read(at); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		for _, c := range p.Claims {
			for _, r := range c.Rules {
				o, ok := r.against()
				if !ok || !r.bounded() || c.Needs != (Needs{}) || r.terms[0].of.Run == rODP {
					continue
				}
				if f := o.judge(read, recordedLevel); f.Verdict == Shown {
					t.Errorf("%s: the arm that must break the rule keeps it: %s", c.ID, f.Text)
				}
			}
		}
	}
}
