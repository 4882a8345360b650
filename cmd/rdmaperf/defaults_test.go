package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// WithDefaults parses a command line of run beside a configuration file and an environment.
func withDefaults(t *testing.T, file string, env map[string]string, args ...string) (o *runOptions, said string, err error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "rdmaperf"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rdmaperf", "config.yaml"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	root := newRootCommand()
	old, _, _ := root.Find([]string{"run"}) // a command of the table
	root.RemoveCommand(old)
	o = new(runOptions)
	cmd := runCommand(o)
	root.AddCommand(cmd)
	var out bytes.Buffer
	cmd.SetErr(&out)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	environ := []string{"XDG_CONFIG_HOME=" + dir}
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	err = applyDefaults(cmd, environ)
	return o, out.String(), err
}

func TestDefaultsAreAsIfTyped(t *testing.T) {
	file := "hosts: [node7]\nrun:\n  transport: [tcp, iwarp]\n  duration: 3s\n  qp: 2\n  report_gbits: true\nserve: {max-clients: 4}\n"
	o, said, err := withDefaults(t, file, map[string]string{"RDMAPERF_RUN_QP": "5"}, "--verbose")
	if err != nil || o.transports != "tcp,iwarp" || o.duration != "3s" || o.qps != 5 || !o.gbits {
		t.Errorf("%+v, %v", o, err)
	}
	if !strings.Contains(said, "--qp 5, from RDMAPERF_RUN_QP") || !strings.Contains(said, "--duration 3s, from /") || strings.Count(said, "\n") != 4 {
		t.Errorf("--verbose says %q", said)
	}
	if o, said, err = withDefaults(t, file, nil, "-q", "7", "-n", "10"); err != nil || o.qps != 7 || o.duration != "" || said != "" {
		t.Errorf("typed: qps %d, duration %q, said %q, %v: want what was typed, and no default that it excludes", o.qps, o.duration, said, err)
	}
}

// What the environment says, the file does not take back in other words.
func TestTheEnvironmentComesBeforeTheFile(t *testing.T) {
	o, said, err := withDefaults(t, "run: {duration: 3s, qp: 2}", map[string]string{"RDMAPERF_RUN_ITERS": "100", "RDMAPERF_RUN_SIZE": "", "RDMAPERF_SERVE_X": "1"}, "--verbose")
	if err != nil || o.duration != "" || o.qps != 2 || !strings.Contains(said, "--iters 100, from RDMAPERF_RUN_ITERS") || strings.Contains(said, "--duration") {
		t.Errorf("duration %q, %d queue pairs, said %q, %v", o.duration, o.qps, said, err)
	}
	if o, said, err = withDefaults(t, "", map[string]string{"RDMAPERF_RUN_ITERS": "100"}, "-D", "1s"); err != nil || said != "" || o.duration != "1s" {
		t.Errorf("beside what was typed: said %q, %v", said, err)
	}
}

// A mistake that nobody typed says where it stands.
func TestErrorsNameTheDefaultThatTheySpeakOf(t *testing.T) {
	t.Setenv("RDMAPERF_RUN_DURATION", "soon")
	t.Setenv("RDMAPERF_RUN_QP", "2")
	r := rdmaperf(t, "run", "--transport", "mem")
	if r.code != 2 || !strings.HasPrefix(r.stderr, "rdmaperf: default --duration soon, from RDMAPERF_RUN_DURATION\nrdmaperf: ") || strings.Contains(r.stderr, "--qp") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
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
	if _, _, err := withDefaults(t, "", map[string]string{"RDMAPERF_RUN_QP": "x"}); err == nil || !strings.Contains(err.Error(), "RDMAPERF_RUN_QP: ") {
		t.Errorf("of the environment: %v", err)
	}
	for _, name := range []string{"RDMAPERF_RUN_DURATON", "RDMAPERF_RUN_SCENARIO", "RDMAPERF_RUN_"} {
		if _, said, err := withDefaults(t, "", map[string]string{name: "x"}); err != nil || said != "rdmaperf: "+name+": run has no such default\n" {
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
		if got := configFile(func(key string) string { return env[slices.Index([]string{"XDG_CONFIG_HOME", "HOME"}, key)] }); got != want {
			t.Errorf("%q: %q, want %q", env, got, want)
		}
	}
}
