package targets

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		target Target
		got    float64
		n      int
		want   Verdict
	}{
		{Target{1.5, false}, 1.5, 1, Pass}, {Target{1.5, false}, 1.49, 1, Fail}, {Target{1.5, false}, 2, 1, Pass},
		{Target{1.5, true}, 1.5, 1, Pass}, {Target{1.5, true}, 1.51, 1, Fail}, {Target{1.5, true}, 0, 1, Pass},
		{Target{}, 7, 1, None}, {Target{}, 0, 0, NotMeasured}, {Target{1.5, true}, 0, 0, NotMeasured},
	} {
		if got := c.target.Judge(c.got, c.n); got != c.want {
			t.Errorf("%+v: %v of %d is %q, want %q", c.target, c.got, c.n, got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := Median(c.xs); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.xs, got, c.want)
		}
	}
}

// The interval's coverage, by the binomial distribution: of 6 samples 2/64 of the cases
// lie outside of all of them, and of 9 samples 20/512 outside of the middle seven.
func TestInterval(t *testing.T) {
	for n, drop := range map[int]int{1: 0, 2: 0, 5: 0, 6: 0, 8: 0, 9: 1, 11: 1, 12: 2, 60: 21, 100: 39, 1000: 468} {
		xs := make([]float64, n)
		for i := range xs {
			xs[(i*7+3)%n] = float64(i) // any order
		}
		if n%7 == 0 {
			t.Fatal("7 must not divide n")
		}
		if lo, hi := Interval(xs); lo != float64(drop) || hi != float64(n-1-drop) {
			t.Errorf("of %d: %v to %v, want %d dropped at each end", n, lo, hi, drop)
		}
	}
	if lo, hi := Interval(nil); lo != 0 || hi != 0 {
		t.Errorf("of nothing: %v to %v", lo, hi)
	}
}

// A median that misses is a miss only if the scatter cannot have done it; one that
// meets its bound is met.
func TestJudgeAll(t *testing.T) {
	least, most := Target{Bound: 1}, Target{Bound: 1, Less: true}
	for _, c := range []struct {
		xs                  []float64
		wantLeast, wantMost Verdict
	}{
		{nil, NotMeasured, NotMeasured},
		{[]float64{0.9, 0.95, 0.99}, Fail, Pass},
		{[]float64{0.9, 0.95, 1.1}, Undecided, Pass},
		{[]float64{0.9, 1.05, 1.1}, Pass, Undecided},
		{[]float64{0.9, 1, 1.1}, Pass, Pass},
		{[]float64{0.5, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 1.5}, Fail, Pass}, // the outermost do not count
	} {
		if got := least.JudgeAll(c.xs); got != c.wantLeast {
			t.Errorf("%v, at least 1: %q, want %q", c.xs, got, c.wantLeast)
		}
		if got := most.JudgeAll(c.xs); got != c.wantMost {
			t.Errorf("%v, at most 1: %q, want %q", c.xs, got, c.wantMost)
		}
	}
	if got := (Target{}).JudgeAll([]float64{1}); got != None {
		t.Errorf("no target: %q", got)
	}
}

// What was not measured wins over failed probes, and these over missed targets.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		verdicts []Verdict
		failures int
		code     int
		says     string
	}{
		{nil, 0, reports.ExitFailed, "nothing measured"},
		{[]Verdict{Pass, None}, 0, reports.ExitOK, ""},
		{[]Verdict{Pass, Fail, Fail}, 0, reports.ExitThreshold, "target missed: line; line"},
		{[]Verdict{Undecided, Fail}, 0, reports.ExitThreshold, "target missed: line"},
		{[]Verdict{Pass, Undecided}, 0, reports.ExitFailed, "undecided, more repeats tell: line"},
		{[]Verdict{Fail}, 2, reports.ExitFailed, "2 probes failed"},
		{[]Verdict{Fail, NotMeasured}, 2, reports.ExitFailed, "not measured: line"},
	} {
		o := Outcome{Failures: c.failures}
		for _, v := range c.verdicts {
			o.Add("line", v)
		}
		err := o.Err()
		if reports.Code(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, %d failures: %v, want code %d and %q", c.verdicts, c.failures, err, c.code, c.says)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	if err := WriteJSON("", func() {}); err != nil {
		t.Errorf("without a file: %v", err)
	}
	file := filepath.Join(t.TempDir(), "t.json")
	if err := WriteJSON(file, map[string]Verdict{"v": Fail}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	var got map[string]string
	if err != nil || json.Unmarshal(b, &got) != nil || got["v"] != "fail" {
		t.Errorf("%s, %v", b, err)
	}
	if WriteJSON(file, func() {}) == nil {
		t.Error("a function was written")
	}
}
