// Command registertable turns what ci/register and ci/lab/register.sh measured into one
// table: what a registration costs by each way of having it, and an all-reduce with and
// without, against the project's targets.
//
// It reads result documents of the workloads register and allreduce, and the output of
// ci/peers.d/allreduce.c. All are named in the order of the repeats, whose arms ran in
// turn, so ratios are taken inside a repeat and then their median over the repeats.
//
// Exit codes are rdmaperf's: 0 when all targets are met, 3 when one is missed, 1 when
// something was not measured.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func main() {
	targets.Exit("register", run)
}

func run(args []string) error {
	flags := flag.NewFlagSet("registertable", flag.ContinueOnError)
	only := flags.String("only", strings.Join(sets(), ","), "comma list of sets of lines: "+strings.Join(sets(), ", "))
	show := flags.String("show", "", "comma list of sets whose lines are not judged")
	host := flags.Bool("host", false, "do not judge times, which are another machine's than the targets'")
	jsonFile := flags.String("json", "", "write the table as JSON to this file")
	if err := flags.Parse(args); err != nil {
		return &reports.ExitError{Code: reports.ExitUsage, Err: err}
	}
	usage := func(err error) error { return &reports.ExitError{Code: reports.ExitUsage, Err: err} }
	wanted := strings.Split(*only, ",")
	shown := strings.FieldsFunc(*show, func(r rune) bool { return r == ',' })
	for _, set := range slices.Concat(wanted, shown) {
		if !slices.Contains(sets(), set) {
			return usage(fmt.Errorf("set %q: want some of %v", set, sets()))
		}
	}
	if flags.NArg() == 0 {
		return usage(errors.New("usage: registertable [-only SETS] [-show SETS] [-json FILE] FILE…"))
	}
	m := measures{}
	for _, name := range flags.Args() {
		if err := m.file(name); err != nil {
			return err
		}
	}
	lines := m.lines(rows(wanted), shown, *host)
	if err := targets.WriteJSON(*jsonFile, map[string]any{"schema": "rdmaperf-register/v1", "lines": lines}); err != nil {
		return err
	}
	table(os.Stdout, lines)
	var o targets.Outcome
	for _, l := range lines {
		o.Add(l.Name, l.Verdict)
	}
	return o.Err()
}
