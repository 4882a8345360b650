package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// An error quotes files and peers, which must not steer the terminal.
func TestErrorLinesDoNotSteerTheTerminal(t *testing.T) {
	if got := ErrorLine(errors.New("open x\x1b[2J\u202ey\nz")); got != "rdmaperf: open x?[2J?y; z" {
		t.Errorf("%q", got)
	}
}

// A panic of what only computes is an error that says where it was, with the exit code of a failure.
func TestAPanicWhileComputingIsAnErrorWithItsPlace(t *testing.T) {
	err := Computes(t.Context(), "make report", func() error { panic("boom") })
	if reports.Code(err) != reports.ExitFailed || !strings.Contains(ErrorLine(err), "internal error: boom, at cli_test.go:") {
		t.Errorf("%v", err)
	}
}

// Sentences are filled to the width, and lists and examples stay as they are.
func TestHelpIsFilled(t *testing.T) {
	item := "    term" + strings.Repeat(" ", Hanging-8) + "what it is"
	got := Fill("one two three\nfour\n\n"+item+" and more\nfive", 38)
	if want := "one two three four\n\n" + item + "\n" + strings.Repeat(" ", Hanging) + "and more\nfive"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLinesAreCutToTheTerminal(t *testing.T) {
	long := "2/6 grpc(fused,bpev,busy=200us,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc) rpc unary 64 B, about 3s left"
	for _, columns := range []int{46, 66, 200} {
		got := Cut(long, columns)
		if n := len([]rune(got)); n > columns || !strings.HasPrefix(got, "2/6 ") || !strings.HasSuffix(got, "3s left") {
			t.Errorf("%d columns: %q has %d", columns, got, n)
		}
	}
	if Cut("ÄÖÜ µs", 10) != "ÄÖÜ µs" {
		t.Error("a short line is changed")
	}
}

// A profile that does not fit on the disk is an error.
func TestProfileOnAFullDisk(t *testing.T) {
	p, err := StartProfile("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); !errors.Is(err, syscall.ENOSPC) || reports.Code(err) != reports.ExitFailed {
		t.Errorf("%v, want that no space is left", err)
	}
}

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

// While a point is measured nothing is drawn. The library could do so from a goroutine of its own, ten times a second.
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

// A server that is asked by SIGUSR1 says what it holds, and a descriptor and a goroutine
// more are seen; behind its end it says nothing more.
func TestServersSayWhatTheyHold(t *testing.T) {
	var mu sync.Mutex
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return said.Write(b)
	}), nil))
	ctx, cancel := context.WithCancel(t.Context())
	TellHolds(ctx, log, func() []any { return []any{"clients", 3} })
	line := regexp.MustCompile(
		`msg=holds clients=3 descriptors=(\d+) goroutines=(\d+) threads=(\d+) mappings=(\d+) resident_kib=(\d+)\n`)
	ask := func() (n [5]int) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			m := line.FindStringSubmatch(said.String())
			if m != nil {
				said.Reset()
			}
			mu.Unlock()
			for i := range n {
				if m != nil {
					n[i], _ = strconv.Atoi(m[i+1]) // digits, by the expression
				}
			}
			if m != nil {
				return n
			}
		}
		t.Fatal("asked by SIGUSR1 it says nothing")
		return n
	}
	before := ask()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stay, left := make(chan struct{}), make(chan struct{})
	go func() { defer close(left); <-stay }()
	after := ask()
	if after[0] != before[0]+2 || after[1] != before[1]+1 || after[2] < 1 || after[3] < 5 || after[4] < 1000 {
		t.Errorf("before %v, with two descriptors and a goroutine more %v", before, after)
	}
	close(stay)
	<-left
	r.Close()
	w.Close()
	cancel()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
