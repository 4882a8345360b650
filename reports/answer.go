package reports

// Answer is what a document shows: a matrix of figures with a row for each stack, and conclusions that rest on it.
type Answer struct {
	Columns []AnswerColumn `json:"columns"`
	Rows    []AnswerRow    `json:"rows"`

	// Conclusions are at most eight, in the order of a reader's questions. Omitted is how many more there are.
	Conclusions []Conclusion `json:"conclusions"`
	Omitted     int          `json:"omitted,omitempty"`

	// Comparisons is how many pairs of figures were compared; each has the level Confidence, so that all of them
	// together hold with 0.95. Undecided is how many of them showed no difference.
	Comparisons int     `json:"comparisons"`
	Undecided   int     `json:"undecided"`
	Confidence  float64 `json:"confidence,omitempty"`

	// Reliance says in at most four sentences what limits the figures: noise, simulated parts, what was verified.
	Reliance []string `json:"reliance,omitempty"`
}

// AnswerColumn is one figure of one point.
type AnswerColumn struct {
	Title  string   `json:"title"`  // such as "64 B send, half round trip"
	Figure string   `json:"figure"` // as in thresholds: p50, bw, …
	Unit   string   `json:"unit"`
	Better Better   `json:"-"`
	Of     Quantity `json:"-"`
}

// AnswerRow is the figures of one stack, a cell for each column; nil where it was not measured.
type AnswerRow struct {
	Stack string        `json:"stack"`
	Cells []*AnswerCell `json:"cells"`
}

// AnswerCell is the median over the rounds, in the unit of its column, and its interval: nil where the rounds are too
// few for one.
type AnswerCell struct {
	Value  float64     `json:"value"`
	Within *[2]float64 `json:"within,omitempty"`
	Rounds int         `json:"rounds"`
}

// Topics of conclusions, in the order in which they are shown.
const (
	TopicSmall = "Small messages and calls"
	TopicBulk  = "Bulk"
	TopicBoth  = "Both at once"
)

// Conclusion is one sentence, and what it says as figures.
type Conclusion struct {
	Topic  string     `json:"topic"`
	Text   string     `json:"text"`
	Stack  string     `json:"stack"`
	Base   string     `json:"base"`   // the stack that it is compared with
	Column int        `json:"column"` // index of Columns
	Factor float64    `json:"factor"` // how many times better than Base, above 1, or below 1 where it costs
	Within [2]float64 `json:"within"`
}
