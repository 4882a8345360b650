package run

import (
	"bytes"
	"maps"
	"os"
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

// The help of run shows each flag once, under a heading, and names no flag that does not exist.
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

func TestHostsAreReadAsPeopleWriteThem(t *testing.T) {
	for _, c := range []struct {
		arg, host string
		port      int
	}{
		{"192.0.2.7", "192.0.2.7", 18515}, {"node7", "node7", 18515}, {"::1", "::1", 18515},
		{"fe80::1%eth0", "fe80::1%eth0", 18515},
		{"[::1]", "::1", 18515}, {"[::1]:19000", "::1", 19000}, {"node7:19000", "node7", 19000},
		{"192.0.2.7:19000", "192.0.2.7", 19000},
		{"[fe80::1%eth0]:1", "fe80::1%eth0", 1},
	} {
		host, port, err := splitHost(c.arg, 18515, false)
		if err != nil || host != c.host || port != c.port {
			t.Errorf("%s: %q %d %v, want %q %d", c.arg, host, port, err, c.host, c.port)
		}
	}
	for _, arg := range []string{"", ":1", "node7:", "node7:http", "node7:0", "node7:65536", "[::1", "[::1]x", "[]",
		"[]:5", "tcp://node7", "::1:18515", "[::1:18515]", "user@node7", "a b"} {
		if host, port, err := splitHost(arg, 18515, false); err == nil {
			t.Errorf("%q is read as %q %d", arg, host, port)
		}
	}
	if _, _, err := splitHost("node7:19000", 19001, true); err == nil {
		t.Error("two ports are accepted")
	}
	if _, port, err := splitHost("node7:19000", 19000, true); err != nil || port != 19000 {
		t.Errorf("the same port twice: %d, %v", port, err)
	}
}

// Without a flag that says what to measure, run HOST measures the same stacks as run; where results go is no such flag.
func TestARunWithAHostMeasuresTheSameStacks(t *testing.T) {
	for line, want := range map[string]bool{"": true, "node7": true, "node7 -p 18600 --timeout 2s --no-wait": true,
		"--timeout 15s": true, "node7 -s 64": false, "node7 --transport tcp": false, "node7 -d mlx5_0": false,
		"-o dir --quiet --report_gbits": true, "--format json --no-save": true, "--details --export csv": true,
		"-o dir -D 2s": false, "--raw file": false, "--fail-if p99>1ms": false} {
		o := &Options{}
		f := pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.Register(f)
		if err := f.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		if got := isBare(f); got != want {
			t.Errorf("run %s: every stack %v, want %v", line, got, want)
		}
	}
}

// No flag of run may be hidden behind the keys that a run has besides flags, and what stands outside exists.
func TestScenarioKeysAreNoFlags(t *testing.T) {
	_, flags := scratchRun()
	for _, key := range []string{"name", "host"} {
		if flags.Lookup(key) != nil {
			t.Errorf("run has a flag --%s", key)
		}
	}
	for _, name := range outsideScenario {
		if flags.Lookup(name) == nil {
			t.Errorf("run has no flag --%s", name)
		}
		if _, err := parseScenario("s.yaml", []byte("version: 1\nruns:\n - "+name+": x\n")); err == nil ||
			!strings.HasPrefix(err.Error(), "s.yaml:3: "+name+": stands on the command line only") {
			t.Errorf("%s in a run: %v", name, err)
		}
	}
}

// Whatever a file holds, the decoder ends with one line or with runs whose flags can be set.
func FuzzParseScenario(f *testing.F) {
	example, err := os.ReadFile("../../testdata/scenario/example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{"", "version: 1\nruns: [{name: a}]",
		"version: 1\nruns:\n - &a {size: [64, 4K]}\n - *a", "{version: 1, defaults: {all: true}, runs: [{qp: 0x10}]}",
		"version: 1\n<<: {name: x}\nruns: [{rate: .inf}]", "- a", "version: 1\n---\n", "\t",
		"version: !!int 1\nruns: [{\"name\": \"\\0\"}]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseScenario("f.yaml", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Fatalf("an error without its file: %q", err)
			}
			return
		}
		if len(s.runs) == 0 {
			t.Fatal("no runs and no error")
		}
		names := map[string]bool{}
		for _, r := range s.runs {
			if r.name == "" || names[r.name] {
				t.Fatalf("run name %q", r.name)
			}
			names[r.name] = true
			_, flags := scratchRun()
			for _, set := range slices.Concat(s.defaults, r.settings) {
				if err := set.apply(flags.Lookup(set.flag)); err != nil {
					t.Fatalf("%s: %v", set.flag, err)
				}
			}
		}
	})
}
