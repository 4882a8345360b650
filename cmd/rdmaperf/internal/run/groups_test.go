package run

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
)

// The help of run shows each flag once, under a heading that says what it is for, and names no flag that does not
// exist.
func TestRunHelpHasAPlaceForEveryFlag(t *testing.T) {
	c := &cobra.Command{Use: "run"}
	new(Options).Register(c.Flags())
	c.InitDefaultHelpFlag()
	cli.GroupedUsage(c, FlagGroups())
	var b strings.Builder
	c.SetOut(&b)
	if err := c.Usage(); err != nil {
		t.Fatal(err)
	}
	for _, g := range FlagGroups() {
		for _, name := range g.Flags {
			if c.Flags().Lookup(name) == nil {
				t.Errorf("%s: there is no flag --%s", g.Title, name)
			}
		}
		if !strings.Contains(b.String(), "\n"+g.Title+":\n") {
			t.Errorf("the help has no heading %q", g.Title)
		}
	}
	if strings.Contains(b.String(), "\nFlags:\n") {
		t.Errorf("there are flags in no group:\n%s", b.String())
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if n := len(regexp.MustCompile(`(?m)^(  -., |      )--`+f.Name+`[ \[\n]`).FindAllString(b.String(),
			-1)); n != 1 {
			t.Errorf("--%s is in the help %d times", f.Name, n)
		}
	})
}

func TestWorkloadsNameFlagsOfRun(t *testing.T) {
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	new(Options).Register(set)
	for _, w := range catalogue.All() {
		m := w.Meta()
		for _, name := range slices.Concat(m.Means, m.Takes, slices.Collect(maps.Keys(m.Words))) {
			if set.Lookup(name) == nil {
				t.Errorf("%s names --%s, which run does not have", m.Name, name)
			}
		}
	}
}
