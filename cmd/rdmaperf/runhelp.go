package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

// flagGroup is a part of a command's help: flags that are asked for together.
type flagGroup struct {
	title string
	flags []string // long names, in the order of the help
}

// runGroups holds every flag of run once. What most runs need stands first, so
// that a newcomer may stop reading early; the workloads' flags follow in the order of
// their table.
func runGroups() []flagGroup {
	groups := []flagGroup{
		{"What to measure", []string{"transport", "workload", "op", "size", "all", "scenario"}},
		{"How long", []string{"duration", "iters", "warmup", "repeat", "interval", "run-infinitely"}},
		{"Load", []string{"qp", "qp-sweep", "threads", "tx-depth", "rx-depth", "bidirectional", "app-work", "impair", "inline_size", "cq-mod", "post_list", "polling", "loop", "nice",
			"rate", "rate-sweep", "arrivals", "pin", "awake", "verify", "no-verify", "redo", "seed"}},
		{"Peer and device", []string{"port", "ib-dev", "ib-port", "gid-index", "rdma_cm", "connection", "mtu", "qp-timeout", "retry_count", "sl", "tos", "token-file", "tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "timeout", "CPU-freq"}},
		{"Output", []string{"output", "json", "force", "no-save", "save", "format", "report_gbits", "counters", "raw", "raw-limit", "cpu-profile", "fail-if",
			"metrics-listen", "metrics-push", "metrics-textfile", "quiet", "verbose", "help"}},
	}
	for _, r := range workload.Rooms {
		if last := &groups[len(groups)-1]; r.Group != "" && last.title == r.Group {
			last.flags = append(last.flags, r.Names...)
		} else if r.Group != "" {
			groups = append(groups, flagGroup{r.Group, slices.Clone(r.Names)})
		}
	}
	return append(groups,
		flagGroup{"Stacks with grpc", []string{"mode-sweep", "busy-sweep", "poller-sweep", "ring-sweep"}},
		flagGroup{"Stacks with sched", []string{"sched-slice", "sched-window", "sched-send"}})
}

// otherFlags heads what no group names.
const otherFlags = "Other flags"

// helpWidth is the width of help, in columns, where the terminal does not say: what
// leaves room for text beside the longest flag, no more is known about it.
const helpWidth = 100

// groupedUsage makes c's help show its flags by groups. Flags that no group
// names come last.
func groupedUsage(c *cobra.Command, groups []flagGroup) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine())
		if c.HasExample() {
			fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
		}
		for _, g := range splitFlags(c.Flags(), groups) {
			fmt.Fprintf(w, "\n%s:\n%s", g.title, g.set.FlagUsagesWrapped(columns(os.Stdout)))
		}
		return nil
	})
}

// titledFlags is a group with its flags.
type titledFlags struct {
	title string
	set   *pflag.FlagSet
}

// splitFlags deals the flags of f that help shows to groups; empty groups are
// left out.
func splitFlags(f *pflag.FlagSet, groups []flagGroup) []titledFlags {
	var dealt []titledFlags
	named := map[string]bool{}
	add := func(title string, flags []*pflag.Flag) {
		set := pflag.NewFlagSet(title, pflag.ContinueOnError)
		set.SortFlags = false
		for _, one := range flags {
			if one != nil && !one.Hidden {
				set.AddFlag(one)
			}
		}
		if set.HasFlags() {
			dealt = append(dealt, titledFlags{title, set})
		}
	}
	for _, g := range groups {
		var flags []*pflag.Flag
		for _, name := range g.flags {
			named[name] = true
			flags = append(flags, f.Lookup(name))
		}
		add(g.title, flags)
	}
	var rest []*pflag.Flag
	f.VisitAll(func(one *pflag.Flag) {
		if !named[one.Name] {
			rest = append(rest, one)
		}
	})
	add(otherFlags, rest)
	return dealt
}

// columns is the width of help written to out.
func columns(out *os.File) int {
	if w, _, err := term.GetSize(int(out.Fd())); err == nil && w > 60 {
		return w
	}
	return helpWidth
}
