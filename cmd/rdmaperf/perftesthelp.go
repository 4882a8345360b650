package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
)

// perftestOptions lists perftest's options for the help of one of its tests: what is done
// by its name alone, what is not with the reason.
func perftestOptions(w io.Writer) {
	fmt.Fprintln(w, "\nPerftest's options:")
	for _, d := range perftest.Describe() {
		names := "    --" + d.Long
		if d.Letter != "" {
			names = "-" + d.Letter + ", --" + d.Long
		}
		says := d.Verdict
		if d.Why != "" {
			says += ": " + d.Why
		}
		fmt.Fprintln(w, strings.Join(cli.Hang(fmt.Sprintf("  %-*s%s", cli.Hanging-2, names, says),
			cli.Columns(os.Stdout)), "\n"))
	}
}

// completePerftest offers the tests, and behind one the options that are not refused.
func completePerftest(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return perftest.Names(), cobra.ShellCompDirectiveNoFileComp
	}
	var offered []string
	for _, d := range perftest.Describe() {
		if d.Verdict == "refused" {
			continue
		}
		for _, name := range []string{"-" + d.Letter, "--" + d.Long} {
			if name != "-" && strings.HasPrefix(name, typed) && typed != "" {
				offered = append(offered, name)
			}
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
