// Command schedratio turns what ci/sched-ratio and ci/lab/sched.sh measured into one
// table: how the scheduling tier stands beside the bare device, against the project's
// targets.
//
// It reads result documents of the head-of-line and throughput workloads, with a
// stack and the tier over it, and the output of package sched's benchmarks. The
// documents are named in the order of the repeats. The arms of a repeat ran point by
// point in turn, so ratios are taken inside a repeat and then their median over the
// repeats: drift of a busy machine cancels out.
//
// Exit codes are rdmaperf's: 0 when all targets are met, 3 when one is missed, 1
// when something was not measured.
package main

import (
	"flag"
	"os"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
)

func main() {
	targets.Exit("sched-ratio", run)
}

func run(args []string) error {
	flags := flag.NewFlagSet("schedratio", flag.ContinueOnError)
	bench := flags.String("bench", "", "benchmark output of package sched: a request's cost, and streams alone")
	stack := flags.String("stack", "iwarp", "the stack that the tier is held against")
	only := flags.String("only", strings.Join([]string{setHOL, setBulk, setCPU, setNoCRC, setRequest}, ","),
		"comma list of sets of lines: hol, bulk, cpu, machine, nocrc, sends, request")
	show := flags.String("show", "", "comma list of sets whose lines are not judged")
	large := flags.Int64("large", 16*mib, "bytes of the longest message")
	jsonFile := flags.String("json", "", "write the table as JSON to this file")
	if err := targets.Parse(flags, args,
		"[-stack STACK] [-large BYTES] [-only SETS] [-show SETS] [-bench FILE] [-json FILE] DOCUMENT…",
		func() bool { return *bench != "" || flags.NArg() > 0 }); err != nil {
		return err
	}
	lists, err := targets.Sets(sets(), *only, *show)
	if err != nil {
		return err
	}
	m := measures{}
	for _, name := range flags.Args() {
		if err := m.document(name); err != nil {
			return err
		}
	}
	if *bench != "" {
		text, err := os.ReadFile(*bench)
		if err != nil {
			return err
		}
		m.bench(string(text), *stack)
	}
	list := rows(*stack, *large, lists[0])
	for i := range list {
		list[i].Shown = slices.Contains(lists[1], list[i].Set)
	}
	return targets.Report("rdmaperf-sched-ratio/v1", *jsonFile, m.lines(list))
}
