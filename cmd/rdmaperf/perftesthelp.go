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

func perftestHelp(w io.Writer, test string) {
	fmt.Fprintf(w, "Usage:\n  %s            start a server and wait for a connection\n  %s <host>     connect to the "+
		"server at <host>\n\nBoth sides are rdmaperf; the defaults are in parentheses.\n\nOptions:\n", test, test)
	var refused []string
	for _, d := range perftest.Describe() {
		names := "    --" + d.Long
		if d.Letter != "" {
			names = "-" + d.Letter + ", --" + d.Long
		}
		if d.Verdict == perftest.Refused {
			refused = append(refused, cli.Hang(fmt.Sprintf("  %-*s%s", cli.Hanging-2, names, d.What+". "+d.Why),
				cli.Columns(os.Stdout))...)
			continue
		}
		if d.Arg != "" {
			names += "=" + d.Arg
		}
		says := d.What
		if d.Verdict == perftest.Differs {
			says += ". Here: " + d.Why
		}
		fmt.Fprintln(w, strings.Join(cli.Hang(fmt.Sprintf("  %-*s%s", cli.Hanging-2, names, says),
			cli.Columns(os.Stdout)), "\n"))
	}
	fmt.Fprintf(w, "\nOptions of perftest that are refused:\n%s\n", strings.Join(refused, "\n"))
}

// completePerftest offers the tests, and behind one the options that are not refused.
func completePerftest(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return perftest.Names(), cobra.ShellCompDirectiveNoFileComp
	}
	var offered []string
	for _, d := range perftest.Describe() {
		if d.Verdict == perftest.Refused {
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
