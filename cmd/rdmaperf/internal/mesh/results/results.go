// Package results describes results of a mesh: a figure of a pair of ranks each.
package results

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Name is that of the results' workload.
const Name = "mesh"

// The measures.
const (
	Latency   = "latency"
	Bandwidth = "bandwidth"
	Both      = "both"        // bandwidth, both directions at once
	Calls     = "calls"       // latency of a call
	ManyToOne = "many-to-one" // bandwidth of one of many that send to a rank at once
	Shift     = "shift"       // bandwidth while each rank sends to the k-th behind it
	Allreduce = "allreduce"   // of all ranks
)

// Measures are all.
func Measures() []string {
	return []string{Latency, Bandwidth, Both, Calls, ManyToOne, Shift, Allreduce}
}

// More tells measures of which more is better.
func More(measure string) bool { return measure != Latency && measure != Calls }

// Whole tells measures that are of both directions.
func Whole(measure string) bool { return measure == Latency || measure == Calls || measure == Both }

// OfPairs tells measures of a pair alone from those in which many ranks take part at once.
func OfPairs(measure string) bool { return Whole(measure) || measure == Bandwidth }

// Mesh says of which pair a result is. From sends, or asks.
type Mesh struct {
	Measure    string `json:"measure"`
	From       int    `json:"from"`
	To         int    `json:"to"`
	FromHost   string `json:"from_host"`
	ToHost     string `json:"to_host"`
	FromSwitch string `json:"from_switch,omitempty"` // what the host hangs on, outermost first
	ToSwitch   string `json:"to_switch,omitempty"`
	SameHost   bool   `json:"same_host,omitempty"`

	Ranks int `json:"ranks,omitempty"` // of an all-reduce

	// Limit is the multiple of what a good pair has beyond which this one is bad.
	Limit float64 `json:"limit"`

	// Expected is what a healthy path carries by its link, MTU and slot, bytes a second; 0: not known.
	Expected float64 `json:"expected_bytes_per_second,omitempty"`

	// Control marks a good pair that was measured between those that were measured again.
	Control bool `json:"control,omitempty"`

	Failed string `json:"failed,omitempty"` // why there is no figure
	Gone   bool   `json:"gone,omitempty"`   // because one of the ranks ended, hung or never came
}

// Member implements reports.Detail.
func (*Mesh) Member(string) string { return Name }

//go:embed schema.json
var schema string

// Results declares the dimensions of these results.
var Results = &reports.Workload{
	Name: Name, Title: "Mesh",
	Intro: "Each pair of ranks has the latency of a ping-pong, half a round trip, and the bandwidth of each direction. " +
		"A pair that is far worse than the good ones was measured again.",
	Dims: []reports.DimDef{
		{Name: "measure", Help: "latency, bandwidth, both (directions at once), calls, many-to-one, shift or allreduce"},
		{Name: "from", Help: "rank that sends or asks"},
		{Name: "to", Help: "rank that takes or answers"},
		{Name: "from_host", Help: "host of the one"},
		{Name: "to_host", Help: "host of the other"},
	},
	Figures: []reports.FigureDef{{Name: "share", Quantity: reports.QuantityRatio, Better: reports.More,
		Help: "bandwidth, of what the link, its MTU and the slot of both ends let a healthy path carry"}},
	Shown:  []string{"p50", "bw"},
	Schema: schema,
	Detail: func() reports.Detail { return new(Mesh) },
	Describe: func(w *reports.Workload, r *reports.Result) {
		d := reports.DetailOf[Mesh](r)
		r.Dims = reports.DimsOf(w.Dims, d.Measure, d.From, d.To, d.FromHost, d.ToHost)
		r.Note = d.Failed
		if d.Expected > 0 && r.Throughput != nil {
			r.Figures = reports.FiguresOf(w.Figures, r.Throughput.BytesPerSecond/d.Expected)
		}
	},
}

// mostSide bounds the rows of a heat map: of more ranks a cell is the worst pair of several.
const mostSide = 64

// heats are by how many times a pair is worse than the good ones; the last level is of pairs that failed.
var heats = [view.Heats - 2]float64{1.1, 1.25, 1.5, 2}

var heatKey = [view.Heats]string{"good", "1.1x worse", "1.25x", "1.5x", "2x and more", "failed"}

// Section has a heat map of each measure, and the worst pairs.
func Section(set *reports.Set) view.Section {
	var all []reports.Result
	for _, x := range set.Samples {
		if x.Workload == Name {
			all = append(all, *x.Result)
		}
	}
	sec := view.Section{ID: Name, Title: Results.Title}
	s := Summarise(all)
	if s == nil {
		return sec
	}
	sec.Intro = "Nothing that was measured is slow. "
	for i := range s.Findings {
		if i == 0 {
			sec.Intro = ""
		}
		f := &s.Findings[i]
		sec.Intro += "Found: " + s.Sentence(f) + " (" + strings.Join(s.Evidence(f), "; ") + "). "
	}
	sec.Intro += Results.Intro
	for _, m := range s.Measures {
		sec.Figures = append(sec.Figures, s.heatMap(m))
	}
	return sec
}

func (s *Summary) heatMap(m *verdict.Measure) view.Figure {
	title := view.Capital(m.Name) + " over " + view.Visible(m.Stack)
	h := &view.HeatMap{Title: title, Down: "from", Right: "to", Key: heatKey}
	per := (len(s.Ranks) + mostSide - 1) / mostSide
	at := map[int]int{}
	for i, r := range s.Ranks {
		if at[r] = i / per; i%per == 0 {
			h.Names = append(h.Names, s.Names[r])
		}
	}
	label := view.NsLabel
	if m.More {
		label = view.BandwidthLabel
	}
	pairs := m.Worst()
	worst := map[[2]int]int{}
	for _, p := range pairs {
		text := label(p.Value)
		if p.Factor > 0 && math.IsInf(p.Factor, 1) {
			text = "failed"
		}
		for _, c := range [][2]int{{at[p.From], at[p.To]}, {at[p.To], at[p.From]}} {
			if _, drawn := worst[c]; drawn {
				continue
			}
			worst[c] = len(h.Cells)
			h.Cells = append(h.Cells, view.HeatCell{Row: c[0], Column: c[1], Heat: heatOf(p.Factor),
				Tip: fmt.Sprintf("%s to %s\n%s", s.Names[p.From], s.Names[p.To], text)})
			if !m.Whole {
				break
			}
		}
	}
	slices.SortFunc(h.Cells, func(a, b view.HeatCell) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Column, b.Column))
	})
	data := view.Grid{Caption: title + ": the worst pairs", Head: view.HeadCells("from", "to", m.Name,
		"worse than good pairs")}
	var words []string
	for _, p := range pairs[:min(len(pairs), mostWorst)] {
		data.Rows = append(data.Rows, []view.GridCell{view.NameCell(s.Names[p.From]), view.TextCell(s.Names[p.To]),
			view.NumberCell(label(p.Value)), view.NumberCell(view.Digits3(p.Factor) + "x")})
		if len(words) < 3 {
			words = append(words, fmt.Sprintf("%s to %s: %s.", s.Names[p.From], s.Names[p.To], label(p.Value)))
		}
	}
	h.Desc = "Worst: " + strings.Join(words, " ")
	f := view.Figure{Title: title, Chart: h, Data: data}
	if per > 1 {
		f.Caption = fmt.Sprintf("a cell is the worst pair of %d ranks and %d", per, per)
	}
	return f
}

// mostWorst is how many of the worst pairs are listed.
const mostWorst = 10

func heatOf(factor float64) int {
	if math.IsInf(factor, 1) {
		return view.Heats - 1
	}
	for i, limit := range heats {
		if factor <= limit {
			return i
		}
	}
	return view.Heats - 2
}
