package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagGroup is a part of a command's help: flags that are asked for together.
type FlagGroup struct {
	Title string
	Flags []string // long names, in the order of the help
}

// otherFlags heads what no group names.
const otherFlags = "Other flags"

// GroupedUsage makes c's help show its flags by groups. Flags that no group
// names come last.
func GroupedUsage(c *cobra.Command, groups []FlagGroup) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine())
		if c.HasExample() {
			fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
		}
		for _, g := range splitFlags(c.Flags(), groups) {
			fmt.Fprintf(w, "\n%s:\n%s", g.title, g.set.FlagUsagesWrapped(Columns(os.Stdout)))
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
func splitFlags(f *pflag.FlagSet, groups []FlagGroup) []titledFlags {
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
		for _, name := range g.Flags {
			named[name] = true
			flags = append(flags, f.Lookup(name))
		}
		add(g.Title, flags)
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
