package results

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render/html"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

func TestSchemaHasEveryMember(t *testing.T) { reporttest.Described(t, Results) }

// documentOf has the bandwidths of pairs; rank 3 has a tenth, and rank 5 to 6 failed.
func documentOf(n int, rounds [][]verdict.Link) *reports.Document {
	d := &reports.Document{}
	for _, l := range slices.Concat(rounds...) {
		for _, p := range []verdict.Pair{{From: l.A, To: l.B}, {From: l.B, To: l.A}} {
			r := reports.Result{Stack: "iwarp", Label: "soft", Workload: Name, Op: "write", SizeBytes: 1 << 20, Depth: 16,
				QPs: 1}
			m := &Mesh{Measure: Bandwidth, From: p.From, To: p.To, FromHost: fmt.Sprintf("n%d", p.From),
				ToHost: fmt.Sprintf("n%d", p.To), Limit: 0.5}
			bytes := int64(1e9)
			if p.From == 3 || p.To == 3 {
				bytes /= 10
			}
			if r.Throughput = reports.NewThroughput(bytes, 1, 1e9); p == (verdict.Pair{From: 5, To: 6}) {
				r.Throughput, m.Failed = nil, "no answer"
			}
			r.Detail = m
			Results.Apply(&r)
			d.Results = append(d.Results, r)
		}
	}
	return d
}

func TestTheHeatMapShowsWhichPairsAreBad(t *testing.T) {
	sec := Section(reports.NewSet([]*reports.Document{documentOf(8, verdict.All(8))}, nil))
	const want = "Found: n3 is slow in both directions (bandwidth over iwarp: 95.4 MiB/s"
	if len(sec.Figures) != 1 || !strings.HasPrefix(sec.Intro, want) {
		t.Fatalf("%d figures, %q", len(sec.Figures), sec.Intro)
	}
	h := sec.Figures[0].Chart.(*view.HeatMap)
	if len(h.Cells) != 8*7 {
		t.Errorf("%d cells", len(h.Cells))
	}
	for _, c := range h.Cells {
		want := 0
		if c.Row == 3 || c.Column == 3 {
			want = view.Heats - 2
		}
		if c.Row == 5 && c.Column == 6 {
			want = view.Heats - 1
		}
		if c.Heat != want {
			t.Errorf("%+v, want %d", c, want)
		}
	}
	if rows := sec.Figures[0].Data.Rows; rows[0][0].Text != "n5" || len(rows) != mostWorst {
		t.Errorf("worst: %+v", rows)
	}
}

func TestAThousandRanksFitOnAPageOfFiveMegabytes(t *testing.T) {
	d := documentOf(1000, verdict.Nearest(1000, 8))
	var b bytes.Buffer
	own := page.Options{Own: map[string][]page.OwnSection{Name: {Section}}}
	if err := html.Write(&b, []*reports.Document{d}, own); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 5<<20 {
		t.Errorf("%d results make %d bytes", len(d.Results), b.Len())
	}
}

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
