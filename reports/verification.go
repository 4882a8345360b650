package reports

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Values of Verification.Mode.
const (
	VerifyAll    = "all"    // every byte of every message that its workload can look at
	VerifySample = "sample" // a sample of whole messages, and the numbers of those that carry one
	VerifyNone   = "none"
)

// Verification is how much of the data in the measured window was compared, by both sides.
type Verification struct {
	Mode     string `json:"mode"`
	Messages int64  `json:"messages"` // operations of the window
	Numbers  int64  `json:"numbers"`  // messages of which at least the number was compared
	Whole    int64  `json:"whole"`    // messages that were compared byte by byte
	Bytes    int64  `json:"bytes"`    // of all comparisons
}

// Add counts what was compared of another point, too; nil is nothing.
func (v *Verification) Add(o *Verification) {
	if o != nil {
		v.Messages, v.Numbers, v.Whole, v.Bytes = v.Messages+o.Messages, v.Numbers+o.Numbers, v.Whole+o.Whole,
			v.Bytes+o.Bytes
	}
}

// String says it in one sentence.
func (v *Verification) String() string {
	if v.Mode == VerifyNone {
		return "nothing was compared of " + view.Plural(v.Messages, "message")
	}
	return fmt.Sprintf("of %s %s compared byte by byte and the numbers of %s, %s", view.Plural(v.Messages, "message"),
		view.Integer(v.Whole), view.Integer(v.Numbers), view.Plural(v.Bytes, "byte"))
}
