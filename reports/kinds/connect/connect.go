package connect

import (
	"fmt"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Connect is the life of a connection in stages, in nanoseconds.
type Connect struct {
	AtOnce         int             `json:"at_once"`          // connections set up concurrently
	Create         reports.Latency `json:"create"`           // window, queues and QP, before the first packet; 0 of calls, where connect has it
	Connect        reports.Latency `json:"connect"`          // the transport's set-up
	FirstRoundTrip reports.Latency `json:"first_round_trip"` // a write and a read of the same bytes, or a call
	Disconnect     reports.Latency `json:"disconnect"`       // closing, until all is given back
	Full           reports.Latency `json:"full"`             // all of it
}

// stage is one stage by its name in thresholds; title is for people.
type stage struct {
	name, title string
	of          func(c *Connect) *reports.Latency
}

var stages = []stage{
	{"create", "create", func(c *Connect) *reports.Latency { return &c.Create }},
	{"connect", "connect", func(c *Connect) *reports.Latency { return &c.Connect }},
	{"first", "first round trip", func(c *Connect) *reports.Latency { return &c.FirstRoundTrip }},
	{"disconnect", "disconnect", func(c *Connect) *reports.Latency { return &c.Disconnect }},
	{"full", "all of it", func(c *Connect) *reports.Latency { return &c.Full }},
}

// latency is the stage's; nil when the result set up no connections.
func (s stage) latency(r *reports.Result) *reports.Latency {
	if c := Of(r); c != nil {
		return s.of(c)
	}
	return nil
}

// Kind describes these results.
var Kind = &reports.Kind{
	Workload: "connect",
	Results:  Results,
	Called:   "Connection set-up",
	Bare:     true,
	Conditions: func(l reports.Load) string {
		first := view.Integer(int64(l.QPs)) + " at once, a thread each"
		if l.Sweep {
			first = "a thread for each connection at once"
		}
		server := "one listening thread"
		if l.Op == "call" {
			server = "the server's threads as its stack has them"
		}
		return strings.Join(append([]string{first, server}, l.Manner()...), ", ")
	},
	Connection: "connection",
	OwnThreads: true,
	Medians:    medians,
	OwnLatency: true,
	OwnRate:    true,
	Tables:     tables,
	Sections:   []*reports.PageSection{{Rank: 200, Of: section}},
}

// medians has the medians of each stage over repeats.
func medians(all []*reports.Result) any {
	first := Of(all[0])
	c := *first
	for _, s := range stages {
		*s.of(&c) = *reports.MedianLatencies(all, s.latency)
	}
	return &c
}

// tables show where the time of a connection goes.
func tables(_ *reports.Grouped, results []*reports.Result, _ view.Units) []reports.Block {
	t := &view.Table{Columns: []view.Column{{Name: "at once"}, {Name: "connections"}, {Name: "rate", Unit: "/s"}, {Name: "stage", Left: true},
		{Name: "min", Unit: "us"}, {Name: "p50", Unit: "us"}, {Name: "mean", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "max", Unit: "us"}}}
	for _, r := range results {
		c := Of(r)
		if c == nil {
			continue
		}
		rate := "-"
		if r.Throughput != nil {
			rate = view.Number(r.Throughput.OperationsPerSecond, 0)
		}
		row := func(title string, l *reports.Latency) {
			t.Add(view.Cell{Text: view.Integer(int64(c.AtOnce))}, view.Cell{Text: view.Integer(r.Operations)}, view.Cell{Text: rate}, view.Cell{Text: title},
				view.Cell{Text: view.Usec(l.Min)}, reports.PercentileCell(l, "p50"), view.Cell{Text: view.Usec(l.Mean)}, reports.PercentileCell(l, "p99"), view.Cell{Text: view.Usec(l.Max)})
		}
		for i, s := range stages {
			if i == len(stages)-1 && r.Latency != nil {
				row("until answered", r.Latency)
			}
			row(s.title, s.of(c))
		}
	}
	return []reports.Block{{Lead: "", Table: t}}
}

// section is where the time of a connection goes, a bar for each stage.
func section(set *reports.Set) view.Section {
	s := view.Section{ID: "setup", Title: "Connection set-up", Intro: "Medians of each stage of a connection's life; the first answer is there after the first three."}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) { return s.Condition(), Of(s.Result) != nil }) {
		title := view.Capital(g.Key.What()) + ", " + view.Integer(int64(Of(g.Samples[0].Result).AtOnce)) + " at once"
		chart := &view.BarChart{Title: title, XLabel: "Median time [µs]", Unit: view.Digits3}
		data := view.Grid{Caption: title, Head: view.HeadCells("series", "stage", "p50", "p99", "connections a second")}
		for _, b := range reports.Split(g.Samples) {
			rate := reports.MedianOf(b.Runs, func(s *reports.Measured) float64 {
				if s.Throughput == nil {
					return 0
				}
				return s.Throughput.OperationsPerSecond
			})
			for _, st := range stages {
				p50 := reports.MedianOf(b.Runs, func(s *reports.Measured) float64 { return st.latency(s.Result).P50 })
				p99 := reports.MedianOf(b.Runs, func(s *reports.Measured) float64 { return st.latency(s.Result).P99 })
				chart.Bars = append(chart.Bars, view.Bar{Block: b.Series + ", " + st.title, Slot: b.Slot, Value: p50 / 1000, Text: view.Digits3(p50 / 1000), FirstOfKind: true,
					Tip: fmt.Sprintf("%s\n%s p50 %s\np99 %s", b.Series, st.title, view.NsLabel(p50), view.NsLabel(p99))})
				data.Rows = append(data.Rows, []view.GridCell{view.NameCell(b.Series), view.TextCell(st.title), view.NumberCell(view.NsLabel(p50)),
					{Text: view.NsLabel(p99), Class: "n", Mark: st.latency(b.Runs[0].Result).Percentiles()[2].TooFew}, view.NumberCell(view.Digits3(rate))})
				chart.Desc += fmt.Sprintf("%s, %s: %s. ", b.Series, st.title, view.NsLabel(p50))
			}
		}
		s.Figures = append(s.Figures, view.Figure{Title: title, Caption: g.Key.Describe(), Chart: chart, Data: data})
	}
	return s
}

// Of is the detail of connection set-up, nil for any other.
func Of(r *reports.Result) *Connect { return reports.DetailOf[Connect](r) }
