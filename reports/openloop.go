package reports

import (
	"fmt"
	"math"
	"time"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// OpenLoop says whether an open loop kept up with its arrivals. What was due and not done is in the latency with the
// time that it had waited ([Latency.Unfinished]).
type OpenLoop struct {
	Due       int64 `json:"due"`       // operations whose intended start was inside the window
	Sent      int64 `json:"sent"`      // of these
	Completed int64 `json:"completed"` // of these
	Late      int64 `json:"late"`      // sent after they were due, because others were under way

	OfferedPerSecond  float64 `json:"offered_per_second"`
	AchievedPerSecond float64 `json:"achieved_per_second"` // completed over the window

	// Saturated: less than 99 in 100 of what was due was done, or in time. Latencies then grow with the window.
	Saturated bool `json:"saturated"`
}

// keepsUp is the share of the offered load from which on a loop keeps up. Arbitrary.
const keepsUp = 0.99

// NewOpenLoop judges a window at a rate per second. unsent were due and never sent.
func NewOpenLoop(rate float64, poisson bool, sent, completed, unsent, late int64, window time.Duration) *OpenLoop {
	o := &OpenLoop{Due: sent + unsent, Sent: sent, Completed: completed, Late: late, OfferedPerSecond: rate}
	if window > 0 {
		o.AchievedPerSecond = float64(completed) / window.Seconds()
	}
	if o.Due == 0 {
		return o
	}
	// The last arrival's distance to the end is no loss; a Poisson process is off by three deviations once in 700
	// windows.
	slack := 1.
	if poisson {
		slack += 3 * math.Sqrt(float64(o.Due))
	}
	o.Saturated = float64(completed) < keepsUp*float64(o.Due) ||
		float64(completed)+slack < keepsUp*rate*window.Seconds()
	return o
}

// Mark is "saturated" or empty.
func (o *OpenLoop) Mark() string { return view.When(o.Saturated, "saturated") }

// String is the loop in one sentence.
func (o *OpenLoop) String() string {
	return fmt.Sprintf("%s due, %d sent, %d completed, %s/s achieved of %s/s offered", view.Plural(o.Due, "operation"),
		o.Sent, o.Completed, view.RateText(math.Round(o.AchievedPerSecond*10)/10), view.RateText(o.OfferedPerSecond)) +
		view.When(o.Saturated, ", saturated: the load is above what the path sustains, and latencies grow with the window")
}

// Texts are what was due, sent and completed, and the rates offered and achieved.
func (o *OpenLoop) Texts() []string {
	return []string{view.Integer(o.Due), view.Integer(o.Sent), view.Integer(o.Completed),
		view.RateText(o.OfferedPerSecond), view.Number(o.AchievedPerSecond, 1)}
}
