package claims

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/reports"
)

var run1 = &Run{Args: "run"}

// rounds are the values of a stack in so many rounds; the machine takes part noise of each.
func rounds(n int, noise float64, value func(round int) float64) series {
	s := series{Rounds: map[int]answer.Value{}}
	for i := range n {
		v := value(i)
		s.Rounds[i+1] = answer.Value{Value: v, Low: v * (1 - noise), High: v / (1 - noise)}
	}
	return s
}

// of reads series by stack and conditions.
func of(all map[string]series) reader {
	return func(a At) (series, error) {
		s, ok := all[strings.TrimSpace(a.Stack+" "+a.Where)]
		if !ok {
			return s, errors.New("not measured")
		}
		return s, nil
	}
}

func constant(v float64) func(int) float64 { return func(int) float64 { return v } }

// between alternates between two values.
func between(a, b float64) func(int) float64 {
	return func(i int) float64 { return []float64{a, b}[i%2] }
}

const level = 0.99

// Every rule of the vocabulary is broken by results that break it, and undecided by those that do not say.
func TestRules(t *testing.T) {
	at := func(stack, where string) At { return At{run1, "p50", stack, where} }
	ratio := Ratio("r", at("a", ""), at("b", "")).AtMost(0.5)
	growth := Growth("g", at("a", ""), "size", "1", "16").AtLeast(8)
	flat := Flat("f", at("a", ""), "size", 1.2, "1", "16", "64")
	order := Order("o", []string{"a", "b", "c"}, at("a", ""), at("b", ""), at("c", ""))
	value := Value("v", at("a", "")).AtMost(0)
	count := Count("c", at("a", "")).AtLeast(2).AtMost(2)
	n := func(value float64) series { return rounds(16, 0, constant(value)) }
	for name, c := range map[string]struct {
		rule Rule
		all  map[string]series
		want Verdict
	}{
		"ratio kept":           {ratio, map[string]series{"a": n(1), "b": n(4)}, Shown},
		"ratio broken":         {ratio, map[string]series{"a": n(3), "b": n(4)}, NotShown},
		"ratio on its bound":   {ratio, map[string]series{"a": n(2), "b": n(4)}, Shown},
		"ratio scattered":      {ratio, map[string]series{"a": rounds(16, 0, between(1, 3)), "b": n(4)}, Undecided},
		"ratio of a busy time": {ratio, map[string]series{"a": rounds(16, 0.9, constant(1)), "b": n(4)}, Undecided},
		"ratio of few rounds":  {ratio, map[string]series{"a": rounds(3, 0, constant(1)), "b": n(4)}, Undecided},
		"ratio of nothing":     {ratio, map[string]series{"a": n(1)}, Undecided},
		"ratio to nothing":     {ratio, map[string]series{"a": n(1), "b": n(0)}, Undecided},
		"pace of both": {ratio, map[string]series{"a": rounds(16, 0, between(1, 9)), "b": rounds(16, 0,
			between(4, 36))}, Shown},
		"growth kept":   {growth, map[string]series{"a size=1": n(1), "a size=16": n(16)}, Shown},
		"growth broken": {growth, map[string]series{"a size=1": n(1), "a size=16": n(2)}, NotShown},
		"flat kept":     {flat, map[string]series{"a size=1": n(1), "a size=16": n(1.1), "a size=64": n(0.9)}, Shown},
		"flat broken at one": {flat, map[string]series{"a size=1": n(1), "a size=16": n(1.1), "a size=64": n(2)},
			NotShown},
		"flat broken downwards": {flat, map[string]series{"a size=1": n(1), "a size=16": n(0.5), "a size=64": n(1)},
			NotShown},
		"order kept":        {order, map[string]series{"a": n(1), "b": n(2), "c": n(3)}, Shown},
		"order broken":      {order, map[string]series{"a": n(1), "b": n(3), "c": n(2)}, NotShown},
		"order of equals":   {order, map[string]series{"a": n(1), "b": n(1), "c": n(2)}, NotShown},
		"value kept":        {value, map[string]series{"a": n(0)}, Shown},
		"value broken":      {value, map[string]series{"a": n(0.1)}, NotShown},
		"count kept":        {count, map[string]series{"a": rounds(1, 0, constant(2))}, Shown},
		"count broken once": {count, map[string]series{"a": rounds(9, 0, between(2, 3))}, NotShown},
	} {
		if f := c.rule.judge(of(c.all), level); f.Verdict != c.want {
			t.Errorf("%s: %+v, want %s", name, f, c.want)
		} else if (f.Verdict == Undecided) != (f.Why != "") {
			t.Errorf("%s: %+v: an undecided rule says why, and no other", name, f)
		}
	}
}

// A rule that holds for the arm that must break it decides nothing.
func TestARuleThatItsOtherArmKeeps(t *testing.T) {
	rule := Ratio("r", At{run1, "p50", "a", ""}, At{run1, "p50", "b", ""}).AtMost(2).Against(At{Stack: "b"})
	all := map[string]series{"a": rounds(16, 0, constant(1)), "b": rounds(16, 0, constant(1))}
	if f := rule.judge(of(all), level); f.Verdict != Undecided || !strings.Contains(f.Why, "must break the rule") {
		t.Errorf("%+v", f)
	}
}

// The other arm replaces the first wherever the rule reads it, and nothing else.
func TestTheOtherArm(t *testing.T) {
	p50 := At{run1, "p50", "a", "arm=x"}
	for what, c := range map[string]struct {
		rule Rule
		want string
	}{
		"growth": {Growth("g", p50, "size", "1", "9").Against(At{Stack: "b"}), "b arm=x size=9 over b arm=x size=1"},
		"ratio":  {Ratio("r", p50, At{run1, "p50", "c", "arm=x"}).Against(At{Stack: "b"}), "b arm=x over c arm=x"},
		"dimension": {Ratio("r", p50, At{run1, "p50", "a", "arm=y"}).Against(At{Where: "arm=y"}),
			"a arm=y over a arm=y"},
	} {
		o, ok := c.rule.against()
		got := o.terms[0].of.Stack + " " + o.terms[0].of.Where + " over " + o.terms[0].to.Stack + " " + o.terms[0].to.Where
		if !ok || got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

// An undecided rule says how many more rounds should do: those whose interval leaves the bound.
func TestHowManyMoreRounds(t *testing.T) {
	r := Ratio("r", At{}, At{}).AtMost(2)
	for _, c := range []struct {
		median, low, high float64
		want              float64
	}{
		{1, 0.5, 4, 48},       // twice as far as the bound
		{3.9, 1, 5, 51},       // misses by half of what it scatters
		{2, 1, 4, manyRounds}, // next to the bound
	} {
		if got := r.more(answer.Ratio{Median: c.median, Clear: &[2]float64{c.low, c.high}}, 16); got != c.want {
			t.Errorf("%v: %v", c, got)
		}
	}
}

// A figure is taken from the results of its stack at its point, one of each round.
func TestFiguresOfADocument(t *testing.T) {
	doc := &reports.Document{}
	for repeat := range 3 {
		for _, stack := range []string{"iwarp", "sched+iwarp"} {
			for _, size := range []int64{64, 1 << 20} {
				r := reports.Result{Transport: stack, Op: "write", SizeBytes: size, Depth: 16, QPs: 2, Repeat: repeat + 1,
					DurationNs: 1e9, Throughput: &reports.Throughput{BytesPerSecond: float64(size)},
					CPU: &reports.CPU{ClientSeconds: 1, ServerSeconds: 2}}
				r.Dims = []reports.Dim{{Name: "bulk_size_bytes", Value: "65536", Unit: "B"}, {Name: "arm", Value: "x"}}
				doc.Results = append(doc.Results, r)
			}
		}
	}
	for where, want := range map[string]int{"size=1M": 3, "size=64 op=write depth=16 qps=2 bulk_size=64K arm=x": 3,
		"size=2": 0, "size=64 arm=y": 0, "size=64 nothing=1": 0} {
		s, err := seriesOf(doc, At{run1, "bw", "sched+iwarp", where})
		if len(s.Rounds) != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %v, %v, want %d rounds", where, s, err, want)
		}
	}
	if _, err := seriesOf(doc, At{run1, "bw", "iwarp", ""}); err == nil {
		t.Error("two points of one round are one figure")
	}
	s, err := seriesOf(doc, At{run1, "cpu.gb", "iwarp", "size=1M"})
	if got := s.Rounds[1].Value; err != nil || got < 2.86e12 || got > 2.87e12 { // 3 s for 1 MiB
		t.Errorf("CPU of 10^9 bytes: %v, %v", got, err)
	}
}

// lame is the detail of a result whose run left an arm out.
type lame struct{ reports.Detail }

func (lame) Lacks(arm string) string {
	return map[string]string{"odp": "no on-demand paging"}[arm]
}

func TestAnArmThatTheDeviceLacksCannotBeShown(t *testing.T) {
	doc := &reports.Document{Results: []reports.Result{{Transport: "verbs", Detail: lame{}}}}
	for where, want := range map[string]Verdict{"arm=odp": Cannot, "arm=cache": Undecided} {
		_, err := seriesOf(doc, At{Figure: "use.p50", Where: where})
		if f := missing(err); f.Verdict != want || want == Cannot && f.Why != "odp: no on-demand paging" {
			t.Errorf("%s: %+v, want %s", where, f, want)
		}
	}
}

func TestMemoryIsWrittenWithThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{512: "512 B", 278016: "272 KiB", 16 << 20: "16 MiB",
		1.5 * (1 << 30): "1.5 GiB"} {
		if got := memory(v); got != want {
			t.Errorf("%v bytes: %s, want %s", v, got, want)
		}
	}
}
