package view

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
