package claims

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	quickPaper = 49 * time.Second // all runs of a quick paper together: seven papers take less than six minutes
	childEnd   = 2 * time.Second  // from an interrupt until it is killed
)

// runner starts rdmaperf for the runs of claims, each command line once.
type runner struct {
	program string
	dir     string // where the documents are
	Options
	ran  map[string]*outcome
	left []*Run // still to be made
	made []Made
}

// outcome is what became of a run.
type outcome struct {
	doc    *reports.Document // of "run"
	cases  []caseRecord      // of "conform"
	out    string            // what it printed
	code   int
	err    error            // nil where it succeeded
	late   bool             // it was ended by its deadline
	absent map[string]error // why other programs beside it have no figures
}

var errLate = errors.New("the time ran out")

// caseRecord is what the verdict of a claim needs of a conformance case.
type caseRecord struct{ ID, Level, Transport, Verdict string }

// of is the outcome of a run, which is made where it was not yet.
func (n *runner) of(ctx context.Context, r *Run) *outcome {
	line := r.line(n.Options)
	if o := n.ran[line]; o != nil {
		return o
	}
	n.Progress("rdmaperf " + line)
	ctx, cancel := n.share(ctx, r)
	defer cancel()
	base := filepath.Join(n.dir, fmt.Sprintf("%02d", len(n.ran)+1))
	began := time.Now()
	var o *outcome
	if len(r.Beside) > 0 {
		o = n.turns(ctx, r, base)
	} else {
		o = n.start(ctx, fields(line), base)
	}
	n.ran[line] = o
	n.made = append(n.made, Made{"rdmaperf " + line, time.Since(began).Seconds()})
	return o
}

// share is a context for a run, which ends before its time takes that of the runs behind it: one by turns ends whenever
// its share of what is left is over, and has the rounds that it made.
func (n *runner) share(ctx context.Context, r *Run) (context.Context, context.CancelFunc) {
	runs := len(n.left)
	n.left = slices.DeleteFunc(n.left, func(o *Run) bool { return o == r })
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	shares := 2
	if len(r.Beside) > 0 {
		shares = 1
	}
	return context.WithTimeout(ctx, time.Until(end)*time.Duration(shares)/time.Duration(max(runs, shares)))
}

// start runs one command to its end. Its files begin with base.
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
	// It ends its server by itself.
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

// readCases reads the records of conformance cases.
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

// lastLine is the last line of what a program said, without the program's name.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "rdmaperf: ")
}

// judgePass says whether a command succeeded, and whether the cases of a "conform" that are asked for passed.
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
