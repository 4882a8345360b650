package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// However many stacks win and whatever they are called, the headline stays one
// sentence, and everything is counted.
func TestHeadlineIsShort(t *testing.T) {
	stacks := make([]string, 9)
	wins := map[string]int{}
	for i := range stacks {
		stacks[i] = fmt.Sprintf("grpc(fused,bpev,busy=%dus,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc)", i)
	}
	set := &reports.Set{Order: stacks, Short: reports.ShortNames(stacks, make([]string, len(stacks))),
		Samples: []*reports.Measured{{}}}
	for i, n := range []int{2, 7, 0, 3, 1} {
		wins[stacks[i]] = n
		contests := 0
		for _, n := range wins {
			contests += n
		}
		h := headline(set, tallies{{workload: "Latency", wins: wins, contests: contests}}, nil)
		if len([]rune(h)) > 2*reports.NameRoom+60+len("Latency: ") {
			t.Errorf("%d characters: %s", len([]rune(h)), h)
		}
		if i == 4 && (!strings.HasPrefix(h,
			"Latency: "+set.Short[1]+" is fastest in 7 of 13 comparisons; "+set.Short[3]+" in 3; 2 others in 3.")) {
			t.Errorf("%s", h)
		}
	}
	var cases []CaseResult
	for i := range 20 {
		cases = append(cases, CaseResult{ID: "a", Transport: fmt.Sprintf("%s %d", stacks[0], i)})
	}
	if h := headline(&reports.Set{}, nil, cases); len([]rune(h)) > 2*reports.NameRoom+60 {
		t.Errorf("conformance: %d characters: %s", len([]rune(h)), h)
	}
}

// Every workload has a card before any has a second one, and the others are counted.
func TestOneCardAWorkloadFirst(t *testing.T) {
	of := func(names ...string) (all []card) {
		for i, n := range names {
			all = append(all, card{workload: n, Kicker: fmt.Sprintf("%s %d", n, i)})
		}
		return all
	}
	for _, c := range []struct {
		in   []card
		want string
		more int
	}{
		{of("hol", "hol", "hol", "hol", "latency", "latency", "latency", "rpc"),
			"hol 0, latency 4, rpc 7, hol 1, latency 5, hol 2", 2},
		{of("a", "a", "b"), "a 0, b 2, a 1", 0},
		{of("a", "b", "c", "d", "e", "f", "g", "g", "h"), "a 0, b 1, c 2, d 3, e 4, f 5, g 6, h 8", 1},
		{of("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"),
			"a 0, b 1, c 2, d 3, e 4, f 5, g 6, h 7, i 8, j 9, k 10, l 11", 2},
		{nil, "", 0},
	} {
		shown, more := pick(c.in)
		var names []string
		for _, s := range shown {
			names = append(names, s.Kicker)
		}
		if got := strings.Join(names, ", "); got != c.want || more != c.more {
			t.Errorf("%s and %d more, want %s and %d", got, more, c.want, c.more)
		}
	}
}

// Workloads that measure unlike things have no winner together.
func TestHeadlineHasNoScoreAcrossWorkloads(t *testing.T) {
	set := &reports.Set{Order: []string{"tcp", "iwarp"}, Short: []string{"tcp", "iwarp"},
		Samples: []*reports.Measured{{}}}
	each := tallies{{workload: "Latency", wins: map[string]int{"tcp": 3}, contests: 3},
		{workload: "RPC", wins: map[string]int{"tcp": 1}, contests: 1},
		{workload: "Throughput", wins: map[string]int{"iwarp": 1}, contests: 1}}
	if h := headline(set, each, nil); h != "Latency, RPC and throughput of 2 stacks, side by side" {
		t.Error(h)
	}
}

// Charts of a section that would share a title get what of their captions differs.
func TestTitlesDifferWhenChartsDo(t *testing.T) {
	figures := []view.Figure{}
	for _, caption := range []string{"depth 1, bulk of 64 KiB, same-qp", "depth 1, bulk of 1 MiB, same-qp",
		"depth 1, bulk of 1 MiB, same-qp"} {
		figures = append(figures, view.Figure{Title: "Probe latency", Caption: caption,
			Chart: &view.LineChart{Title: "Probe latency"}})
	}
	figures = append(figures, view.Figure{Title: "Bulk", Caption: "depth 1", Chart: &view.BarChart{Title: "Bulk"}})
	tellApart(figures)
	var titles []string
	for _, f := range figures {
		titles = append(titles, f.Title)
	}
	if got := strings.Join(titles,
		" | "); got != "Probe latency, bulk of 64 KiB | Probe latency, bulk of 1 MiB | Probe latency, bulk of 1 MiB, "+
		"chart 3 | Bulk" {
		t.Error(got)
	}
	if c := figures[1].Chart.(*view.LineChart); c.Title != "Probe latency, bulk of 1 MiB" {
		t.Errorf("the chart's own title is %q", c.Title)
	}
}
