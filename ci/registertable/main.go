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
	"flag"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
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
	if err := targets.Parse(flags, args, "[-only SETS] [-show SETS] [-json FILE] FILE…",
		func() bool { return flags.NArg() > 0 }); err != nil {
		return err
	}
	lists, err := targets.Sets(sets(), *only, *show)
	if err != nil {
		return err
	}
	m := measures{}
	for _, name := range flags.Args() {
		if err := m.file(name); err != nil {
			return err
		}
	}
	return targets.Report("rdmaperf-register/v1", *jsonFile, m.lines(rows(lists[0]), lists[1], *host))
}
