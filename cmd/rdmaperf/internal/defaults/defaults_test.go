package defaults

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// withDefaults parses a command line of run beside a configuration file and an environment.
func withDefaults(t *testing.T, file string, env map[string]string, args ...string) (f *pflag.FlagSet, said string,
	err error) {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "rdmaperf"), 0o755),
		os.WriteFile(filepath.Join(dir, "rdmaperf", "config.yaml"), []byte(file), 0o644)); err != nil {
		t.Fatal(err)
	}
	root, cmd, serve := &cobra.Command{Use: "rdmaperf"}, &cobra.Command{Use: "run"}, &cobra.Command{Use: "serve"}
	root.AddCommand(cmd, serve)
	serve.Flags().Int("max-clients", 16, "")
	f = cmd.Flags()
	f.StringP("duration", "D", "", "")
	f.Int64P("iters", "n", 0, "")
	f.IntP("qp", "q", 1, "")
	f.IntP("port", "p", 18515, "")
	for _, name := range []string{"transport", "size", "scenario"} {
		f.String(name, "", "")
	}
	f.Bool("report_gbits", false, "")
	f.Bool("verbose", false, "")
	var out bytes.Buffer
	cmd.SetErr(&out)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	environ := []string{"XDG_CONFIG_HOME=" + dir}
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	err = Apply(cmd, environ, [][2]string{{"iters", "duration"}})
	return f, out.String(), err
}

// has tells whether flags have these values.
func has(f *pflag.FlagSet, want map[string]string) bool {
	for name, v := range want {
		if f.Lookup(name).Value.String() != v {
			return false
		}
	}
	return true
}

func TestDefaultsAreAsIfTyped(t *testing.T) {
	file := "hosts: [node7]\nrun:\n  transport: [tcp, iwarp]\n  duration: 3s\n  qp: 2\n  report_gbits: true\nserve: " +
		"{max-clients: 4}\n"
	f, said, err := withDefaults(t, file, map[string]string{"RDMAPERF_RUN_QP": "5"}, "--verbose")
	if err != nil || !has(f, map[string]string{"transport": "tcp,iwarp", "duration": "3s", "qp": "5",
		"report_gbits": "true"}) {
		t.Errorf("%s, %v", f.FlagUsages(), err)
	}
	if !strings.Contains(said, "--qp 5, from RDMAPERF_RUN_QP") || !strings.Contains(said, "--duration 3s, from /") ||
		strings.Count(said, "\n") != 4 {
		t.Errorf("--verbose says %q", said)
	}
	if f, said, err = withDefaults(t, file, nil, "-q", "7", "-n", "10"); err != nil ||
		!has(f, map[string]string{"qp": "7", "duration": ""}) || said != "" {
		t.Errorf("typed: said %q, %v: want what was typed, and no default that it excludes", said, err)
	}
}

// What the environment says, the file does not take back in other words.
func TestTheEnvironmentComesBeforeTheFile(t *testing.T) {
	f, said, err := withDefaults(t, "run: {duration: 3s, qp: 2}", map[string]string{"RDMAPERF_RUN_ITERS": "100",
		"RDMAPERF_RUN_SIZE": "", "RDMAPERF_SERVE_X": "1"}, "--verbose")
	if err != nil || !has(f, map[string]string{"duration": "", "qp": "2"}) ||
		!strings.Contains(said, "--iters 100, from RDMAPERF_RUN_ITERS") || strings.Contains(said, "--duration") {
		t.Errorf("said %q, %v", said, err)
	}
	if f, said, err = withDefaults(t, "", map[string]string{"RDMAPERF_RUN_ITERS": "100"}, "-D", "1s"); err != nil ||
		said != "" || !has(f, map[string]string{"duration": "1s"}) {
		t.Errorf("beside what was typed: said %q, %v", said, err)
	}
}

func TestMistakesInDefaultsAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"run: {sise: 64}":               "run has no default for --sise",
		"fly: {size: 64}":               "no command fly",
		"run: {qp: many}":               `-q, --qp "many": want a whole number`,
		"run: {size: {a: 1}}":           "config.yaml:1: size: want a value",
		"run: 5":                        "config.yaml:1: run",
		"\t":                            "config.yaml",
		"run: {scenario: x.yaml}":       "no default for --scenario",
		strings.Repeat("# x\n", 300000): "longer than",
	} {
		if _, _, err := withDefaults(t, file, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", file, err, want)
		}
	}
	if _, _, err := withDefaults(t, "", map[string]string{"RDMAPERF_RUN_QP": "x"}); err == nil ||
		!strings.Contains(err.Error(), "RDMAPERF_RUN_QP: ") {
		t.Errorf("of the environment: %v", err)
	}
	for _, name := range []string{"RDMAPERF_RUN_DURATON", "RDMAPERF_RUN_SCENARIO", "RDMAPERF_RUN_"} {
		if _, said, err := withDefaults(t, "", map[string]string{name: "x"}); err != nil ||
			said != "rdmaperf: "+name+": run has no such default\n" {
			t.Errorf("%s: said %q, %v", name, said, err)
		}
	}
}

func TestConfigurationIsWhereXDGSays(t *testing.T) {
	for want, env := range map[string][2]string{
		"/x/rdmaperf/config.yaml":              {"/x", "/home/u"},
		"/home/u/.config/rdmaperf/config.yaml": {"relative", "/home/u"},
		"":                                     {"", ""},
	} {
		if got := ConfigFile(func(key string) string {
			return env[slices.Index([]string{"XDG_CONFIG_HOME", "HOME"}, key)]
		}); got != want {
			t.Errorf("%q: %q, want %q", env, got, want)
		}
	}
}

// ofService are the variables of a service with a named port, as Kubernetes documents them.
func ofService(prefix string) map[string]string {
	return map[string]string{
		prefix + "_SERVICE_HOST":         "10.0.0.11",
		prefix + "_SERVICE_PORT":         "7174",
		prefix + "_SERVICE_PORT_CONTROL": "7174",
		prefix + "_PORT":                 "tcp://10.0.0.11:7174",
		prefix + "_PORT_7174_TCP":        "tcp://10.0.0.11:7174",
		prefix + "_PORT_7174_TCP_PROTO":  "tcp",
		prefix + "_PORT_7174_TCP_PORT":   "7174",
		prefix + "_PORT_7174_TCP_ADDR":   "10.0.0.11",
	}
}

// A service in a cluster may have the name of a command. What a user says there still counts.
func TestVariablesOfAServiceAreNoDefaults(t *testing.T) {
	env := ofService("RDMAPERF_RUN")
	f, said, err := withDefaults(t, "", env, "--verbose")
	if err != nil || said != "" || !has(f, map[string]string{"port": "18515"}) {
		t.Errorf("said %q, %v, want nothing of the service", said, err)
	}
	env["RDMAPERF_RUN_PORT"], env["RDMAPERF_RUN_QP"] = "7300", "3" // the user's go before the cluster's
	if f, _, err = withDefaults(t, "", env); err != nil || !has(f, map[string]string{"port": "7300", "qp": "3"}) {
		t.Errorf("%v, want port 7300 and 3 queue pairs", err)
	}
	alone := map[string]string{"RDMAPERF_RUN_PORT": "tcp://10.0.0.11:7174"} // of no service: a mistake
	if _, _, err = withDefaults(t, "", alone); err == nil {
		t.Error("a port that is no number, of no service, is taken")
	}
}

func TestOnlyVariablesOfServicesAreLeftOut(t *testing.T) {
	kept := map[string]string{"RDMAPERF_RUN_PORT": "1", "RDMAPERF_RUN_SIZE": "64", "RDMAPERF_RUNS_PORT": "tcp://x",
		"A_SERVICE_HOST": "10.0.0.1", "A_SERVICE_PORT": "1", "RDMAPERF_RUN_PORT_X": "1"}
	env := ofService("RDMAPERF_RUN")
	maps.Copy(env, kept)
	if withoutServices(env); !maps.Equal(env, kept) {
		t.Errorf("%v, want %v", env, kept)
	}
}
