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
	var cases []CaseResult
	for i := range 20 {
		d.Results = append(d.Results, reports.Result{Workload: fmt.Sprintf("load%d", i), Stack: fmt.Sprintf(long, i)})
		cases = append(cases, CaseResult{ID: "a", Transport: fmt.Sprintf(long+" %d", i, i)})
	}
	set := reports.NewSet([]*reports.Document{d}, nil)
	if h := headline(set, nil); len([]rune(h)) > 2*reports.NameRoom+60 || !strings.Contains(h, "18 more workloads") {
		t.Errorf("%d characters: %s", len([]rune(h)), h)
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
	titles := view.Each(figures, func(f view.Figure) string { return f.Title })
	if !slices.Equal(titles, []string{"Probe latency, bulk of 64 KiB", "Probe latency, bulk of 1 MiB",
		"Probe latency, bulk of 1 MiB, chart 3", "Bulk"}) {
		t.Errorf("%q", titles)
	}
	if c := figures[1].Chart.(*view.LineChart); c.Title != "Probe latency, bulk of 1 MiB" {
		t.Errorf("the chart's own title is %q", c.Title)
	}
}

// A chart has no more lines than can be told apart, medians before tails, and says how many it leaves out.
func TestAChartHasLegibleLines(t *testing.T) {
	lines := func(n int, thin bool) (all []view.Series) {
		for i := range n {
			all = append(all, view.Series{Name: fmt.Sprint(i), Thin: thin && i%2 == 1})
		}
		return all
	}
	tails := func(n int) []view.Series {
		all := lines(n, false)
		for i := range all {
			all[i].Thin = true
		}
		return all
	}
	for _, c := range []struct {
		lines   []view.Series
		want    int
		caption string
	}{
		{lines(8, false), 8, "depth 1"},
		{lines(14, true), 7, "depth 1, 7 of 14 lines, the others in its data"},
		{lines(28, true), 8, "depth 1, 8 of 28 lines, the others in its data"},
		{tails(9), 8, "depth 1, 8 of 9 lines, the others in its data"},
	} {
		f := view.Figure{Caption: "depth 1", Chart: &view.LineChart{Series: c.lines}}
		legible(&f)
		if n := len(f.Chart.(*view.LineChart).Series); n != c.want || f.Caption != c.caption {
			t.Errorf("%d lines of %d, %q", n, len(c.lines), f.Caption)
		}
	}
}

// The title of a chart says how many times the least that it shows the greatest is, with unit and place.
func TestATitleSaysWhatAChartShows(t *testing.T) {
	at := func(x, y float64) []view.Point { return []view.Point{{X: x, Y: y, Tip: "t"}} }
	bars := []view.Bar{{Block: "tcp", Value: 300}, {Block: "iwarp", Value: 900, Thin: true}, {Value: 200}}
	for want, c := range map[string]view.Chart{
		"At the median: tcp 3 µs, iwarp 1.67x of that": &view.LineChart{XText: view.NsLabel, YUnit: view.NsLabel,
			Series: []view.Series{{Name: "tcp", Points: at(2, 3000)}, {Name: "iwarp(crc)", Short: "iwarp",
				Points: at(2, 5000)}, {Name: "tail", Thin: true, Points: at(2, 9000)}}},
		"At 1 MiB: 7 MiB/s": &view.LineChart{YUnit: view.Digits3, YLabel: "Bandwidth [MiB/s]", X: view.Scale{Hi: 64},
			XTicks: []view.Tick{{At: 64, Label: "1 MiB"}}, Series: []view.Series{{Name: "tcp", Points: at(64, 7)}}},
		"iwarp 200 MiB/s, tcp 1.5x of that": &view.BarChart{XLabel: "Bandwidth [MiB/s]", Unit: view.Digits3, Bars: bars},
		"Loaded, at the median: a 6 µs, b 133x of that": &view.PairChart{Unit: view.NsLabel, Bars: []view.Bar{
			{Block: "a", Label: "p50", Other: 6000}, {Label: "p99", Other: 1}, {Block: "b", Label: "p50", Other: 8e5}}},
		"all 300 to 301": &view.BarChart{Unit: view.Digits3,
			Bars: []view.Bar{{Block: "a", Value: 301}, {Block: "b", Value: 300}}},
		"": &view.BarChart{},
	} {
		if got := shows(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
