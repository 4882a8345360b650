package defaults

import (
	"bytes"
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
	if err := os.MkdirAll(filepath.Join(dir, "rdmaperf"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rdmaperf", "config.yaml"), []byte(file), 0o644); err != nil {
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
