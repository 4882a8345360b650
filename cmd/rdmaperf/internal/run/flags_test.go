package run

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestADeviceAloneMeansVerbs(t *testing.T) {
	for args, want := range map[string]string{
		"-d rxe0":                              "verbs:rxe0",
		"-x 3":                                 "verbs(gid=3)",
		"-i 2 --gid-index 0":                   "verbs(port=2,gid=0)",
		"--transport tcp,verbs -d rxe0":        "tcp,verbs:rxe0",
		"--transport tcp --transport iwarp":    "tcp,iwarp",
		"--transport iwarp,iwarp":              "twice",
		"--transport verbs,verbs:rxe0 -d rxe0": "twice",
	} {
		o, f := new(Options), pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.Register(f)
		if err := f.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		got, err := o.Stacks()
		if text := strings.Join(got, ","); text != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v, want %s", args, text, err, want)
		}
	}
}

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

// A run among many is short where nothing says how long.
func TestTurnsAreBriefUnlessAsked(t *testing.T) {
	for _, c := range []struct{ options, want string }{{"-s 64", "-D 300ms -s 64"}, {"-D 1s", "-D 1s"}, {"-n100", "-n100"},
		{"--duration=2s", "--duration=2s"}, {"--rounds 4", "--rounds 4"}} {
		if got := strings.Join(briefly(strings.Fields(c.options)), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestFailIfDisturbed(t *testing.T) {
	for _, verdict := range []string{reports.VerdictQuiet, reports.VerdictDisturbed, reports.VerdictImpossible} {
		doc := &reports.Document{Results: []reports.Result{{Stack: "tcp", Workload: "latency", Op: "send",
			Disturbance: &reports.Disturbance{Verdict: verdict, Reasons: []string{"the reason"}}}}}
		var f FailIf
		if err := f.Set("disturbed"); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		err := f.check(&said, doc)
		if quiet := verdict == reports.VerdictQuiet; quiet != (err == nil) ||
			!quiet && (reports.Code(err) != reports.ExitThreshold || !strings.Contains(said.String(), "the reason")) {
			t.Errorf("%s: %v, %q", verdict, err, said.String())
		}
	}
}
