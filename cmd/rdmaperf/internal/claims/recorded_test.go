package claims

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/reports"
)

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
