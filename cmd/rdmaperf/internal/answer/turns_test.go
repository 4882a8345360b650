package answer

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// inTurns is ten runs of each of two builds, of which the second takes so many times as long. The machine has another
// pace in every round.
func inTurns(slower float64) *reports.Document {
	m := newMaker(0.02)
	var rounds [][2]*reports.Document
	for range 10 {
		pace := 1 + m.rng.Float64()
		var pair [2]*reports.Document
		for i, factor := range []float64{1, slower} {
			m.Results = nil
			of := map[string]float64{"tcp": 4000 * pace * factor, "iwarp": 5000 * pace * factor}
			m.latency(3, 64, of, "tcp", "iwarp")
			pair[i] = &reports.Document{Results: m.Results}
		}
		rounds = append(rounds, pair)
	}
	return Turns([2]string{"before", "after"}, rounds)
}

func TestBuildsInTurnsAreComparedRunByRun(t *testing.T) {
	d := inTurns(1.3)
	if n := len(d.Answer.Conclusions); n != 2 || d.Answer.Comparisons != 2 {
		t.Errorf("%d conclusions of %d comparisons, want 2 of 2", n, d.Answer.Comparisons)
	}
	for _, c := range d.Answer.Conclusions {
		what := c.Stack[:strings.IndexByte(c.Stack, ',')]
		if !strings.HasPrefix(c.Text, what+", after takes 1.") ||
			!strings.Contains(c.Text, " the time of "+what+", before") || c.Within == nil || 1/c.Within[1] > 1.3 || 1/c.Within[0] < 1.3 {
			t.Errorf("%q, %v", c.Text, c.Within)
		}
	}
	if a := inTurns(1).Answer; len(a.Conclusions) != 0 || a.Undecided != 2 || a.Comparisons != 2 {
		t.Errorf("the same build twice: %+v", a)
	}
	if n := d.Answer.Rounds(); n != 10 {
		t.Errorf("%d rounds, want 10: rounds of one run are one sample", n)
	}
}
