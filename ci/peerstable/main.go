// Command peerstable turns the raw output of ci/peers into one table: each
// measure with its value, its ratio to a reference measured beside it, the
// project's target and the verdict.
//
// It reads a directory with one file for each repeat of each probe,
// REPEAT.PROBE, as listed in probes.go; a probe that failed leaves
// REPEAT.PROBE.failed with the reason instead. A repeat's probes ran one right
// after the other, so ratios are taken inside a repeat and then the median over
// the repeats: drift of a busy machine cancels out.
//
// Exit codes are rdmaperf's: 0 when all targets are met, 3 when one is missed,
// 1 when something could not be measured.
//
// # Limitations
//
// The numbers of foreign tools are what those tools print, with their own clocks
// and warm-ups: libfabric's is a mean, UCX's a median of its last samples.
package main

import (
	"flag"
	"os"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func main() {
	targets.Exit("peers", run)
}

func run(args []string) error {
	flags := flag.NewFlagSet("peerstable", flag.ContinueOnError)
	dir := flags.String("dir", "", "directory with the raw output")
	jsonFile := flags.String("json", "", "write the table as JSON to this file")
	seconds := flags.Float64("seconds", 0, "length of each measured window, for the document")
	note := flags.String("note", "", "a remark for the table's foot")
	only := flags.String("only", "", "comma list of floor, rdmaperf, record, foreign; empty is all")
	if err := targets.Parse(flags, args, "-dir DIR [-only SETS] [-json FILE] [-seconds S]",
		func() bool { return *dir != "" && flags.NArg() == 0 }); err != nil {
		return err
	}
	sources, err := selection(*only)
	if err != nil {
		return targets.Usage(err)
	}
	raw, err := readDir(os.DirFS(*dir))
	if err != nil {
		return err
	}
	t := build(raw, sources)
	t.Note = *note
	if err := t.writeText(os.Stdout); err != nil {
		return err
	}
	t.Started, t.Seconds, t.Environment = time.Now(), *seconds, reports.Collect()
	if err := targets.WriteJSON(*jsonFile, t); err != nil {
		return err
	}
	return t.outcome()
}
