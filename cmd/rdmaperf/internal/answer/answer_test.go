package answer

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// texts are the sentences of a document.
func texts(a *reports.Answer) []string {
	return view.Each(a.Conclusions, func(c reports.Conclusion) string { return c.Text })
}

func wantText(t *testing.T, a *reports.Answer, want string) {
	t.Helper()
	if !slices.Contains(texts(a), want) {
		t.Errorf("no sentence %q in:\n%s", want, strings.Join(texts(a), "\n"))
	}
}

var (
	three  = []string{"iwarp", "tcp", "sched+iwarp"}
	quick  = map[string]float64{"iwarp": 5500, "tcp": 5000, "sched+iwarp": 5500}
	probes = map[string]float64{"iwarp": 11e6, "tcp": 12e6, "sched+iwarp": 1e5}
	bulk   = map[string]float64{"iwarp": 6e9, "tcp": 6e9, "sched+iwarp": 5.7e9}
)

// threeStacks is a run of three stacks that differ as they do in truth.
func threeStacks(rounds int, sigma, taken float64) *maker {
	m := newMaker(sigma)
	m.taken = taken
	m.latency(rounds, 64, quick, three...)
	m.stream(rounds, 1<<20, bulk, three...)
	m.hol(rounds, "same-qp", probes, bulk, three...)
	return m
}

func TestWhatALayerCostsAndGains(t *testing.T) {
	a := Of(&threeStacks(24, 0.005, 0).Document)
	wantText(t, a, "iwarp takes 1.1x the time of tcp for a 64 B send (1.1 to 1.11x)")
	wantText(t, a, "sched+iwarp moves 1 MiB writes at 0.95x the rate of iwarp (0.94 to 0.95x)")
	wantText(t, a, "sched+iwarp answers a probe behind 1 MiB writes 110x sooner than iwarp (109 to 111x), at 0.95x of "+
		"the bulk's rate")
	// Equal latencies of sched+iwarp and iwarp, and equal rates of iwarp and tcp alone and beside probes.
	if a.Comparisons != 8 || a.Undecided != 3 || a.Omitted != 0 || a.Confidence != Level(12) {
		t.Errorf("%d comparisons, %d undecided, %d omitted, level %v", a.Comparisons, a.Undecided, a.Omitted,
			a.Confidence)
	}
	i := slices.IndexFunc(a.Conclusions,
		func(c reports.Conclusion) bool { return c.Price != nil && c.Stack == "sched+iwarp" })
	if i < 0 || a.Columns[a.Conclusions[i].Price.Column].Figure != "loaded.bw" {
		t.Errorf("the price of sched is not in the column of the bulk: %+v", a.Conclusions)
	}
	topics := slices.Compact(view.Each(a.Conclusions, func(c reports.Conclusion) string { return c.Topic }))
	if !slices.Equal(topics, []string{reports.TopicSmall, reports.TopicBulk, reports.TopicBoth}) {
		t.Error(topics)
	}
}

func TestOneRoundHasRatiosAndNoInterval(t *testing.T) {
	a := Of(&threeStacks(1, 0.001, 0).Document)
	wantText(t, a, "iwarp takes 1.1x the time of tcp for a 64 B send (no interval: one round)")
	for _, c := range a.Conclusions {
		if c.Within != nil || !strings.Contains(c.Text, "no interval: one round") {
			t.Errorf("one round says %q", c.Text)
		}
	}
	for _, r := range a.Rows {
		for _, c := range r.Cells {
			if c.Within != nil || c.Rounds != 1 {
				t.Errorf("a cell of one round has %+v", c)
			}
		}
	}
	const want = "One round of 100 ms a point: no interval and no winner; 9 or more give intervals for 8 comparisons"
	if a.Confidence != 0 || a.Reliance[0] != want {
		t.Errorf("level %v, %q", a.Confidence, a.Reliance)
	}
}

// Two of three rounds say nothing of the third.
func TestFewRoundsThatDisagreeAreNotTold(t *testing.T) {
	m := newMaker(0)
	for i, v := range []float64{4000, 4000, 6000} {
		m.latency(1, 64, map[string]float64{"tcp": 5000, "iwarp": v}, "tcp", "iwarp")
		for k := range 2 {
			m.Results[2*i+k].Repeat = i + 1
		}
	}
	if a := Of(&m.Document); len(a.Conclusions) != 0 || a.Undecided != 1 {
		t.Errorf("told %q", texts(a))
	}
}

// Two processes that spin on two CPUs wait for a third to half of their time, and a difference of 110 is still one.
func TestNoiseBoundsAConclusionAndDoesNotForbidIt(t *testing.T) {
	a := Of(&threeStacks(24, 0.05, 0.4).Document)
	wantText(t, a, "sched+iwarp answers a probe behind 1 MiB writes at least 61.3x sooner than iwarp (112x measured), "+
		"with no difference shown in the bulk's rate")
	if len(a.Conclusions) != 1 {
		t.Errorf("differences that noise explains are told: %q", texts(a))
	}
	const want = "CPU contention in 216 of 216 measurements: differences below about 1.7x are not shown here"
	if a.Reliance[0] != want {
		t.Errorf("%q", a.Reliance)
	}
	low := a.Rows[0].Cells[0].Within[0]
	if low > 0.6*5600 {
		t.Errorf("a median of 5500 ns of which 40 %% of the window was taken is at least %v", low)
	}
}

func TestAStackAloneHasFiguresAndNoComparison(t *testing.T) {
	m := newMaker(0.02)
	m.latency(12, 64, quick, "iwarp")
	a := Of(&m.Document)
	if a.Comparisons != 0 || len(a.Conclusions) != 0 || len(a.Rows) != 1 {
		t.Errorf("%+v", a)
	}
	if c := a.Rows[0].Cells[0]; c.Within == nil || c.Within[0] > c.Value || c.Within[1] < c.Value {
		t.Errorf("%+v", c)
	}
}

func TestVariantsOfAStackAreComparedWithItsFirst(t *testing.T) {
	m := newMaker(0.01)
	m.hol(24, "same-qp", map[string]float64{"iwarp": 1e7}, bulk, "iwarp")
	m.hol(24, "two-qp", map[string]float64{"iwarp": 1e6}, bulk, "iwarp")
	for i := range m.Results[24:] {
		m.Results[24+i].QPs = 2 // follows from the variant
	}
	a := Of(&m.Document)
	wantText(t, a, "iwarp, two-qp answers a probe behind 1 MiB writes 10x sooner than iwarp, same-qp (10 to 10.1x), "+
		"with no difference shown in the bulk's rate")
	if len(a.Columns) != 2 || len(a.Rows) != 2 {
		t.Errorf("%d rows, %d columns", len(a.Rows), len(a.Columns))
	}
}

func TestACompleteRunShowsOneFigureOfAKind(t *testing.T) {
	m := newMaker(0.01)
	for _, size := range []int64{64, 4096} {
		m.latency(2, size, quick, three...)
	}
	m.stream(2, 64, bulk, three...)
	m.stream(2, 1<<20, bulk, three...)
	m.hol(2, "same-qp", probes, bulk, three...)
	for _, size := range []int64{64, 4096} {
		m.each(2, []string{"grpc(tcp)", "grpc(fused)+iwarp"}, "latency", "call", size, func(r *reports.Result) {
			r.Latency, r.RoundTrip = m.times(2e4), reports.RoundTripFull
		})
	}
	got := view.Each(Of(&m.Document).Columns,
		func(c reports.AnswerColumn) string { return c.Title + " of " + c.Point })
	if want := []string{"half round trip of 64 B send", "bulk rate of 1 MiB write", "probe beside bulk of 1 MiB write",
		"bulk beside probes of 1 MiB write", "round trip of 64 B call"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestALongSweepShowsItsEnds(t *testing.T) {
	m := newMaker(0.01)
	for size := int64(2); size <= 1<<20; size *= 2 {
		m.latency(1, size, quick, "tcp", "iwarp")
	}
	a := Of(&m.Document)
	if len(a.Columns) != 2 || a.Columns[0].Point != "2 B send" || a.Columns[1].Point != "1 MiB send" {
		t.Errorf("%+v", a.Columns)
	}
}

// No sentence speaks of what the matrix does not have, and there are at most eight.
func TestEverySentenceRestsOnTheMatrix(t *testing.T) {
	m := newMaker(0.005)
	of := map[string]float64{"tcp": 1000}
	order := []string{"tcp"}
	for i := range 12 {
		name := fmt.Sprintf("iwarp(window=%d)", i)
		of[name], order = 1200+100*float64(i), append(order, name)
	}
	m.latency(24, 64, of, order...)
	m.stream(24, 1<<20, of, order...)
	a := Of(&m.Document)
	if len(a.Conclusions) != mostConclusions || a.Omitted != 24-mostConclusions || len(a.Reliance) > 4 {
		t.Errorf("%d sentences, %d omitted, %d lines of reliance", len(a.Conclusions), a.Omitted, len(a.Reliance))
	}
	for _, c := range a.Conclusions {
		for _, name := range []string{c.Stack, c.Base} {
			i := slices.IndexFunc(a.Rows, func(r reports.AnswerRow) bool { return r.Name() == name })
			if i < 0 || a.Rows[i].Cells[c.Column] == nil {
				t.Errorf("%q: no figure of %s in the matrix", c.Text, name)
			}
		}
		if c.Factor < c.Within[0] || c.Factor > c.Within[1] {
			t.Errorf("%q: %v is not within %v", c.Text, c.Factor, c.Within)
		}
	}
}

func TestAWindowThatMovedNothingCounts(t *testing.T) {
	m := newMaker(0.01)
	m.stream(12, 1<<20, map[string]float64{"tcp": 1e9, "iwarp": 0}, "tcp", "iwarp")
	a := Of(&m.Document)
	if len(a.Conclusions) != 1 || !strings.HasPrefix(a.Conclusions[0].Text, "iwarp moves 1 MiB writes at 0.01") {
		t.Errorf("%q", texts(a))
	}
}

func TestRelianceSaysWhatIsNotReal(t *testing.T) {
	m := newMaker(0.01)
	m.latency(2, 64, map[string]float64{"mem": 1000, "model+mem": 2000}, "mem", "model+mem")
	for i := range m.Results {
		m.Results[i].Label = []string{reports.LabelMem, reports.LabelModel}[i%2]
	}
	m.Results[0].Disturbance.Verdict = reports.VerdictImpossible
	a := Of(&m.Document)
	if want := []string{"mem is in this process only, model+mem is a simulated NIC: no figures of a network",
		"Verified 400 of 4000 messages byte by byte, and the numbers of 800"}; !slices.Equal(a.Reliance[1:], want) {
		t.Errorf("%q", a.Reliance)
	}
	if a.Rows[1].Cells[0].Rounds != 1 {
		t.Error("an impossible figure counts")
	}
}

func TestADocumentWithAnAnswerFollowsTheSchema(t *testing.T) {
	m := threeStacks(24, 0.005, 0.2)
	m.Environment = reports.Collect()
	m.Answer = Of(&m.Document)
	var out bytes.Buffer
	if err := m.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	reporttest.Validate(t, out.Bytes())
	d, err := reports.ReadDocument(&out, nil)
	if err != nil || d.Answer == nil || d.Answer.Columns[1].Better != reports.More {
		t.Errorf("read back: %v, %+v", err, d)
	}
}

// A round in which no probe came back beside the bulk has none, rather than the figure of probes alone.
func TestAResultWithoutTheMainFigureIsNotComparedByAnother(t *testing.T) {
	m := newMaker(0.01)
	m.hol(3, "same-qp", probes, bulk, "tcp", "iwarp")
	for i := range m.Results {
		m.Results[i].Shown = []string{"loaded.p50", "loaded.bw"}
	}
	m.Results[2].Latencies = nil
	if a := Of(&m.Document); len(a.Columns) != 2 || a.Rows[0].Cells[0].Rounds != 2 || a.Rows[1].Cells[0].Rounds != 3 {
		t.Errorf("%+v", a)
	}
}

func TestWithoutResultsThereIsNoAnswer(t *testing.T) {
	if a := Of(&reports.Document{}); a != nil {
		t.Errorf("%+v", a)
	}
}

// inTurns is ten runs of each of two builds, on a machine that has another pace in every round.
func inTurns(slower float64) *reports.Document {
	m := newMaker(0.02)
	var rounds [][2]*reports.Document
	for range 10 {
		pace := 1 + m.rng.Float64()
		var pair [2]*reports.Document
		for i, factor := range []float64{1, slower} {
			m.Results = nil
			of := map[string]float64{"tcp": 4000 * pace * factor, "iwarp": 5000 * pace * factor}
			m.latency(3, 64, of, "tcp", "iwarp")
			pair[i] = &reports.Document{Results: m.Results}
		}
		rounds = append(rounds, pair)
	}
	return Turns([2]string{"before", "after"}, rounds)
}

func TestBuildsInTurnsAreComparedRunByRun(t *testing.T) {
	d := inTurns(1.3)
	if n := len(d.Answer.Conclusions); n != 2 || d.Answer.Comparisons != 2 {
		t.Errorf("%d conclusions of %d comparisons, want 2 of 2", n, d.Answer.Comparisons)
	}
	for _, c := range d.Answer.Conclusions {
		what := c.Stack[:strings.IndexByte(c.Stack, ',')]
		if !strings.HasPrefix(c.Text, what+", after takes 1.") ||
			!strings.Contains(c.Text, " the time of "+what+", before") || c.Within == nil || 1/c.Within[1] > 1.3 ||
			1/c.Within[0] < 1.3 {
			t.Errorf("%q, %v", c.Text, c.Within)
		}
	}
	if a := inTurns(1).Answer; len(a.Conclusions) != 0 || a.Undecided != 2 || a.Comparisons != 2 {
		t.Errorf("the same build twice: %+v", a)
	}
	if n := d.Answer.Rounds(); n != 10 {
		t.Errorf("%d rounds, want 10: rounds of one run are one sample", n)
	}
}

// maker builds documents of rounds.
type maker struct {
	reports.Document
	rng   *rand.Rand
	sigma float64 // of each figure of a slice
	taken float64 // of each window
}

func newMaker(sigma float64) *maker {
	return &maker{rng: rand.New(rand.NewPCG(1, 2)), sigma: sigma}
}

func (m *maker) noisy(v float64) float64 { return v * math.Exp(m.sigma*m.rng.NormFloat64()) }

// each adds a result of every stack in every round.
func (m *maker) each(rounds int, order []string, workload, op string, size int64, fill func(r *reports.Result)) {
	for round := range rounds {
		for _, stack := range order {
			r := reports.Result{Stack: stack, Transport: stack, Label: reports.LabelSoft,
				Workload: workload, Op: op, SizeBytes: size, Depth: 1, QPs: 1, Repeat: round + 1, Verified: true,
				DurationNs: int64(100 * time.Millisecond), Operations: 1000,
				Verification: &reports.Verification{Mode: reports.VerifySample, Messages: 1000, Numbers: 200, Whole: 100},
				Disturbance:  &reports.Disturbance{Verdict: reports.VerdictQuiet, Taken: m.taken}}
			if m.taken > leastContention {
				r.Disturbance.Verdict = reports.VerdictDisturbed
			}
			fill(&r)
			m.Results = append(m.Results, r)
		}
	}
}

// times is a distribution around a median, with quantiles that noise can be looked up in.
func (m *maker) times(median float64) *reports.Latency {
	p50 := m.noisy(median)
	return &reports.Latency{Count: 1000, Min: 0.8 * p50, P50: p50, P90: 1.2 * p50, P99: 2 * p50, P999: 4 * p50,
		P9999: 4 * p50, P99999: 4 * p50, Max: 4 * p50, Mean: 1.1 * p50}
}

// latency measures a ping-pong of sends.
func (m *maker) latency(rounds int, size int64, of map[string]float64, order ...string) {
	m.each(rounds, order, "latency", "send", size, func(r *reports.Result) {
		r.Latency, r.RoundTrip = m.times(of[r.Stack]), reports.RoundTripHalf
	})
}

// stream measures a bandwidth.
func (m *maker) stream(rounds int, size int64, of map[string]float64, order ...string) {
	m.each(rounds, order, "throughput", "write", size, func(r *reports.Result) {
		v := m.noisy(of[r.Stack])
		r.Throughput = &reports.Throughput{BytesPerSecond: v, OperationsPerSecond: v / float64(size)}
	})
}

// hol measures probes behind bulk, and the bulk.
func (m *maker) hol(rounds int, arm string, probe, bulk map[string]float64, order ...string) {
	m.each(rounds, order, "hol", "write", 1<<20, func(r *reports.Result) {
		r.RoundTrip = reports.RoundTripFull
		r.Description = reports.Description{Shown: []string{"loaded.p50"},
			Dims:      []reports.Dim{{Name: "arm", Value: arm}, {Name: "probe_size_bytes", Value: "64", Unit: "B"}},
			Latencies: []reports.NamedLatency{{Name: "loaded", Latency: m.times(probe[r.Stack])}},
			Figures: []reports.Figure{{Name: "loaded.bw", Quantity: reports.QuantityBytes, Better: reports.More,
				Value: m.noisy(bulk[r.Stack])}}}
	})
}
