package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
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

// Sentences are filled to the width, and lists and examples stay as they are.
func TestHelpIsFilled(t *testing.T) {
	item := "    term" + strings.Repeat(" ", hanging-8) + "what it is"
	got := fill("one two three\nfour\n\n"+item+" and more\nfive", 38)
	if want := "one two three four\n\n" + item + "\n" + strings.Repeat(" ", hanging) + "and more\nfive"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// No command's help has sentences or flags beyond the width.
func TestHelpOfEveryCommandFits(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		c.Help()
		for line := range strings.Lines(out.String()) {
			example := c.Example != "" && strings.Contains(c.Example, strings.TrimSuffix(line, "\n"))
			if n := utf8.RuneCountInString(line) - 1; n > helpWidth && !example {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand())
}
