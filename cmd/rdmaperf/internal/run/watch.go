package run

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/disturbance"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// liveEvery is how often a terminal shows how a point goes. Arbitrary; a reading takes some 10 us.
const liveEvery = 500 * time.Millisecond

// watcher shows intervals as they end: in the bar, as lines with --interval, as a screen with --run-infinitely. A nil
// watcher shows nothing.
type watcher struct {
	live  *engine.Live
	every time.Duration // between two looks
	show  func(p reports.SeriesPoint, every time.Duration)
	stop  chan struct{}
	ended sync.WaitGroup
}

// watch follows the next point of c until end. Its goroutine ends there.
func watch(c *engine.Client, every time.Duration, show func(reports.SeriesPoint, time.Duration)) *watcher {
	if show == nil {
		return nil
	}
	w := &watcher{live: engine.NewLive(every), every: every, show: show, stop: make(chan struct{})}
	c.Live = w.live
	w.ended.Go(func() {
		tick := time.NewTicker(max(every, 100*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				w.look()
				return
			case <-tick.C:
				w.look()
			}
		}
	})
	return w
}

func (w *watcher) look() {
	for {
		p, every, ok := w.live.Next()
		if !ok {
			return
		}
		w.show(p, every)
	}
}

// end ends the watching; what ended since the last look is shown.
func (w *watcher) end() {
	if w != nil {
		close(w.stop)
		w.ended.Wait()
	}
}

// rates is what an interval says in one line: rate, bandwidth and latency, as far as there are any.
func rates(p reports.SeriesPoint, every time.Duration, size int, gbits bool) string {
	perSecond := float64(p.Operations) / every.Seconds()
	parts := []string{scaled(perSecond) + "/s"}
	if p.Max > 0 {
		parts = append([]string{"p50 " + shortTime(p.P50), "p99 " + shortTime(p.P99), "max " + shortTime(p.Max)},
			parts...)
	}
	switch bytes := perSecond * float64(size); {
	case size == 0:
	case gbits:
		parts = append(parts, fmt.Sprintf("%.2f Gb/s", bytes*8/1e9))
	default:
		parts = append(parts, fmt.Sprintf("%.1f MiB/s", bytes/(1<<20)))
	}
	return strings.Join(parts, ", ")
}

// scaled is a number with three digits and k, M or G.
func scaled(v float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.of {
			return fmt.Sprintf("%.3g%s", v/u.of, u.name)
		}
	}
	return fmt.Sprintf("%.3g", v)
}

func shortTime(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.2f us", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.2f ms", ns/1e6)
	}
	return fmt.Sprintf("%.2f s", ns/1e9)
}

// screen is what --run-infinitely shows: like top(1) on a terminal, a line an interval elsewhere.
type screen struct {
	w        io.Writer
	terminal bool
	title    string
	size     int
	gbits    bool
	threads  *disturbance.Reader
	before   reports.Noise
	worst    float64 // ns
	total    int64
	drawn    int // lines on the screen
}

func newScreen(w io.Writer, terminal bool, title string, size int, gbits bool) *screen {
	s := &screen{w: w, terminal: terminal, title: title, size: size, gbits: gbits, threads: disturbance.Of()}
	s.before = s.threads.Read()
	return s
}

// show draws an interval. The disturbances are those of this process since the start.
func (s *screen) show(p reports.SeriesPoint, every time.Duration) {
	s.worst, s.total = max(s.worst, p.Max), s.total+p.Operations
	took := time.Duration(p.OffsetNs) + every
	if !s.terminal {
		fmt.Fprintf(s.w, "%s %8s  %s\n", s.title, took.Round(time.Millisecond), rates(p, every, s.size, s.gbits))
		return
	}
	noise := disturbance.Between(s.before, s.threads.Read())
	lines := []string{
		fmt.Sprintf("%s, %s, %s operations; Ctrl-C ends with a result", s.title, took.Round(time.Second),
			scaled(float64(s.total))),
		"now    " + rates(p, every, s.size, s.gbits),
	}
	if s.worst > 0 {
		lines = append(lines, "worst  "+shortTime(s.worst))
	}
	lines = append(lines, fmt.Sprintf("noise  %d involuntary switches, %s waiting for a CPU, %s stolen",
		noise.InvoluntarySwitches, shortTime(float64(noise.RunQueueWaitNs)), shortTime(float64(noise.StealNs))))
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn) // up to the first line (ECMA-48, CUU)
	}
	for _, l := range lines {
		b.WriteString(cli.Cut(l, cli.Width(s.w)) + "\x1b[K\n")
	}
	s.drawn = len(lines)
	io.WriteString(s.w, b.String()) // an error of the terminal is no error of the run
}

func (m *runner) lookEvery() time.Duration {
	switch {
	case m.p.base.Interval > 0:
		return m.p.base.Interval
	case m.o.infinite:
		return time.Second
	}
	return liveEvery
}

func (m *runner) looker(a *arm, pt engine.Point) func(reports.SeriesPoint, time.Duration) {
	title := a.tr.Name() + " " + pt.String()
	switch {
	case m.o.infinite:
		f, ok := m.stderr.(*os.File)
		return newScreen(m.stderr, ok && term.IsTerminal(int(f.Fd())), title, pt.Size, m.o.gbits).show
	case m.p.base.Interval > 0 && !m.o.quiet:
		return func(p reports.SeriesPoint, every time.Duration) {
			from := time.Duration(p.OffsetNs)
			m.bar.Line(m.stderr, fmt.Sprintf("%s %s-%s: %s", title, from, from+every,
				rates(p, every, pt.Size, m.o.gbits)))
		}
	case m.bar != nil && a.plan.PlannedTime(pt) > 2*liveEvery:
		return func(p reports.SeriesPoint, every time.Duration) { m.bar.Live(rates(p, every, pt.Size, m.o.gbits)) }
	}
	return nil
}
