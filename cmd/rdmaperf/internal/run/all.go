package run

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
)

const (
	// allTime is what is planned where windows may be chosen; with slices that grow the run takes at most 45 s.
	allTime  = 41 * time.Second
	allStart = 3 * time.Second // for what comes before the first point: opening, the other process
	// allBeside is what a point takes beside its windows and its warm-up, measured as 0.1 to 0.4 s.
	allBeside    = 200 * time.Millisecond
	allWarmup    = 60 * time.Millisecond
	leastAll     = 22 * time.Millisecond // of 15 rounds and more an interval at the level of 28 figures leaves one out
	mostWindow   = time.Second
	longTime     = 20 * time.Second // from when on the time of a run with several stacks of its own is announced
	allRounds    = 16
	compareTime  = 2 * time.Second       // how long a point is measured that is compared: 32 slices of 62 ms
	windowBeside = 38 * time.Millisecond // what a window of a slice takes beside itself, measured as 20 to 45 ms
	// From ordinarySize on, sixteen messages under way arrive at drainRate, bytes a second, on two CPUs with iwarp.
	ordinarySize = 1 << 20
	drainRate    = 2400 << 20
)

// fewPoints leaves of each workload and operation the smallest and the largest size.
func fewPoints(points []engine.Point) []engine.Point {
	type group struct{ workload, op, arm string }
	ends := map[group][2]int{}
	for _, pt := range points {
		g := group{pt.Workload, pt.Op, pt.Variant}
		e, ok := ends[g]
		if !ok {
			e = [2]int{pt.Size, pt.Size}
		}
		ends[g] = [2]int{min(e[0], pt.Size), max(e[1], pt.Size)}
	}
	return slices.DeleteFunc(slices.Clone(points), func(pt engine.Point) bool {
		e := ends[group{pt.Workload, pt.Op, pt.Variant}]
		return pt.Size != e[0] && pt.Size != e[1]
	})
}

// cut chooses the number of rounds and the length of a slice, and says how long the whole will take.
func (m *runner) cut() time.Duration {
	points, windows, compares := 0, 0, false
	for _, g := range m.p.groups() {
		turns := m.turns(g)
		compares = compares || len(turns) > 1
		for _, t := range turns {
			points++
			windows += max(t.pt.Windows, 1)
		}
	}
	base, rounds := &m.p.base, m.o.rounds
	timed := base.Duration > 0 && !m.o.infinite
	compares = compares && timed && base.Interval == 0 && m.raw.file == "" && !slices.ContainsFunc(m.p.points,
		func(pt engine.Point) bool { return !metaOf(pt).Slices }) // to set others up for each slice is not done unasked
	slice := base.Duration
	switch {
	case m.p.chooseTime:
		for rounds = cmp.Or(rounds, allRounds); ; rounds-- {
			left := allTime - allStart - time.Duration(points)*(allBeside+allWarmup)
			slice = min(left/time.Duration(max(windows*rounds, 1))-windowBeside, mostWindow).Round(time.Millisecond)
			if slice >= leastAll || rounds == 1 || m.o.rounds > 0 {
				break
			}
		}
		slice = max(slice, leastAll)
	case rounds == 0 && compares:
		if m.o.duration == "" {
			base.Duration = compareTime
		}
		rounds = max(1, min(defaultRounds, int(base.Duration/leastSlice)))
	}
	if m.rounds = max(rounds, 1); timed && !m.p.chooseTime {
		slice = max(base.Duration/time.Duration(m.rounds), time.Millisecond)
	}
	for _, a := range m.arms {
		p := &a.plan
		p.Rounds = m.rounds
		if p.Duration = slice; m.p.chooseTime {
			p.WarmupDuration, p.WarmupIterations = allWarmup, 1000
		}
	}
	if m.p.chooseTime && m.o.rounds == 0 {
		m.least = min(m.rounds, answer.RoundsFor(answer.Level(windows)))
	}
	total := allStart
	for _, g := range m.p.groups() {
		total += m.planned(g)
	}
	for _, a := range m.arms {
		if m.rounds > 1 {
			a.plan.Between = min(growth*total, longest) // what the others take between two slices is less
		}
	}
	return total
}

func (m *runner) planned(g group) (total time.Duration) {
	for _, t := range m.turns(g) {
		p := &t.a.plan
		beside := windowBeside
		if metaOf(t.pt).Slices { // elsewhere a size is not that of a message
			beside += time.Duration(float64(max(t.pt.Size-ordinarySize, 0)) * 16 / drainRate * float64(time.Second))
		}
		each := time.Duration(max(t.pt.Windows, 1))*beside + p.PlannedTime(t.pt)
		if t.pt.Time == 0 && p.Duration > 0 {
			each -= p.WarmupDuration // which is once for all rounds
		}
		total += allBeside + p.WarmupDuration + time.Duration(m.rounds)*each
	}
	return total
}

const (
	largeMemory = 256 << 20 // bytes, from which on it is announced. Arbitrary
	windowsEach = 3         // windows of a message's size that one end of a ping-pong has, at most: measured with iwarp
	fillRate    = 50 << 20  // bytes a second in which messages of 64 and 256 MiB were filled and compared, on two CPUs
)

// large is what messages take here beside their windows: memory at once, and time in all; 0 where it is little.
func (m *runner) large() (memory int64, took time.Duration) {
	ends := int64(2)
	if m.o.host != "" {
		ends = 1
	}
	var all float64
	for _, a := range m.arms {
		if stackspec.CallsOnly(a.spec) { // a call has no windows
			continue
		}
		for _, pt := range a.plan.Points {
			if !metaOf(pt).Slices { // its memory is another
				continue
			}
			bytes := int64(pt.Size) * int64(max(a.plan.QPs, 1))
			memory = max(memory, windowsEach*ends*bytes)
			all += float64(bytes)
		}
	}
	if memory < largeMemory {
		return 0, 0
	}
	return memory, time.Duration(all / fillRate * float64(time.Second))
}

func (m *runner) announce(w io.Writer, total time.Duration) {
	columns := 1 << 20 // a line each
	if m.p.everything {
		columns = cli.Width(w)
	}
	say := func(format string, args ...any) {
		fmt.Fprintln(w, cli.Fill(fmt.Sprintf(format, args...), columns))
	}
	if m.p.everything {
		say("%s", m.sideBySide(total))
	}
	for _, l := range m.left {
		say("Left out: %s, %s.", l.Stack, l.Why)
	}
	if m.p.everything {
		fmt.Fprintln(w)
	}
	for _, a := range m.arms {
		if a.given == m.o.chosen && a.spec != stackspec.Embedded() {
			m.log.Info("measure the first RDMA device with an ACTIVE port", "transport", a.spec, "else",
				"--transport "+stackspec.Embedded())
		}
	}
}

func (m *runner) sideBySide(total time.Duration) string {
	var names []string
	for _, a := range m.arms {
		names = append(names, a.spec)
	}
	return fmt.Sprintf("Measures %d stacks side by side, in about %v: %s.", len(m.arms), total.Round(time.Second),
		strings.Join(names, ", "))
}

// announceLong says what takes long, once the first connection is there: then nothing refuses the plan any more.
func (m *runner) announceLong() {
	if m.o.quiet || m.saidLong {
		return
	}
	m.saidLong = true
	if len(m.arms) > 1 && !m.p.everything && m.total >= longTime && !m.o.infinite {
		fmt.Fprintln(m.stderr, m.sideBySide(m.total))
	}
	if memory, took := m.large(); memory > 0 {
		fmt.Fprintf(m.stderr, "Large messages: up to %s of memory, and about %v to fill and compare them.\n",
			reports.FormatSize(memory), took.Round(time.Second))
	}
}
