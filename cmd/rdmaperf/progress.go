package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
)

// progress draws a bar between points. It has no goroutine and no timer, so that
// nothing of it runs while a point is measured; what it says stands still then.
// A nil progress is silent.
type progress struct {
	bar *progressbar.ProgressBar
	now func() time.Time

	total, done int
	ahead       time.Duration // planned, of points that are not finished
	behind      time.Duration // planned, of finished points
	spent       time.Duration // in finished points

	began time.Time // of the current point
	cost  time.Duration
}

// wantsProgress tells whether somebody looks at w.
func wantsProgress(w io.Writer, silent bool, getenv func(string) string, isTerminal func(fd int) bool) bool {
	f, ok := w.(*os.File)
	return ok && !silent && getenv("CI") == "" && getenv("TERM") != "dumb" && isTerminal(int(f.Fd()))
}

// newProgress returns a bar for points with these planned times, or nil when
// nobody looks. A time of zero is unknown.
func newProgress(w io.Writer, silent bool, costs []time.Duration) *progress {
	if len(costs) == 0 || !wantsProgress(w, silent, os.Getenv, term.IsTerminal) {
		return nil
	}
	return drawProgress(w, costs, time.Now)
}

func drawProgress(w io.Writer, costs []time.Duration, now func() time.Time) *progress {
	p := &progress{now: now, total: len(costs)}
	for _, c := range costs {
		p.ahead += c
	}
	// The library's prediction goes by calls a second; the plan knows better.
	p.bar = progressbar.NewOptions(p.total, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(20),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionSetSpinnerChangeInterval(0))
	return p
}

// before draws what is measured next and the time that is left.
func (p *progress) before(transport, point string, cost time.Duration) {
	if p == nil {
		return
	}
	left := ""
	if d := p.left(); d > 0 {
		left = ", about " + d.String() + " left"
	}
	p.bar.Describe(fmt.Sprintf("%d/%d %s %s%s", p.done+1, max(p.total, p.done+1), transport, point, left))
	p.began, p.cost = p.now(), cost
}

// after counts the point that before named.
func (p *progress) after() {
	if p == nil {
		return
	}
	p.done++
	p.spent += p.now().Sub(p.began)
	p.behind += p.cost
	p.ahead = max(p.ahead-p.cost, 0)
	if p.done < p.total { // a full bar would end its line
		p.bar.Set(p.done) // an error of the terminal is no error of the run
	}
}

// left is the time until the end: the plan's, corrected by how finished points
// kept to theirs, or without a plan their mean. Zero is unknown.
func (p *progress) left() time.Duration {
	d := p.ahead
	switch {
	case p.ahead > 0 && p.behind > 0:
		d = time.Duration(float64(p.ahead) * float64(p.spent) / float64(p.behind))
	case p.ahead == 0 && p.done > 0:
		d = p.spent / time.Duration(p.done) * time.Duration(p.total-p.done)
	}
	if d < 2*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// end takes the bar away, so that results begin on a clean line.
func (p *progress) end() {
	if p != nil {
		p.bar.Clear()
	}
}

// plannedTime is how long a point takes by its plan; zero when operations are
// counted instead.
func plannedTime(p *bench.Plan, pt bench.Point) time.Duration {
	windows := time.Duration(1)
	switch pt.Workload {
	case bench.WorkloadHOL:
		windows = 3 // probes alone, bulk alone, both
	case bench.WorkloadStarvation:
		windows = 2 // one class alone, both
	}
	if p.Duration == 0 {
		return 0
	}
	return p.WarmupDuration + windows*p.Duration
}

// costs are the planned times of all points of all transports and repeats.
func (m *runner) costs() []time.Duration {
	var costs []time.Duration
	for _, a := range m.arms {
		for _, pt := range a.plan.Points {
			costs = append(costs, plannedTime(&a.plan, pt))
		}
	}
	return slices.Repeat(costs, m.o.repeat)
}
