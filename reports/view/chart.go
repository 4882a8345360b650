package view

import (
	"math"
)

// Slots is the number of series that differ in colour, dash and marker.
const Slots = 8

// Scale is what an axis shows.
type Scale struct {
	Log    bool
	Lo, Hi float64 // data
}

// LegendEntry is one series in the key of a chart.
type LegendEntry struct {
	Name string
	Slot int
	Thin bool // the unloaded arm of a pair
	Bar  bool // a filled swatch instead of a line
}

// Bar is one row of a bar chart or of a pair chart.
type Bar struct {
	Block       string // what this row and the following ones belong to
	Label       string
	Slot        int
	Value       float64 // the bar, or the first of a pair
	Other       float64 // the second of a pair
	Thin        bool    // drawn hollow
	Text, Tip   string  // what stands at the end, and on hover
	FirstOfKind bool    // begins a new block of rows
}

// BarChart is horizontal bars from zero: lengths may be compared.
type BarChart struct {
	Title, Desc, XLabel string
	Bars                []Bar
	Legend              []LegendEntry
	Unit                func(float64) string
}

func (*BarChart) isChart() {}

// PairChart shows two values of one thing joined by a line, on a logarithmic axis.
type PairChart struct {
	Title, Desc, XLabel string
	Bars                []Bar
	Legend              []LegendEntry
	Unit                func(float64) string
}

func (*PairChart) isChart() {}

// Point is one value of a series. High, when above y, ends a whisker.
type Point struct {
	X, Y, High float64
	Tip        string // hover text; a point without one has no marker
	Few        bool   // rests on too few samples
	Gap        bool   // the one before it has no place on the axis
}

// Series is one line of a chart.
type Series struct {
	Name   string
	Short  string // for the key, if not name
	Slot   int
	Thin   bool
	Points []Point
}

// LineChart is a drawing with a labelled grid and one line a series.
type LineChart struct {
	Title, Desc    string
	YLabel, XLabel string
	X              Scale
	XTicks         []Tick
	XText          func(float64) string // x in a file of the data, if not the number itself
	YUnit          func(float64) string
	Linear         bool // the y axis begins at zero; else it is logarithmic
	Series         []Series
}

func (*LineChart) isChart() {}

// AddToTitle puts words behind the title of a chart.
func AddToTitle(c Chart, words string) {
	switch c := c.(type) {
	case *LineChart:
		c.Title += ", " + words
	case *BarChart:
		c.Title += ", " + words
	case *PairChart:
		c.Title += ", " + words
	case *HeatMap:
		c.Title += ", " + words
	}
}

// Heats is how many levels a heat map has; the last is what failed.
const Heats = 6

// HeatCell is one cell: how bad it is, from 0, and what a hover says.
type HeatCell struct {
	Row, Column int
	Heat        int
	Tip         string
}

// HeatMap is a square matrix by colour.
type HeatMap struct {
	Title, Desc string
	Down, Right string   // what rows and columns are
	Names       []string // of the rows, and of the columns
	Cells       []HeatCell
	Key         [Heats]string // what each level means
}

func (*HeatMap) isChart() {}

// Tick is one labelled position of an axis, in data units.
type Tick struct {
	At    float64
	Label string
}

// LogSpan widens lo..hi, both above 0, to numbers of 1, 2 or 5 times a power of ten.
func LogSpan(lo, hi float64) (float64, float64) {
	if !(lo > 0) || !(hi >= lo) || !Finite(hi) {
		return 1, 10
	}
	// A file may hold any number; an axis of hundreds of decades shows none.
	lo = min(max(lo, axisMin), AxisMax)
	return stepDown(lo), stepUp(min(max(hi, lo), AxisMax))
}

// axisMin and axisMax bound what an axis shows, in ns, MiB/s and the like.
const axisMin, AxisMax = 1e-6, 1e18

func stepDown(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*p <= v*0.98 {
			return m * p
		}
	}
	if p > v*0.98 {
		return p / 2
	}
	return p
}

func stepUp(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= v*1.02 {
			return m * p
		}
	}
	return 20 * p
}

// LogTicks labels the decades, and 2 and 5 between them where there is room.
func LogTicks(lo, hi float64, label func(float64) string) []Tick {
	decades := math.Log10(hi / lo)
	steps := []float64{1}
	switch {
	case decades < 1.7:
		steps = []float64{1, 2, 5}
	case decades < 3.2:
		steps = []float64{1, 3}
	}
	every := 1
	if decades > 7 {
		every = 2
	}
	var ts []Tick
	for e := int(math.Floor(math.Log10(lo) + 1e-9)); e <= int(math.Ceil(math.Log10(hi))); e++ {
		for _, m := range steps {
			v := m * math.Pow(10, float64(e))
			if v < lo*0.999 || v > hi*1.001 || e%every != 0 {
				continue
			}
			ts = append(ts, Tick{v, label(v)})
		}
	}
	return ts
}

// LinearTicks gives about five round steps from zero to at least hi.
func LinearTicks(hi float64, label func(float64) string) (ts []Tick, top float64) {
	if !(hi > axisMin) || !(hi < AxisMax) {
		hi = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(hi/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if hi/(m*step) <= 4 {
			step *= m
			break
		}
	}
	n := int(math.Ceil(hi/step - 1e-9))
	for i := 0; i <= n; i++ {
		ts = append(ts, Tick{float64(i) * step, label(float64(i) * step)})
	}
	return ts, float64(n) * step
}
