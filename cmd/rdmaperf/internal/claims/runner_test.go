package claims

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// script is a runner of a shell script in the place of rdmaperf.
func script(t *testing.T, body string) *runner {
	dir := t.TempDir()
	file := filepath.Join(dir, "rdmaperf")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &runner{program: file, dir: dir, Options: Options{Progress: func(string) {}, Announce: func(string) {}},
		ran: map[string]*outcome{}}
}

// measure makes a run of nine rounds and reads a figure.
func measure(n *runner, a At) (series, error) {
	n.look(context.Background(), a.Run, 9)
	return n.read(a, 9)
}

// What a command ends with becomes the verdict: a failure, what is not here, and what took too long are told apart.
func TestVerdictsOfCommands(t *testing.T) {
	for body, want := range map[string]Verdict{
		"exit 0": Shown,
		"echo rdmaperf: check: it is wrong >&2; exit 1": NotShown,
		"echo rdmaperf: no device >&2; exit 77":         Cannot,
	} {
		o := script(t, body).look(context.Background(), &Run{Args: "order"}, 9)
		if f := o.judgePass(Pass("x", nil)); f.Verdict != want || strings.HasPrefix(f.Why, "rdmaperf:") {
			t.Errorf("%s: %+v, want %s", body, f, want)
		}
		n := script(t, body)
		_, err := measure(n, At{Run: &Run{Args: "order"}, Figure: "p50"})
		if f := missing(err); want == Cannot && f.Verdict != Cannot || want == NotShown && f.Verdict != Undecided {
			t.Errorf("%s: %+v: a figure that is not there refutes nothing", body, f)
		}
	}
	for _, code := range []int{reports.ExitCorruption, reports.ExitUsage} {
		n := script(t, fmt.Sprintf("exit %d", code))
		if _, err := measure(n, At{Run: &Run{Args: "order"}}); missing(err).Verdict != NotShown {
			t.Errorf("exit code %d: %v", code, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	n := script(t, "exec sleep 60")
	if f := n.look(ctx, &Run{Args: "order"}, 9).judgePass(Pass("x", nil)); f.Verdict != Undecided {
		t.Errorf("late: %+v", f)
	}
	late := &Run{Args: "run"}
	n.look(ctx, late, 9)
	if _, err := n.read(At{Run: late}, 9); missing(err).Verdict != Undecided {
		t.Errorf("begun late: %v", err)
	}
	busy := &outcome{code: reports.ExitPeer, err: errors.New("no answer")}
	busy.doc = &reports.Document{}
	if _, err := (&runner{ran: map[string]*outcome{"x": busy}}).read(At{Run: &Run{Args: "x"}},
		9); missing(err).Verdict != Undecided {
		t.Errorf("no answer: %v", err)
	}
}

// Cases of conform show a claim when those that are named pass; what is not supported is not counted, and one that
// fails refutes it.
func TestVerdictsOfCases(t *testing.T) {
	const record = `echo '{"id":"a/1","transport":"x","verdict":"pass"}
{"id":"b/1","transport":"x","verdict":"unsupported"}
{"id":"c/1","transport":"x","verdict":"fail"}' >"$3"; exit 1`
	o := script(t, record).look(context.Background(), &Run{Args: "conform"}, 9)
	for pattern, want := range map[string]Verdict{"a/*": Shown, "b/*": Cannot, "c/*": NotShown, "*/1": NotShown,
		"d/*": Cannot} {
		if f := o.judgePass(Pass("x", nil, pattern)); f.Verdict != want {
			t.Errorf("%s: %+v, want %s", pattern, f, want)
		}
	}
}

// Runs with the same arguments are made once.
func TestRunsAreShared(t *testing.T) {
	n := script(t, `echo x >>"$0.ran"`)
	for range 2 {
		n.look(context.Background(), &Run{Args: "order"}, 9)
	}
	if b, err := os.ReadFile(n.program + ".ran"); err != nil || string(b) != "x\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// Another provider takes the place of iwarp, except where iwarp has parameters.
func TestAnotherProvider(t *testing.T) {
	got := over("--transport 'iwarp,sched(slice=1K)+iwarp,iwarp(stack=raw)' --op write", "verbs:rxe0")
	if want := "--transport 'verbs:rxe0,sched(slice=1K)+verbs:rxe0,iwarp(stack=raw)' --op write"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
