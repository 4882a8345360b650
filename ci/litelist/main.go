// Command litelist walks what LITE (SOSP'17) says of itself, L1 to L18: for each it runs
// commands of this tree, takes a figure from what they print, and says whether the claim
// holds here. ci/lite-list starts it.
//
// Nothing passes without a measured thing: a command that fails, or that prints none of
// what was asked for, is a fail.
//
// Exit codes are rdmaperf's: 0 when every claim holds, 3 when figures speak against one, 1
// when a command failed, 77 when nothing failed and something was not run, 2 usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func main() { targets.Exit("lite-list", run) }

// most bounds all claims together, and one of them.
const (
	most    = 8 * time.Minute
	mostOne = 2 * time.Minute
)

func run(args []string) error {
	flags := flag.NewFlagSet("litelist", flag.ContinueOnError)
	r := &runner{}
	only := flags.String("only", "", "comma list of L1 to L18 (all)")
	page := flags.String("o", "", "write the list as Markdown to this file")
	flags.StringVar(&r.program, "rdmaperf", "", "the program under test")
	flags.StringVar(&r.dir, "dir", "", "where documents go")
	flags.StringVar(&r.machine, "machine", "", "what the page says of machine and commit")
	if err := targets.Parse(flags, args, "-rdmaperf FILE -dir DIR [-only L1,L2] [-o FILE]",
		func() bool { return r.program != "" && r.dir != "" && flags.NArg() == 0 }); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	var all []line
	for _, c := range chosen {
		l := r.walk(ctx, c)
		print1(os.Stdout, l)
		all = append(all, l)
		if *page != "" { // after each, so that what was walked is there however this ends
			if err := writePage(*page, r.machine, all); err != nil {
				return err
			}
		}
	}
	return verdictOf(os.Stdout, all)
}

// choose is the claims of a comma list, in the table's order.
func choose(list string) (chosen []claim, err error) {
	names := make([]string, len(claims))
	for i, c := range claims {
		names[i] = c.name
	}
	asked, err := targets.Sets(names, list)
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for _, n := range asked[0] {
		want[n] = true
	}
	for _, c := range claims {
		if len(want) == 0 || want[c.name] {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

// claim is one row of the list. show runs what shows it, notes figures, and returns why the
// claim does not hold.
type claim struct {
	name, what string
	show       func(r *runner)
}

type verdict string

const (
	pass   verdict = "pass"
	fail   verdict = "fail"
	notRun verdict = "not run"
)

// line is what came of a claim.
type line struct {
	name, what string
	commands   []string
	figures    []string
	verdict    verdict
	why        []string
	failed     bool // a command, not a figure
	took       time.Duration
}

// walk shows one claim.
func (r *runner) walk(ctx context.Context, c claim) line {
	begin := time.Now()
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithTimeout(ctx, mostOne)
	defer cancel()
	r.line = line{name: c.name, what: c.what, verdict: pass}
	if ctx.Err() != nil {
		r.lacks(fmt.Errorf("the %v of the whole list were over", most))
	} else {
		func() {
			defer func() {
				if e := recover(); e != nil && e != errStop {
					panic(e)
				}
			}()
			c.show(r)
		}()
		if l := &r.line; l.verdict == pass && len(l.figures) == 0 {
			r.broke(errors.New("nothing was measured"))
		}
	}
	r.line.took = time.Since(begin)
	return r.line
}

// verdictOf prints the count, and is the exit code with its reason.
func verdictOf(w *os.File, all []line) error {
	n := map[verdict][]string{}
	failed := false
	for _, l := range all {
		n[l.verdict] = append(n[l.verdict], l.name)
		failed = failed || l.failed
	}
	fmt.Fprintf(w, "\n%d pass, %d fail, %d not run\n", len(n[pass]), len(n[fail]), len(n[notRun]))
	code := 0
	switch {
	case failed:
		code = reports.ExitFailed
	case len(n[fail]) > 0:
		code = reports.ExitThreshold
	case len(n[notRun]) > 0:
		code = reports.ExitNotRun
	default:
		return nil
	}
	return &reports.ExitError{Code: code, Err: fmt.Errorf("fail: %s; not run: %s", list(n[fail]), list(n[notRun]))}
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " ")
}
