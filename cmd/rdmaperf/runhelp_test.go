package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestRunHelpHasAPlaceForEveryFlag holds that run's help shows each flag once, under a
// heading that says what it is for, and names no flag that does not exist.
func TestRunHelpHasAPlaceForEveryFlag(t *testing.T) {
	c := newRunCommand()
	c.InitDefaultHelpFlag()
	var b strings.Builder
	c.SetOut(&b)
	if err := c.Usage(); err != nil {
		t.Fatal(err)
	}
	for _, g := range runGroups() {
		for _, name := range g.flags {
			if c.Flags().Lookup(name) == nil {
				t.Errorf("%s: there is no flag --%s", g.title, name)
			}
		}
		if !strings.Contains(b.String(), "\n"+g.title+":\n") {
			t.Errorf("the help has no heading %q", g.title)
		}
	}
	seen := map[string]string{}
	for _, g := range splitFlags(c.Flags(), runGroups()) {
		g.set.VisitAll(func(f *pflag.Flag) {
			if g.title == otherFlags {
				t.Errorf("--%s is in no group", f.Name)
			}
			if before := seen[f.Name]; before != "" {
				t.Errorf("--%s is in %q and in %q", f.Name, before, g.title)
			}
			seen[f.Name] = g.title
		})
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if seen[f.Name] == "" {
			t.Errorf("--%s is not in the help", f.Name)
		}
	})
}
