package results

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestTwoMeshesNameWhatBecameWorse(t *testing.T) {
	slowed := func(slow func(m *Mesh) bool) *reports.Document {
		d := documentOf(8, verdict.All(8)) // rank 3 is slow in both
		for i := range d.Results {
			r := &d.Results[i]
			if r.Throughput != nil && slow(r.Detail.(*Mesh)) {
				r.Throughput.BytesPerSecond /= 5
			}
		}
		return d
	}
	old := slowed(func(*Mesh) bool { return false })
	for want, slow := range map[string]func(m *Mesh) bool{
		"no host, direction, path or block of the mesh became worse": func(*Mesh) bool { return false },
		"became worse: n1, both directions; bandwidth over iwarp 0.2x of before, with 7 of 7": func(m *Mesh) bool {
			return m.From == 1 || m.To == 1
		},
		"became worse: what n2 sends;": func(m *Mesh) bool { return m.From == 2 },
		"became worse: the path between n0 and n7;": func(m *Mesh) bool {
			return verdict.LinkOf(m.From, m.To) == verdict.LinkOf(0, 7)
		},
		"bandwidth over iwarp: the median pair has 0.2x of before": func(*Mesh) bool { return true },
	} {
		if got := Worse(old, slowed(slow)); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Worse(old, &reports.Document{}); got != nil {
		t.Errorf("of no mesh: %q", got)
	}
}
