package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
)

// elsewhere are commands that need a device, a host or an administrator that a test does not have; whether rdmaperf
// understands them is tested all the same. A paper's reproduction has tests of its own.
var elsewhere = regexp.MustCompile(`mlx5|rxe0|siw0|192\.0\.2\.\d+(:7174)?( |$)|push\.example|:9100|--impair|` +
	`reproduce|server\.pem`)

// guides are the pages whose commands are typed by their readers.
func guides(t *testing.T) map[string]string {
	pages := map[string]string{}
	for name, text := range documents(t) {
		for _, dir := range []string{"docs/tutorial.md", "docs/how-to/", "docs/explanation/"} {
			if strings.HasPrefix(name, dir) {
				pages[name] = text
			}
		}
	}
	return pages
}

// Every command of a page runs in the order of the page and ends with 0, with a server where the page starts one.
// Measurements are shortened.
func TestCommandsOfGuidesRun(t *testing.T) {
	fulltest.Only(t, "minutes of measurements")
	ran := 0
	pages := guides(t)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".md"), func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("XDG_DATA_HOME", t.TempDir()) // of baselines
			prepareFiles(t, pages[name])
			port, wire := "", ""
			for _, l := range codeLines(pages[name]) {
				l = strings.TrimPrefix(strings.TrimSpace(l), "- run: ")
				words := shellWords(l)
				if len(words) < 2 || words[0] != "rdmaperf" {
					continue
				}
				if wire != "" {
					l = strings.Replace(l, "192.0.2.7:7300", wire, 1)
				}
				words = shellWords(l)[1:]
				if elsewhere.MatchString(l) {
					continue
				}
				ran++
				if words[0] == "serve" {
					_, port = serveHere(t, slices.DeleteFunc(words[1:], func(w string) bool {
						return w == "-p" || w == "7300"
					})...)
					if slices.Contains(words, "--target") {
						wire = "127.0.0.1:" + port
					}
					continue
				}
				r := rdmaperf(t, shortened(words, port)...)
				if lacks := words[0] == "doctor" && r.code == 1; r.code != 0 && !lacks {
					t.Errorf("%s: %s: exit %d\n%s", name, l, r.code, r.stderr)
				}
			}
		})
	}
	if ran < 15 {
		t.Errorf("%d commands ran, want more", ran)
	}
}

// shortened is a command line whose measurements take milliseconds, and whose HOST is the page's server.
func shortened(words []string, port string) []string {
	words = slices.Clone(words)
	if i := slices.Index(words, "HOST"); i >= 0 {
		words[i] = "127.0.0.1"
		words = append(words, "--port", port)
	}
	switch {
	case slices.Contains(words, "register") && !slices.Contains(words, "-s"):
		words = append(words, "-s", "4K")
	case words[0] == "run" && !slices.Contains(words, "regions"): // those have no duration
		words = append(words, "-D", "20ms", "--rounds", "1", "--warmup", "none")
	case words[0] == "conform" && !slices.ContainsFunc(words, func(w string) bool {
		return w == "--only" || w == "--explain"
	}): // the tests of conform run all cases
		some := "ord"
		switch line := strings.Join(words, " "); {
		case strings.Contains(line, "--wire"):
			some = "w-0*"
		case strings.Contains(line, "grpc") || strings.Contains(line, "lite"):
			some = "call"
		}
		words = append(words, "--only", some)
	case words[0] == "compare" && slices.Contains(words, "--"):
		at := slices.Index(words, "--")
		words = slices.Concat(words[:at], []string{"--rounds", "2"}, words[at:], []string{"-D", "20ms"})
	}
	return words
}

// prepareFiles makes what the reader of a page has already: two builds, two documents, their directories, a ledger.
func prepareFiles(t *testing.T, page string) {
	t.Helper()
	self := need(os.Executable())(t)
	for _, build := range []string{"before", "after", "base", "head"} {
		if strings.Contains(page, "./"+build) {
			must(t, os.Symlink(self, build))
		}
	}
	ledger := `{"entries": []}`
	if block := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(page); block != nil {
		ledger = block[1]
	}
	must(t, os.WriteFile("known.json", []byte(ledger), 0o644))
	for _, dir := range []string{"old", "new"} {
		must(t, os.Mkdir(dir, 0o755))
	}
	runs(t, "run", "--transport", "iwarp", "--workload", "latency,throughput", "--op", "send", "-s", "64",
		"-D", "60ms", "--rounds", "3", "--json", "old/1.json")
	document := need(os.ReadFile("old/1.json"))(t)
	for _, name := range []string{"new/1.json", "old.json", "new.json", "baseline.json", "base.json"} {
		must(t, os.WriteFile(name, document, 0o644))
	}
}
