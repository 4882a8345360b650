package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func TestProgressIsForPeopleOnly(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, c := range map[string]struct {
		w        io.Writer
		silent   bool
		env      map[string]string
		terminal bool
		want     bool
	}{
		"terminal": {file, false, nil, true, true},
		"pipe":     {file, false, nil, false, false},
		"buffer":   {new(bytes.Buffer), false, nil, true, false},
		"quiet":    {file, true, nil, true, false},
		"CI":       {file, false, map[string]string{"CI": "true"}, true, false},
		"dumb":     {file, false, map[string]string{"TERM": "dumb"}, true, false},
	} {
		getenv := func(key string) string { return c.env[key] }
		if got := wantsProgress(c.w, c.silent, getenv, func(int) bool { return c.terminal }); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	var silent *Progress
	silent.Before("tcp", "point", 0) // nobody looks: nothing happens
	silent.After()
	silent.End()
}

// The time that is left follows the plan, and then how points keep to it.
func TestProgressTellsTheTimeLeft(t *testing.T) {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	for name, c := range map[string]struct {
		costs []time.Duration
		took  []time.Duration
		want  []string // before each point
	}{
		"by plan": {[]time.Duration{2e9, 2e9, 2e9}, []time.Duration{2e9, 2e9, 2e9},
			[]string{"about 6s left", "about 4s left", "about 2s left"}},
		"slower": {[]time.Duration{2e9, 2e9, 2e9}, []time.Duration{3e9, 3e9, 3e9},
			[]string{"about 6s left", "about 6s left", "about 3s left"}},
		"by count": {[]time.Duration{0, 0, 0}, []time.Duration{5e9, 1e9, 1e9},
			[]string{"1/3 tcp x", "about 10s left", "about 3s left"}},
		"short": {[]time.Duration{4e8, 1e8}, []time.Duration{4e8, 1e8},
			[]string{"about 500ms left", "about 100ms left"}},
		"unexpected": {[]time.Duration{1e9}, []time.Duration{1e9, 1e9},
			[]string{"1/1 tcp x, about 1s left", "2/2 tcp x"}},
	} {
		var out bytes.Buffer
		p := drawProgress(&out, c.costs, clock)
		for i, want := range c.want {
			out.Reset()
			var cost time.Duration
			if i < len(c.costs) {
				cost = c.costs[i]
			}
			p.Before("tcp", "x", cost)
			if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), fmt.Sprintf("%d/", i+1)) ||
				strings.Contains(out.String(), "\n") {
				t.Errorf("%s, point %d: %q, want %q on one line", name, i+1, out.String(), want)
			}
			now = now.Add(c.took[i])
			p.After()
		}
		p.End()
	}
}

// While a point is measured nothing is drawn. The library could do so from a
// goroutine of its own, ten times a second.
func TestProgressRestsDuringAPoint(t *testing.T) {
	var out bytes.Buffer
	p := drawProgress(&out, []time.Duration{1e9, 1e9}, time.Now)
	p.Before("tcp", "x", 1e9)
	drawn := out.Len()
	time.Sleep(250 * time.Millisecond)
	if out.Len() != drawn {
		t.Errorf("drawn during a point: %q", out.String()[drawn:])
	}
	p.End()
}
