package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress draws a bar between points, and within one when Live is called, without a goroutine or a timer. Lines are
// cut to the terminal's width, as longer ones cannot be taken back. A nil Progress is silent.
type Progress struct {
	mu  sync.Mutex // live comes from a watcher
	bar *progressbar.ProgressBar
	now func() time.Time
	out io.Writer

	total, done int
	ahead       time.Duration // planned, of points that are not finished
	behind      time.Duration // planned, of finished points
	spent       time.Duration // in finished points

	what  string    // the current point
	began time.Time // of the current point
	cost  time.Duration
}

func wantsProgress(w io.Writer, silent bool, getenv func(string) string, isTerminal func(fd int) bool) bool {
	f, ok := w.(*os.File)
	return ok && !silent && getenv("CI") == "" && getenv("TERM") != "dumb" && isTerminal(int(f.Fd()))
}

// NewProgress returns a bar for points with these planned times, or nil when nobody looks. A time of zero is unknown.
func NewProgress(w io.Writer, silent bool, costs []time.Duration) *Progress {
	if len(costs) == 0 || !wantsProgress(w, silent, os.Getenv, term.IsTerminal) {
		return nil
	}
	return drawProgress(w, costs, time.Now)
}

func drawProgress(w io.Writer, costs []time.Duration, now func() time.Time) *Progress {
	p := &Progress{now: now, out: w, total: len(costs)}
	for _, c := range costs {
		p.ahead += c
	}
	// The library's prediction goes by calls a second; the plan knows better.
	p.bar = progressbar.NewOptions(p.total*barSteps, progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(barWidth(w)),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0))
	return p
}

// Before draws what is measured next and the time that is left.
func (p *Progress) Before(transport, point string, cost time.Duration) {
	if p == nil {
		return
	}
	left := ""
	if d := p.left(); d > 0 {
		left = ", about " + d.String() + " left"
	}
	p.what = fmt.Sprintf("%d/%d %s %s", p.done+1, max(p.total, p.done+1), transport, point)
	p.describe(p.what + left)
	p.began, p.cost = p.now(), cost
}

// Within says how far the current point is.
func (p *Progress) Within(done, total int64) {
	if p != nil && total > 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.describe(fmt.Sprintf("%s, %d of %d", p.what, done, total))
	}
}

func (p *Progress) describe(line string) {
	p.bar.Describe(Cut(line, Width(p.out)-barWidth(p.out)-barColumns))
}

// Live draws how the current point goes.
func (p *Progress) Live(line string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.describe(p.what + ": " + line)
	if inside := p.now().Sub(p.began); p.cost > 0 && p.done < p.total {
		p.bar.Set(p.done*barSteps + int(min(float64(inside)/float64(p.cost), 0.99)*barSteps))
	}
}

// Line prints a line above the bar.
func (p *Progress) Line(w io.Writer, text string) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.bar.Clear()
		text = Cut(text, Width(p.out)-1)
	}
	fmt.Fprintln(w, text)
}

const (
	barSteps   = 100 // of a point
	barColumns = 14  // what the library draws around the bar behind the description, " 100% |" and "|", and room
)

func barWidth(w io.Writer) int {
	if Width(w) < 100 {
		return 10
	}
	return 20
}

// After counts the point that before named.
func (p *Progress) After() {
	if p == nil {
		return
	}
	p.done++
	p.spent += p.now().Sub(p.began)
	p.behind += p.cost
	p.ahead = max(p.ahead-p.cost, 0)
	if p.done < p.total { // a full bar would end its line
		p.bar.Set(p.done * barSteps) // an error of the terminal is no error of the run
	}
}

// Skip takes away points that are not measured, each with its planned time.
func (p *Progress) Skip(costs []time.Duration) {
	if p == nil {
		return
	}
	for _, c := range costs {
		p.total--
		p.ahead = max(p.ahead-c, 0)
	}
	p.bar.ChangeMax(p.total * barSteps)
}

// left is the plan's time, corrected by how finished points kept to theirs, or their mean; 0 is unknown.
func (p *Progress) left() time.Duration {
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

// End takes the bar away, so that results begin on a clean line.
func (p *Progress) End() {
	if p != nil {
		p.bar.Clear()
	}
}
