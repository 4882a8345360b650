// Package results describes results of a mesh: a figure of a pair of ranks each.
package results

import (
	_ "embed"

	"github.com/rdmaperf/rdmaperf/reports"
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
