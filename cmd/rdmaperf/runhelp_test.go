package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

// ofEach calls do for a command and all commands below it.
func ofEach(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		ofEach(sub, do)
	}
}

// No command's help has sentences or flags beyond the width, and every example can be typed.
func TestHelpOfEveryCommandFitsAndItsExamplesAreUnderstood(t *testing.T) {
	examples := 0
	ofEach(newRootCommand(), func(c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		c.Help()
		for line := range strings.Lines(out.String()) {
			example := c.Example != "" && strings.Contains(c.Example, strings.TrimSuffix(line, "\n"))
			if n := utf8.RuneCountInString(line) - 1; n > cli.HelpWidth && !example {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for line := range strings.Lines(c.Example) {
			if words := shellWords(strings.TrimSpace(line)); len(words) > 1 && words[0] == "rdmaperf" {
				examples++
				if err := understood(words[1:]); err != nil {
					t.Errorf("%s: %v", strings.TrimSpace(line), err)
				}
			}
		}
	})
	if examples < 20 {
		t.Errorf("%d examples found, want more", examples)
	}
}

func helpText(t *testing.T, args ...string) string {
	t.Helper()
	r := runs(t, args...)
	if r.stderr != "" {
		t.Fatalf("%q: stderr %q", args, r.stderr)
	}
	return r.stdout
}

// The help of run fits 60 lines and has perftest's habits; that of all has every flag.
func TestHelpOfRunIsShortAndHelpAllIsWhole(t *testing.T) {
	short, all := helpText(t, "run", "--help"), helpText(t, "run", "--help", "all")
	if n := strings.Count(short, "\n"); n > 60 {
		t.Errorf("run --help has %d lines, want at most 60", n)
	}
	contains(t, short, "-d,", "-x,", "-s,", "-a,", "-n,", "-D,", "-q,", "-t,", "-R,", "-p,", "--report_gbits")
	for _, l := range strings.Split(short+all, "\n") {
		if n := utf8.RuneCountInString(l); n > 80 && strings.Contains(strings.TrimSpace(l), " ") {
			t.Errorf("%d columns: %s", n, l)
		}
	}
	newRunCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !strings.Contains(all, "--"+f.Name) {
			t.Errorf("run --help all lacks --%s", f.Name)
		}
	})
}

// The help of a workload has its flags and no others, with examples that can be typed.
func TestHelpOfEachWorkloadHasItsFlags(t *testing.T) {
	all := catalogue.All()
	of := workload.Register(all, pflag.NewFlagSet("run", pflag.ContinueOnError))
	for i, w := range all {
		m := w.Meta()
		help := helpText(t, "run", "--help", m.Name)
		for _, other := range [][]string{{"run", "--workload", m.Name, "--help"}, {"help", "run", m.Name}} {
			if helpText(t, other...) != help {
				t.Errorf("%q says something else than run --help %s", other, m.Name)
			}
		}
		for j := range all {
			for _, name := range of[j] {
				has := slices.Contains(of[i], name) || slices.Contains(m.Takes, name)
				if got := strings.Contains(help, " --"+name+" "); got != has {
					t.Errorf("help of %s has --%s: %v, want %v", m.Name, name, got, has)
				}
			}
		}
		if m.Examples == "" {
			t.Errorf("%s has no example", m.Name)
		}
		for line := range strings.Lines(m.Examples) {
			if words := shellWords(strings.TrimSpace(line)); words[0] != "rdmaperf" {
				t.Errorf("%s: %q is no command line of rdmaperf", m.Name, line)
			} else if err := understood(words[1:]); err != nil {
				t.Errorf("%s: %s: %v", m.Name, line, err)
			}
		}
	}
}
