// Command registerlist shows what is claimed of registration caches and pre-registered
// memory, R1 to R10, each by commands that it runs now: the claim, the commands, what was
// measured and the verdict. It is ci/register-list's engine, and is run from the module's
// directory.
//
// A row passes when each of its checks was measured and holds; it is not run when what it
// needs is not here, and says what that is. No row has a verdict without a figure.
//
// # Limitations
//
// Each command runs once, and one behind the other, so bounds are wide where they are not
// the project's targets; ci/register has those with repeats and scatter.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func main() { targets.Exit("register-list", run) }

func run(args []string) (err error) {
	flags := flag.NewFlagSet("registerlist", flag.ContinueOnError)
	only := flags.String("only", strings.Join(names(), ","), "comma list of rows")
	file := flags.String("o", "", "write the table as Markdown to this file")
	jsonFile := flags.String("json", "", "write it as JSON")
	limit := flags.Duration("for", 8*time.Minute, "all commands end after so long")
	if err := targets.Parse(flags, args, "[-only R5,R6] [-o FILE] [-json FILE] [-for TIME]",
		func() bool { return flags.NArg() == 0 && *limit > 0 }); err != nil {
		return err
	}
	lists, err := targets.Sets(names(), *only)
	if err != nil {
		return err
	}
	if len(lists[0]) == 0 {
		return targets.Usage(errors.New("no row is asked for"))
	}
	dir, err := os.MkdirTemp("", "registerlist")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // R6 runs as nobody
		return err
	}
	// What is running ends with this, and not behind it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	r := &runner{ctx: ctx, dir: dir}
	if err := r.build(); err != nil {
		return err
	}
	t := table{Schema: "rdmaperf-register-list/v1", Started: time.Now(), Environment: reports.Collect()}
	for _, w := range rows() {
		if !slices.Contains(lists[0], w.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "register-list: %s: %s\n", w.name, w.claim)
		began := time.Now()
		l := w.measure(r)
		l.Seconds = time.Since(began).Seconds()
		t.Rows = append(t.Rows, l)
		t.text(os.Stdout, l)
	}
	if *file != "" {
		if err := os.WriteFile(*file, []byte(t.markdown()), 0o644); err != nil {
			return err
		}
	}
	if err := targets.WriteJSON(*jsonFile, t); err != nil {
		return err
	}
	return t.outcome()
}
