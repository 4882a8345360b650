// Command mutate changes the code on purpose and holds the tests against it: a change that
// no test notices is a survivor. It is ci/mutants' engine.
//
//	mutate [flags] PACKAGE...
//
// It has two sources of changes. A list (-list) has those that no program finds, such as
// changes of C, or of what a figure means; each is laid over the tree with go test
// -overlay, so that nothing is copied or written. And gremlins, if -gremlins names its
// command, finds operators and conditions of the packages to change. All of a package are
// compiled at once, each asleep until it is named (schema.go), and tried by the tests that reach
// them, the quick ones first. What survives that, and what cannot be said so, is compiled and
// tried by itself, like a listed change.
//
// PACKAGE may be A+B: then the tests of B are held against changes of A, too.
//
// A survivor is an error unless -explained says why no test can notice it. An explanation
// or a listed change whose line is not in its file any more is an error, too: both say what
// is true of the tree, or are to be struck out.
//
// The time (-for) is a limit, and an interrupt ends it: listed changes come first, then one
// package after the other, each with an equal part of what is left. What was not reached is
// counted and no error. With -keep what became of gremlins' changes is kept in a folder, and the
// next run goes on there.
//
// Exit codes: 0 none survived unexplained, 1 some did or a list is stale, 2 usage.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("mutate", flag.ContinueOnError)
	f.SetOutput(stderr)
	root := f.String("root", ".", "the module's directory")
	list := f.String("list", "", "file of listed changes")
	explained := f.String("explained", "", "file of explained survivors")
	gremlins := f.String("gremlins", "", "command that runs gremlins; none: listed changes alone")
	limit := f.Duration("for", 45*time.Minute, "how long all of it may take")
	keep := f.String("keep", "", "folder that keeps what became of gremlins' changes; none: all are tried")
	jobs := f.Int("jobs", 1, "how many changes are tried at a time")
	bare := f.Bool("untested", false, "names changes on lines that no test runs")
	only := f.String("only", "", "regular expression of the names of listed changes")
	if err := f.Parse(args); err != nil {
		return 2
	}
	match, err := regexp.Compile(*only)
	if err != nil || *limit <= 0 || *jobs < 1 {
		fmt.Fprintf(stderr, "mutate: --only %q, --for %v, --jobs %d: want a regular expression, a time and a number\n", *only, *limit, *jobs)
		return 2
	}
	told, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(told, *limit)
	defer cancel()
	t := &tally{out: stdout, jobs: *jobs, untested: *bare}
	if *explained != "" {
		if t.why, err = readExplanations(*root, *explained); err != nil {
			fmt.Fprintln(stderr, "mutate:", err)
			return 1
		}
	}
	if *list != "" {
		changes, err := readList(*list)
		if err != nil {
			fmt.Fprintln(stderr, "mutate:", err)
			return 1
		}
		passed := map[string]bool{} // by tests, on the tree as it is
		for _, c := range changes {
			if !match.MatchString(c.name) {
				continue
			}
			tests := strings.Join(c.test, " ")
			ok, known := passed[tests]
			if !known {
				ok = passes(ctx, *root, c.test)
				passed[tests] = ok
			}
			switch {
			case ok:
				t.count(c.try(ctx, *root), c.name)
			case ctx.Err() != nil:
				t.count(notReached, c.name)
			default: // they would fail with any change
				t.count(stale, c.name+": its tests fail without it")
			}
		}
	}
	if *gremlins != "" {
		kept, err := openStore(*root, *keep)
		if err != nil {
			fmt.Fprintln(stderr, "mutate: --keep:", err)
			return 1
		}
		for i, pkg := range f.Args() {
			t.package_(ctx, *root, strings.Fields(*gremlins), pkg, len(f.Args())-i, kept)
		}
	}
	return t.end()
}

// verdict is what became of a change.
type verdict int

const (
	killed     verdict = iota
	survived           // no test noticed
	explained          // no test can notice, and the list says why
	stale              // the change does not fit the tree
	notReached         // the time was over
	numVerdicts
	untested // no test comes there
)

var verdictNames = [numVerdicts]string{"killed", "SURVIVED", "explained", "STALE", "not reached"}

type tally struct {
	out      io.Writer
	jobs     int
	untested bool // names them
	why      []explanation
	n        [numVerdicts]int
}

// count notes one change, and says so where it is not simply killed.
func (t *tally) count(v verdict, what string) {
	t.n[v]++
	if v != notReached {
		fmt.Fprintf(t.out, "%-9s %s\n", verdictNames[v], what)
	}
}

// end prints the sums.
func (t *tally) end() int {
	for v, n := range t.n {
		fmt.Fprintf(t.out, "%s %d%s", strings.ToLower(verdictNames[v]), n, map[bool]string{true: "\n", false: ", "}[v == len(t.n)-1])
	}
	if t.n[survived]+t.n[stale] > 0 {
		return 1
	}
	return 0
}

// lines gives the lines of a file with their numbers, without blank ones and comments.
func lines(name string, each func(n int, line string) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	for n := 1; s.Scan(); n++ {
		if line := s.Text(); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			if err := each(n, line); err != nil {
				return fmt.Errorf("%s:%d: %w", filepath.Base(name), n, err)
			}
		}
	}
	return s.Err()
}
