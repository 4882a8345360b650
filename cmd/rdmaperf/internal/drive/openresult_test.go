package drive

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// The rate that was achieved is of the window as it was meant to be, and of the time that passed
// where there is none or it broke; what was sent has what was not answered, too.
func TestAchievedRates(t *testing.T) {
	for _, c := range []struct {
		meant time.Duration
		err   error
		rate  float64
	}{{0, nil, 20}, {2 * time.Second, nil, 50}, {2 * time.Second, errors.New("broken"), 20}} {
		m := &engine.Measurement{Plan: &engine.Plan{Duration: c.meant}}
		o := OpenLoopOf(m, &engine.Outcome{Err: c.err, Unanswered: 3, Unsent: 7, Late: 2}, 55, false, 100,
			5*time.Second)
		if o.AchievedPerSecond != c.rate || o.Sent != 103 || o.Completed != 100 || o.Due != 110 || o.Late != 2 ||
			o.OfferedPerSecond != 55 {
			t.Errorf("a window of %v, %v: %+v", c.meant, c.err, o)
		}
	}
}

// Arrivals by chance may be as many fewer than the rate as chance makes them; constant ones not.
func TestArrivalsByChanceVary(t *testing.T) {
	for arrivals, saturated := range map[string]bool{engine.ArrivalsConstant: true, engine.ArrivalsPoisson: false} {
		m := &engine.Measurement{Plan: &engine.Plan{}, Sh: &engine.Shape{Point: engine.Point{Rate: 110},
			Arrivals: arrivals}}
		service := reports.NewRecorder()
		service.RecordN(500, 100)
		res := &reports.Result{Parameters: map[string]any{}}
		openLoop(m, res, &engine.Outcome{Service: service, Window: time.Second, Late: 4, Unsent: 0})
		if o := res.OpenLoop; o.Saturated != saturated || o.AchievedPerSecond != 100 ||
			res.LatencyService.Mean != 500 || res.Parameters["late_operations"] != int64(4) ||
			res.Parameters["rate_achieved"] != 100. {
			t.Errorf("%s: %+v, %v", arrivals, o, res.Parameters)
		}
	}
}
