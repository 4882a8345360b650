// Command gotest runs the tests of the tree and says how many there were. It does what
// `go test` does, in three steps that a script can put beside other work:
//
//	gotest build [-race | -rest] DIR           links the test binaries that are not as they were, on all CPUs
//	gotest run [-race | -rest] [-clocks] DIR   runs those with clocks, else the others, on all CPUs
//	  -fresh                                   also those of which nothing changed since they passed
//	gotest report DIR                          names what was skipped, and counts
//
// With -rest it is what a run under the race detector left over (rest.go), with and without clocks.
// Which packages have clocks is told by their code (packages.go). DIR is a directory of
// its own; the steps leave there what the next ones need. Exit codes: 0, 1 when a test
// failed or a package was not built, 2 for a wrong command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const module = "github.com/rdmaperf/rdmaperf"

var errUsage = errors.New("usage: gotest build [-race | -rest] DIR | run [-race | -rest] [-clocks] [-fresh] DIR | report DIR")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx, os.Args[1:])
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "gotest:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("gotest", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the usage says it
	race := flags.Bool("race", false, "under the race detector")
	rest := flags.Bool("rest", false, "what was left over by the race detector's run")
	clocks := flags.Bool("clocks", false, "the packages with clocks")
	fresh := flags.Bool("fresh", false, "every test, changed or not")
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() != 1 || *race && *rest {
		return errUsage
	}
	k := kind{root: ".", dir: flags.Arg(0), race: *race, rest: *rest, fresh: *fresh}
	switch args[0] {
	case "build":
		return k.build(ctx)
	case "run":
		return k.run(ctx, *clocks, os.Stdout)
	case "report":
		return report(k.dir, os.Stdout)
	}
	return errUsage
}

// kind is one of the ways in which the tests are built and run.
type kind struct {
	root  string // top of the tree
	dir   string // what the steps leave
	race  bool
	rest  bool   // without the race detector, what a run under it left over
	fresh bool   // run what is unchanged, too
	cache string // where test binaries are kept, else where the user keeps his
}

func (k kind) name() string {
	switch {
	case k.race:
		return "race"
	case k.rest:
		return "rest"
	}
	return "plain"
}

// packs is the file in which build leaves what run needs; results the one to which
// run appends a line for each test.
func (k kind) packs() string   { return filepath.Join(k.dir, k.name()+".json") }
func (k kind) results() string { return filepath.Join(k.dir, k.name()+".results") }
