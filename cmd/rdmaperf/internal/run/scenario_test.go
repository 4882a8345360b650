package run

import (
	"os"
	"slices"
	"strings"
	"testing"
)

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
