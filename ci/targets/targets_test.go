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
