package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagGroup is a part of a command's help: flags that belong together.
type FlagGroup struct {
	Title string
	Flags []string // long names, in the order of the help
}

const otherFlags = "Flags"

// WriteFlags writes the flags of f by groups. Short takes the first line of each text alone.
func WriteFlags(w io.Writer, f *pflag.FlagSet, groups []FlagGroup, short bool) {
	for _, g := range splitFlags(f, groups, short) {
		fmt.Fprintf(w, "\n%s:\n%s", g.title, g.set.FlagUsagesWrapped(Columns(os.Stdout)))
	}
}

// GroupedUsage makes c's help show its flags by groups. Flags that no group names come last.
func GroupedUsage(c *cobra.Command, groups []FlagGroup) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine())
		if c.HasExample() {
			fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
		}
		WriteFlags(w, c.Flags(), groups, false)
		return nil
	})
}

type titledFlags struct {
	title string
	set   *pflag.FlagSet
}

func splitFlags(f *pflag.FlagSet, groups []FlagGroup, short bool) []titledFlags {
	var dealt []titledFlags
	named := map[string]bool{}
	add := func(title string, flags []*pflag.Flag) {
		set := pflag.NewFlagSet(title, pflag.ContinueOnError)
		set.SortFlags = false
		for _, one := range flags {
			if one == nil || one.Hidden {
				continue
			}
			shown := *one
			shown.Usage = usageText(one.Usage, short)
			set.AddFlag(&shown)
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
		if !named[one.Name] && !short {
			rest = append(rest, one)
		}
	})
	add(otherFlags, rest)
	return dealt
}

func usageText(text string, short bool) string {
	first, rest, more := strings.Cut(text, "\n")
	if short || !more {
		return first
	}
	return first + "; " + rest
}

func wholeTexts(f *pflag.FlagSet) *pflag.FlagSet {
	whole := pflag.NewFlagSet("", pflag.ContinueOnError)
	whole.SortFlags = f.SortFlags
	f.VisitAll(func(one *pflag.Flag) {
		shown := *one
		shown.Usage = usageText(one.Usage, false)
		whole.AddFlag(&shown)
	})
	return whole
}

// Only are the flags of f that names has, in its order.
func Only(f *pflag.FlagSet, names []string) *pflag.FlagSet {
	only := pflag.NewFlagSet("", pflag.ContinueOnError)
	only.SortFlags = false
	for _, name := range names {
		if one := f.Lookup(name); one != nil {
			only.AddFlag(one)
		}
	}
	return only
}
