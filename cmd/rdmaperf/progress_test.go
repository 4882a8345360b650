package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
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
	var silent *progress
	silent.before("tcp", "point", 0) // nobody looks: nothing happens
	silent.after()
	silent.end()
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
		"by plan":    {[]time.Duration{2e9, 2e9, 2e9}, []time.Duration{2e9, 2e9, 2e9}, []string{"about 6s left", "about 4s left", "about 2s left"}},
		"slower":     {[]time.Duration{2e9, 2e9, 2e9}, []time.Duration{3e9, 3e9, 3e9}, []string{"about 6s left", "about 6s left", "about 3s left"}},
		"by count":   {[]time.Duration{0, 0, 0}, []time.Duration{5e9, 1e9, 1e9}, []string{"1/3 tcp x", "about 10s left", "about 3s left"}},
		"short":      {[]time.Duration{4e8, 1e8}, []time.Duration{4e8, 1e8}, []string{"about 500ms left", "about 100ms left"}},
		"unexpected": {[]time.Duration{1e9}, []time.Duration{1e9, 1e9}, []string{"1/1 tcp x, about 1s left", "2/2 tcp x"}},
	} {
		var out bytes.Buffer
		p := drawProgress(&out, c.costs, clock)
		for i, want := range c.want {
			out.Reset()
			var cost time.Duration
			if i < len(c.costs) {
				cost = c.costs[i]
			}
			p.before("tcp", "x", cost)
			if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), fmt.Sprintf("%d/", i+1)) || strings.Contains(out.String(), "\n") {
				t.Errorf("%s, point %d: %q, want %q on one line", name, i+1, out.String(), want)
			}
			now = now.Add(c.took[i])
			p.after()
		}
		p.end()
	}
}

// While a point is measured nothing is drawn. The library could do so from a
// goroutine of its own, ten times a second.
func TestProgressRestsDuringAPoint(t *testing.T) {
	var out bytes.Buffer
	p := drawProgress(&out, []time.Duration{1e9, 1e9}, time.Now)
	p.before("tcp", "x", 1e9)
	drawn := out.Len()
	time.Sleep(250 * time.Millisecond)
	if out.Len() != drawn {
		t.Errorf("drawn during a point: %q", out.String()[drawn:])
	}
	p.end()
}

func TestPlannedTime(t *testing.T) {
	p := &engine.Plan{Duration: time.Second, WarmupDuration: 200 * time.Millisecond}
	for workload, want := range map[string]time.Duration{latency.Name: 1200 * time.Millisecond, hol.Name: 3200 * time.Millisecond} {
		if got := plannedTime(p, engine.Point{Workload: workload}); got != want {
			t.Errorf("%s: %v, want %v", workload, got, want)
		}
	}
	if got := plannedTime(&engine.Plan{Iterations: 5}, engine.Point{}); got != 0 {
		t.Errorf("counted operations: %v, want unknown", got)
	}
}

// terminal opens a pseudo-terminal (pty(7)).
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// On a terminal there is a bar, which leaves no trace; in CI there is none.
func TestProgressOnATerminal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, ci := range []string{"", "true"} {
		master, slave := terminal(t)
		cmd := exec.Command(self, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "--repeat", "2", "-D", "50ms", "--json", filepath.Join(t.TempDir(), "r.json"))
		cmd.Env = append(os.Environ(), "TERM=xterm", "CI="+ci)
		cmd.Stderr = slave
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		// A byte of our own ends the reading: closing the slave is an error on Linux.
		if _, err := slave.WriteString("\x04"); err != nil {
			t.Fatal(err)
		}
		var seen []byte
		for b := make([]byte, 4096); !bytes.HasSuffix(seen, []byte("\x04")); {
			n, err := master.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, b[:n]...)
		}
		drawn := strings.Contains(string(seen), "1/2 mem ") && strings.Contains(string(seen), "2/2 mem ") && strings.Contains(string(seen), " left")
		if drawn != (ci == "") || ci != "" && len(seen) != 1 {
			t.Errorf("CI=%q: the terminal shows %q", ci, seen)
		}
		last := strings.TrimSuffix(string(seen[strings.LastIndexByte(string(seen), '\r')+1:]), "\x04")
		if ci == "" && (strings.TrimSpace(last) != "" || strings.Contains(string(seen), "\n")) {
			t.Errorf("the bar leaves %q in %q", last, seen)
		}
	}
}
