package claims

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
)

const (
	longestRun = 5 * time.Minute
	childEnd   = 2 * time.Second // from an interrupt until it is killed
)

type runner struct {
	program string
	dir     string // where the documents are
	Options
	ran  map[string]*outcome
	left []*Run // whose first look is still to be made
	made []Made
}

type outcome struct {
	doc    *reports.Document // of "run"
	cases  []caseRecord      // of "conform"
	out    string            // what it printed
	code   int
	err    error            // nil where it succeeded
	late   bool             // it was ended by its deadline
	absent map[string]error // why other programs beside it have no figures
	lines  []string         // the commands that were run
	rounds int              // that were asked for
	took   time.Duration
}

var errLate = errors.New("the time ran out")

type caseRecord struct{ ID, Level, Transport, Verdict string }

func (n *runner) look(ctx context.Context, r *Run, rounds int) *outcome {
	key, rounds := over(r.Args, n.Transport), r.rounds(rounds)
	o := n.ran[key]
	if o == nil {
		o = &outcome{doc: &reports.Document{}, absent: map[string]error{}}
		n.ran[key] = o
		share, cancel := n.share(ctx, r)
		defer cancel()
		ctx = share
	} else if o.rounds >= rounds {
		return o
	}
	began, line := time.Now(), "rdmaperf "+r.line(n.Options, rounds-o.rounds)
	n.Progress(line)
	base := filepath.Join(n.dir, fmt.Sprintf("%02d", len(n.made)+1))
	if len(r.Beside) > 0 {
		n.turns(ctx, r, base, o.rounds, rounds, o)
	} else {
		o.add(n.start(ctx, fields(r.line(n.Options, rounds-o.rounds)), base), o.rounds)
	}
	took := time.Since(began)
	o.rounds, o.lines, o.took = rounds, append(o.lines, line), o.took+took
	n.made = append(n.made, Made{line, took.Seconds()})
	return o
}

func (n *runner) cost(r *Run, rounds int) time.Duration {
	o := n.ran[over(r.Args, n.Transport)]
	if o == nil || o.rounds == 0 || o.rounds >= r.rounds(rounds) {
		return 0
	}
	return o.took / time.Duration(o.rounds) * time.Duration(r.rounds(rounds)-o.rounds)
}

// share ends the first look at a run with rounds before it takes the time of those behind it.
func (n *runner) share(ctx context.Context, r *Run) (context.Context, context.CancelFunc) {
	part := min(0.5, 3/float64(len(n.left)))
	n.left = n.left[min(1, len(n.left)):]
	end, ok := ctx.Deadline()
	if !ok || r.kind() == 0 || len(n.left) == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(part*float64(time.Until(end))))
}

func (o *outcome) add(one *outcome, rounds int) {
	o.err, o.code, o.late = one.err, one.code, o.late || one.late
	o.out, o.cases = one.out, one.cases
	maps.Copy(o.absent, one.absent)
	if one.doc == nil {
		return
	}
	for _, res := range one.doc.Results {
		if res.Repeat += rounds; rounds == 0 && o.doc.Results == nil {
			o.doc.Started = one.doc.Started
		}
		o.doc.Results = append(o.doc.Results, res)
	}
}

func (n *runner) start(ctx context.Context, args []string, base string) *outcome {
	o := new(outcome)
	bounded, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	file := base + ".json"
	switch args[0] {
	case "run":
		args = append(args, "--quiet", "--no-save", "--json", file)
	case "conform":
		file = base + ".jsonl"
		args = append(args, "--jsonl", file)
	}
	cmd := exec.CommandContext(bounded, n.program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, childEnd
	err := cmd.Run()
	o.out = stdout.String()
	if o.late = errors.Is(bounded.Err(), context.DeadlineExceeded); o.late {
		o.err = errLate
	} else if err != nil {
		o.code, o.err = reports.ExitFailed, err
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
			o.code = exit.ExitCode()
		}
		if said := lastLine(stderr.String()); said != "" {
			o.err = errors.New(said)
		}
	}
	switch args[0] {
	case "run":
		if doc, err := resultfile.ReadDocument(file); err == nil {
			o.doc = doc // of a run that failed or was ended, what it has measured
		} else if o.err == nil {
			o.err = err
		}
	case "conform":
		if cases, err := readCases(file); err == nil {
			o.cases = cases
		} else if o.err == nil {
			o.err = err
		}
	}
	return o
}

func readCases(file string) (all []caseRecord, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var c caseRecord
		if err := d.Decode(&c); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if c.ID != "" {
			all = append(all, c)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "rdmaperf: ")
}

// judgePass wants a command to succeed, and the cases of a "conform" that are asked for to pass.
func (o *outcome) judgePass(r Rule) Finding {
	f := Finding{Text: r.What, Verdict: Shown}
	passed, cannot := 0, 0
	var failed []string
	for _, c := range o.cases {
		if len(r.cases) > 0 && !slices.ContainsFunc(r.cases, func(p string) bool {
			ok, _ := path.Match(p, c.ID) // a test checks the patterns
			return ok
		}) {
			continue
		}
		switch c.Verdict {
		case "pass":
			passed++
		case "unsupported", "notrun":
			cannot++
		default:
			if c.Level == "may" {
				continue
			}
			failed = append(failed, fmt.Sprintf("%s over %s: %s", c.ID, c.Transport, c.Verdict))
		}
	}
	if o.cases != nil {
		f.Text += fmt.Sprintf(": %d of %d cases pass", passed, passed+len(failed))
	}
	switch {
	case o.late:
		f.Verdict, f.Why = Undecided, o.err.Error()
	case o.code == reports.ExitNotRun || o.cases != nil && passed == 0 && len(failed) == 0:
		f.Verdict, f.Why = Cannot, "no case can run here"
		if o.err != nil {
			f.Why = o.err.Error()
		}
	case len(failed) > 0:
		f.Verdict, f.Why = NotShown, strings.Join(failed, "; ")
	case o.err != nil && o.cases == nil:
		f.Verdict, f.Why = NotShown, o.err.Error()
	}
	return f
}
