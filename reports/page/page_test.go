package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// However many stacks and workloads there are, and whatever they are called, the headline stays one sentence.
func TestHeadlineIsShort(t *testing.T) {
	const long = "grpc(fused,bpev,busy=%dus,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc)"
	d := &reports.Document{}
	for i, workload := range []string{"latency", "rpc", "throughput"} {
		for k := range 2 {
			d.Results = append(d.Results, reports.Result{Workload: workload, Stack: fmt.Sprintf(long, k)})
		}
		set := reports.NewSet([]*reports.Document{d}, nil)
		want := []string{"Latency of 2 stacks, side by side", "Latency and RPC of 2 stacks, side by side",
			"Latency, RPC and throughput of 2 stacks, side by side"}[i]
		if h := headline(set, nil); h != want {
			t.Errorf("%q, want %q", h, want)
		}
	}
	for i := range 20 {
		d.Results = append(d.Results, reports.Result{Workload: fmt.Sprintf("load%d", i), Stack: fmt.Sprintf(long, i)})
	}
	set := reports.NewSet([]*reports.Document{d}, nil)
	if h := headline(set, nil); len([]rune(h)) > 2*reports.NameRoom+60 || !strings.Contains(h, "18 more workloads") {
		t.Errorf("%d characters: %s", len([]rune(h)), h)
	}
	var cases []CaseResult
	for i := range 20 {
		cases = append(cases, CaseResult{ID: "a", Transport: fmt.Sprintf(long+" %d", i, i)})
	}
	if h := headline(&reports.Set{}, cases); len([]rune(h)) > 2*reports.NameRoom+60 {
		t.Errorf("conformance: %d characters: %s", len([]rune(h)), h)
	}
}

// A conclusion's card has the colour of its stack in the charts, and its ratio as the sentence says it.
func TestCardsHaveTheColourOfTheirStack(t *testing.T) {
	d := &reports.Document{Results: []reports.Result{{Stack: "tcp", Transport: "tcp"},
		{Stack: "iwarp(crc)", Transport: "iwarp"}},
		Answer: &reports.Answer{Rows: []reports.AnswerRow{{Stack: "tcp"}, {Stack: "iwarp"}},
			Conclusions: []reports.Conclusion{
				{Stack: "iwarp", Text: "iwarp takes 1.25x the time of tcp for a 64 B send (1.2 to 1.3x)"},
				{Stack: "tcp", Text: "tcp answers a 64 B call at least 12x sooner than iwarp (12.5x measured)"},
				{Stack: "tcp", Text: "tcp moves 1 MiB sends at no more than 0.8x the rate of iwarp (0.75x measured)"}}}}
	docs := []*reports.Document{d}
	cards := newAnswers(reports.NewSet(docs, nil), docs)[0].Topics[0].Cards
	want := []card{{"1.25x the time", "iwarp takes 1.25x the time of tcp for a 64 B send (1.2 to 1.3x).", 1},
		{"at least 12x sooner", "tcp answers a 64 B call at least 12x sooner than iwarp (12.5x measured).", 0},
		{"no more than 0.8x the rate", "tcp moves 1 MiB sends at no more than 0.8x the rate of iwarp (0.75x measured).", 0}}
	if !slices.Equal(cards, want) {
		t.Errorf("%+v", cards)
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
