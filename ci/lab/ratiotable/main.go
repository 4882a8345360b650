// Command ratiotable sets rdmaperf's figures beside perftest's, measured in turns on
// the same device with the same settings: value, value, ratio, margin, verdict.
//
// It reads a directory with one file for each probe, named
// REPEAT.TOOL.DEVICE.TEST.SIZE, such as 1.perftest.rxe0.send_lat.64: perftest's
// output as it prints it, or rdmaperf's result document. TOOL is perftest, or rdmaperf, which
// polls as perftest does and compares no data either, or one whose ratios are shown in lines
// of their own and never judged: verified is rdmaperf with its data compared, adaptive with
// another way of polling. A probe that failed leaves the same name with .failed behind it, and
// the reason inside.
//
// What is judged is the median of the ratios of two probes that ran one right after the
// other, as the host's pace changes from second to second. The verdict is that of the whole
// interval in which it lies with 95 %: equal where that is within the margin, better or worse
// where it is on one side of 1, else undecided, as with fewer than 6 pairs. Each tool's best
// repeat, the lowest p50 or the highest rate, is next to it: it comes closest to a
// host of one's own, where the host was at its best for both of them.
//
// Tools that run in turns within one repeat (SIGSTOP) have stops in their mean times from
// post to post, which then come from probes that ran in one piece.
//
// Exit codes are rdmaperf's: 0 when nothing is worse than perftest, 3 when something is, 1
// when something could not be measured or is undecided.
//
// # Limitations
//
// perftest's median is compared with rdmaperf's p50; tails are not compared,
// because the two tools do not agree on what a tail is. Rates of large messages
// come from perftest's bandwidth, whose resolution is better than its rate's.
package main

import (
	"flag"
	"os"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func main() {
	targets.Exit("ratios", run)
}

func run(args []string) error {
	flags := flag.NewFlagSet("ratiotable", flag.ContinueOnError)
	dir := flags.String("dir", "", "directory with the raw output")
	jsonFile := flags.String("json", "", "write the table as JSON to this file")
	periods := flags.String("periods", "",
		"directory with raw output of latencies whose mean times from post to post stand for those of the first one")
	judge := flags.Bool("targets", true, "judge the ratios; false only shows them")
	if err := targets.Parse(flags, args, "-dir DIR [-periods DIR] [-json FILE] [-targets=false]",
		func() bool { return *dir != "" && flags.NArg() == 0 }); err != nil {
		return err
	}
	raw, err := readDir(os.DirFS(*dir))
	if err != nil {
		return err
	}
	if *periods != "" {
		whole, err := readDir(os.DirFS(*periods))
		if err != nil {
			return err
		}
		raw.periodsOf(whole)
	}
	t := build(raw, *judge)
	if err := t.writeText(os.Stdout); err != nil {
		return err
	}
	t.Environment = reports.Collect()
	if err := targets.WriteJSON(*jsonFile, t); err != nil {
		return err
	}
	return t.outcome()
}
