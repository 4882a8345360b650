package reports

import (
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Answer is what a document shows: a matrix of figures with a row for each stack, and conclusions that rest on it.
type Answer struct {
	Columns []AnswerColumn `json:"columns"`
	Rows    []AnswerRow    `json:"rows"`

	// Conclusions are at most eight, with equal topics side by side. Omitted is how many more there are.
	Conclusions []Conclusion `json:"conclusions"`
	Omitted     int          `json:"omitted,omitempty"`

	// Comparisons is how many pairs of figures were compared, Undecided how many of them showed no difference.
	// Confidence is the level of each interval of a row, so that all hold together with 0.95; 0 where the rounds are
	// too few.
	Comparisons int     `json:"comparisons"`
	Undecided   int     `json:"undecided"`
	Confidence  float64 `json:"confidence,omitempty"`

	// Reliance says in at most four sentences what limits the figures: noise, simulated parts, what was verified.
	Reliance []string `json:"reliance,omitempty"`
}

// AnswerColumn is one figure of one point.
type AnswerColumn struct {
	Title  string `json:"title"`  // the figure: half round trip, bulk rate, probe beside bulk
	Point  string `json:"point"`  // of what: 64 B send
	Figure string `json:"figure"` // as in thresholds: p50, bw, …
	Unit   string `json:"unit"`   // ns, B/s, 1/s, …
	Better Better `json:"better"`
	Pays   bool   `json:"pays,omitempty"` // for the column before it: the bulk beside which probes were measured
}

// Quantity is what the figures of the column count.
func (c AnswerColumn) Quantity() Quantity { return quantityOf(c.Unit) }

// Narrow is the matrix for a terminal, without what pays for other columns. The same figure of two operations shares a
// column where no stack has both.
func (a *Answer) Narrow() *Answer { return a.joined(false) }

// Joined is Narrow with the columns of what is paid.
func (a *Answer) Joined() *Answer { return a.joined(true) }

func (a *Answer) joined(pays bool) *Answer {
	n := &Answer{Rows: make([]AnswerRow, len(a.Rows))}
	for i, r := range a.Rows {
		n.Rows[i] = AnswerRow{Stack: r.Stack, Variant: r.Variant}
	}
	for k, c := range a.Columns {
		if c.Pays && !pays {
			continue
		}
		at := slices.IndexFunc(n.Columns, func(o AnswerColumn) bool { return c.joins(o) })
		for i := range a.Rows {
			if at >= 0 && n.Rows[i].Cells[at] != nil && a.Rows[i].cell(k) != nil {
				at = -1
			}
		}
		if at < 0 {
			at = len(n.Columns)
			n.Columns = append(n.Columns, c)
		} else {
			n.Columns[at].Point += " or " + c.Point[strings.LastIndexByte(c.Point, ' ')+1:]
			if n.Columns[at].Title != c.Title {
				n.Columns[at].Title = TitleHalf + " (calls: full)"
			}
		}
		for i := range n.Rows {
			if cell := a.Rows[i].cell(k); at == len(n.Rows[i].Cells) {
				n.Rows[i].Cells = append(n.Rows[i].Cells, cell)
			} else if cell != nil {
				n.Rows[i].Cells[at] = cell
			}
		}
	}
	return n
}

// joins tells columns of the same figure, whose points differ in nothing but their last word, the operation.
func (c AnswerColumn) joins(o AnswerColumn) bool {
	i, k := strings.LastIndexByte(c.Point, ' '), strings.LastIndexByte(o.Point, ' ')
	alike := c.Title == o.Title || c.Title == TitleWhole && o.Title == TitleHalf && strings.HasSuffix(c.Point, " call")
	return i > 0 && k > 0 && c.Point[:i] == o.Point[:k] && alike && c.Unit == o.Unit
}

// Titles of columns of latencies.
const (
	TitleHalf  = "half round trip"
	TitleWhole = "round trip"
)

// AnswerRow is the figures of one stack, a cell for each column; nil where it was not measured.
type AnswerRow struct {
	Stack   string        `json:"stack"`             // as it was asked for
	Variant string        `json:"variant,omitempty"` // where a stack was measured in several ways: the arm
	Cells   []*AnswerCell `json:"cells"`
}

// Name is the stack with its variant.
func (r *AnswerRow) Name() string { return r.Stack + view.When(r.Variant != "", ", "+r.Variant) }

// AnswerCell is the median over the rounds, in the unit of its column, and its interval with the machine's noise; nil
// where the rounds are too few.
type AnswerCell struct {
	Value  float64     `json:"value"`
	Within *[2]float64 `json:"within,omitempty"`
	Rounds int         `json:"rounds"`
	Taken  float64     `json:"taken,omitempty"` // the part of the windows that the machine took, the median of the rounds
}

// Topics of conclusions, in the order in which they are shown. Other workloads have their title as topic.
const (
	TopicSmall = "Small messages and calls"
	TopicBulk  = "Bulk"
	TopicBoth  = "Both at once"
)

// Conclusion is one sentence, and what it says as figures.
type Conclusion struct {
	Topic string `json:"topic"`
	Text  string `json:"text"`  // without a full stop
	Stack string `json:"stack"` // name of a row
	Base  string `json:"base"`  // the row that it is compared with
	AnswerRatio
	Price *AnswerRatio `json:"price,omitempty"` // what it costs, in another column
}

// AnswerRatio is how many times better a stack is than its base in one column. Within includes both sides' noise; nil
// for one round.
type AnswerRatio struct {
	Column int         `json:"column"` // index of Columns
	Factor float64     `json:"factor"`
	Within *[2]float64 `json:"within,omitempty"`
}

// MarshalText is less, more or neither.
func (b Better) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads it; a word of another version is neither.
func (b *Better) UnmarshalText(text []byte) error {
	for *b = Less; *b < Neither && b.String() != string(text); *b++ {
	}
	return nil
}
