package reports_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
)

// twoStacks are repeats of one point on tcp and on iwarp, by their medians in ns.
func twoStacks(workload string, tcp, iwarp []float64) (results []reports.Result) {
	base := goldenDocument().Results[0]
	for stack, p50s := range map[string][]float64{"tcp": tcp, "iwarp": iwarp} {
		for i, p50 := range p50s {
			r := base
			r.Stack, r.Transport, r.Workload, r.Repeat, r.Latency, r.Throughput = stack, stack, workload, i+1,
				latency(600_000, p50), nil
			r.Description = reports.Description{}
			results = append(results, r)
		}
	}
	slices.SortStableFunc(results, func(a, b reports.Result) int { return strings.Compare(b.Stack, a.Stack) })
	return results
}

// Where the repeats of two stacks overlap, neither wins, on the page as in the text.
func TestNobodyWinsWhereSpreadsOverlap(t *testing.T) {
	for _, c := range []struct {
		tcp, iwarp []float64
		want       string
	}{
		{[]float64{100, 110, 120}, []float64{121, 130, 140}, "Latency: tcp is fastest in the one comparison made."},
		{[]float64{100, 110, 120}, []float64{119, 130, 140},
			"Latency: No stack is clearly fastest: spreads overlap in the one comparison made."},
		{[]float64{130, 140, 150}, []float64{100, 110, 131},
			"Latency: No stack is clearly fastest: spreads overlap in the one comparison made."},
		{[]float64{130}, []float64{100}, "Latency: iwarp is fastest in the one comparison made."},
		{[]float64{100}, []float64{100},
			"Latency: No stack is clearly fastest: spreads overlap in the one comparison made."},
		{[]float64{100}, nil, ""},
	} {
		d := goldenDocument()
		d.Error, d.Results = nil, twoStacks("latency", c.tcp, c.iwarp)
		if got := strings.Join(pages.Lines(d), "\n"); got != c.want {
			t.Errorf("%v against %v: %q, want %q", c.tcp, c.iwarp, got, c.want)
		}
		if out := string(text(t, d, textformat.Options{})); c.want != "" && !strings.HasSuffix(out,
			"\nverdict\n"+c.want+"\n") || c.want == "" && strings.Contains(out, "verdict") {
			t.Errorf("the text does not end with %q:\n%s", c.want, out)
		}
		_, sentence, _ := strings.Cut(c.want, ": ")
		if p := page(t, pages.Options{}, d); !strings.Contains(p, sentence) {
			t.Errorf("the page does not say %q", sentence)
		}
	}
}

// A lead that is smaller than what the machine took from the window is none.
func TestALeadIsLargerThanWhatTheMachineTook(t *testing.T) {
	for _, c := range []struct {
		taken float64
		want  string
	}{
		{0.01, "Latency: tcp is fastest in the one comparison made."},
		{0.04, "Latency: No stack is clearly fastest: spreads overlap in the one comparison made."},
	} {
		d := goldenDocument()
		d.Error, d.Results = nil, twoStacks("latency", []float64{100}, []float64{105})
		for i := range d.Results {
			d.Results[i].Disturbance = &reports.Disturbance{Verdict: reports.VerdictQuiet, Taken: c.taken}
		}
		if got := strings.Join(pages.Lines(d), "\n"); got != c.want {
			t.Errorf("%v taken: %q, want %q", c.taken, got, c.want)
		}
	}
}

func TestTheVerdictHasAtMostFiveLines(t *testing.T) {
	d := goldenDocument()
	d.Results = nil
	for i := range 7 {
		d.Results = append(d.Results, twoStacks(fmt.Sprintf("load%d", i), []float64{100}, []float64{200})...)
	}
	if lines := pages.Lines(d); len(lines) != 5 || !strings.HasPrefix(lines[3], "Load3: tcp") ||
		lines[4] != "3 more workloads: their tables say." {
		t.Errorf("%q", lines)
	}
}
