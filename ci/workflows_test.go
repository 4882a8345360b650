package ci

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is what the rules look at; actionlint (ci/lint) checks the rest.
type workflow struct {
	Permissions map[string]string `yaml:"permissions"`
	Concurrency struct {
		Group string `yaml:"group"`
	} `yaml:"concurrency"`
	Jobs map[string]struct {
		Timeout int `yaml:"timeout-minutes"`
		Steps   []struct {
			Uses yaml.Node      `yaml:"uses"`
			Run  string         `yaml:"run"`
			With map[string]any `yaml:"with"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

var (
	pinned  = regexp.MustCompile(`^([\w.-]+/[\w.-]+(?:/[\w./-]+)?)@([0-9a-f]{40})$`)
	release = regexp.MustCompile(`^# v\d+\.\d+\.\d+$`)
)

// longestJob is more than any job needs: a hang must not cost the default six hours.
const longestJob = 60

// workflowFaults lists what breaks a rule. pins maps actions to commits over
// all files; runnable tells whether a file of the tree is there to be run.
func workflowFaults(text []byte, pins map[string]string, runnable func(path string) bool) []string {
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		return []string{err.Error()}
	}
	var faults []string
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		add("permissions %v: want contents: read, and more only in the job that needs it", w.Permissions)
	}
	if w.Concurrency.Group == "" {
		add("no concurrency group")
	}
	if len(w.Jobs) == 0 {
		add("no jobs")
	}
	for name, job := range w.Jobs {
		if job.Timeout < 1 || job.Timeout > longestJob {
			add("job %s: timeout-minutes %d, want 1 to %d", name, job.Timeout, longestJob)
		}
		for _, s := range job.Steps {
			if uses := s.Uses.Value; uses != "" && uses != "./" { // this tree's own action
				m := pinned.FindStringSubmatch(uses)
				switch {
				case m == nil:
					add("job %s: %s is not pinned to a commit", name, uses)
					continue
				case !release.MatchString(s.Uses.LineComment):
					add("job %s: %s lacks the comment that names its release", name, uses)
				case pins[m[1]] != "" && pins[m[1]] != m[2]:
					add("job %s: %s is pinned to two commits", name, m[1])
				}
				pins[m[1]] = m[2]
				if m[1] == "actions/checkout" && s.With["persist-credentials"] != false {
					add("job %s: checkout leaves the token behind: want persist-credentials: false", name)
				}
				if m[1] == "actions/upload-artifact" && s.With["if-no-files-found"] != "error" {
					add("job %s: an artifact that is missing must be an error", name)
				}
			}
			if s.Run == "" {
				continue
			}
			if strings.Contains(strings.TrimSpace(s.Run), "\n") {
				add("job %s: a step of several lines belongs into a script in ci/: %q", name, s.Run)
			}
			if strings.Contains(s.Run, "${{") {
				add("job %s: an expression inside a command can inject one: pass it through env: %q", name, s.Run)
			}
			for word := range strings.FieldsSeq(s.Run) {
				if strings.HasPrefix(word, "ci/") && !runnable(word) {
					add("job %s: %s is not there to be run", name, word)
				}
			}
		}
	}
	return faults
}

// runnable tells whether a file of this tree is there to be run.
func runnable(path string) bool {
	info, err := os.Stat(filepath.Join("..", path))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// checkWorkflows reports the faults of all workflows, and returns what they pin.
func checkWorkflows(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../.github/workflows/*")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d workflows, error %v", len(files), err)
	}
	pins := map[string]string{}
	for _, file := range files {
		for _, fault := range workflowFaults(need(os.ReadFile(file))(t), pins, runnable) {
			t.Errorf("%s: %s", filepath.Base(file), fault)
		}
	}
	return pins
}

func TestWorkflowRulesFindFaults(t *testing.T) {
	const sound = `
permissions: {contents: read}
concurrency: {group: x}
jobs:
  a:
    timeout-minutes: 5
    steps:
      - uses: actions/checkout@0123456789012345678901234567890123456789 # v1.2.3
        with: {persist-credentials: false}
      - uses: actions/upload-artifact@0123456789012345678901234567890123456789 # v1.2.3
        with: {if-no-files-found: error}
      - run: ci/test
`
	only := func(path string) bool { return path == "ci/test" }
	if faults := workflowFaults([]byte(sound), map[string]string{}, only); faults != nil {
		t.Fatalf("a sound workflow has faults: %q", faults)
	}
	for _, test := range []struct{ old, new, want string }{
		{"permissions: {contents: read}", "permissions: {contents: write}", "permissions"},
		{"permissions: {contents: read}\n", "", "permissions"},
		{"concurrency: {group: x}", "", "concurrency"},
		{"    timeout-minutes: 5\n", "", "timeout-minutes"},
		{"timeout-minutes: 5", "timeout-minutes: 360", "timeout-minutes"},
		{"checkout@0123456789012345678901234567890123456789", "checkout@v6", "not pinned"},
		{"# v1.2.3\n        with: {persist", "\n        with: {persist", "names its release"},
		{"{persist-credentials: false}", "{}", "persist-credentials"},
		{"{if-no-files-found: error}", "{}", "must be an error"},
		{"upload-artifact@", "checkout@1", "not pinned"},
		{"run: ci/test", "run: ci/absent", "ci/absent is not there"},
		{"run: ci/test", "run: |\n          ci/test\n          ci/test", "several lines"},
		{"run: ci/test", "run: ci/test ${{ github.head_ref }}", "inject"},
	} {
		bent := strings.Replace(sound, test.old, test.new, 1)
		faults := workflowFaults([]byte(bent), map[string]string{}, only)
		if !strings.Contains(strings.Join(faults, "\n"), test.want) {
			t.Errorf("%q for %q: faults %q, want one with %q", test.new, test.old, faults, test.want)
		}
	}
	pins := map[string]string{"actions/checkout": strings.Repeat("f", 40)}
	if faults := workflowFaults([]byte(sound), pins, only); len(faults) != 1 ||
		!strings.Contains(faults[0], "two commits") {
		t.Errorf("faults %q, want two commits of one action", faults)
	}
}

// actionFaults lists what breaks a rule in an action for others. Its commands are of
// several lines, as inputs become options there, and are short: the work is in scripts.
func actionFaults(text []byte, pins map[string]string) []string {
	var a struct {
		Inputs map[string]struct {
			Description string `yaml:"description"`
			Default     *string
		} `yaml:"inputs"`
		Runs struct {
			Using string `yaml:"using"`
			Steps []struct {
				Uses  yaml.Node         `yaml:"uses"`
				Run   string            `yaml:"run"`
				Shell string            `yaml:"shell"`
				Env   map[string]string `yaml:"env"`
			} `yaml:"steps"`
		} `yaml:"runs"`
	}
	if err := yaml.Unmarshal(text, &a); err != nil {
		return []string{err.Error()}
	}
	var faults []string
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		add("no composite action with steps")
	}
	for name, in := range a.Inputs {
		if in.Description == "" || in.Default == nil {
			add("input %s: no description or no default", name)
		}
		if !strings.Contains(string(text), "inputs."+name) {
			add("input %s: nothing reads it", name)
		}
	}
	for _, m := range regexp.MustCompile(`inputs\.([\w-]+)`).FindAllStringSubmatch(string(text), -1) {
		if _, known := a.Inputs[m[1]]; !known {
			add("input %s is not declared", m[1])
		}
	}
	for _, s := range a.Runs.Steps {
		if uses := s.Uses.Value; uses != "" {
			if m := pinned.FindStringSubmatch(uses); m == nil || !release.MatchString(s.Uses.LineComment) {
				add("%s is not pinned to a commit with its release", uses)
			} else if action := strings.Join(strings.Split(m[1], "/")[:2], "/"); pins[action] != "" &&
				pins[action] != m[2] {
				add("%s is pinned to two commits", action)
			}
			continue
		}
		if s.Shell != "bash" {
			add("shell %q of %q, want bash", s.Shell, s.Run)
		}
		if strings.Contains(s.Run, "${{") {
			add("an expression inside a command can inject one: %q", s.Run)
		}
		for _, m := range regexp.MustCompile(`\$GITHUB_ACTION_PATH/(ci/action/[\w-]+)`).FindAllStringSubmatch(
			s.Run, -1) {
			if !runnable(m[1]) {
				add("%s is not there to be run", m[1])
			}
		}
	}
	return faults
}

func TestWorkflowsAndActionKeepTheRules(t *testing.T) {
	text := need(os.ReadFile("../action.yml"))(t)
	pins := checkWorkflows(t) // of both are the same
	for _, fault := range actionFaults(text, pins) {
		t.Error(fault)
	}
	for _, test := range []struct{ old, new, want string }{
		{"using: composite", "using: node20", "no composite"},
		{"upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "upload-artifact@v7", "not pinned"},
		{"cache/restore@27d5ce7f107fe9357f9df03efb73ab90386fccae", "cache/restore@" + strings.Repeat("f", 40),
			"two commits"},
		{"ci/action/measure", "ci/action/absent", "ci/action/absent is not there"},
		{"shell: bash", "shell: sh", "want bash"},
		{"--workload \"$WORKLOAD\"", "--workload ${{ inputs.workload }}", "inject"},
		{"inputs.ledger", "inputs.leger", "leger is not declared"},
		{"    default: rxe siw\n", "", "no default"},
	} {
		bent := strings.Replace(string(text), test.old, test.new, 1)
		faults := strings.Join(actionFaults([]byte(bent), pins), "\n")
		if bent == string(text) || !strings.Contains(faults, test.want) {
			t.Errorf("%q for %q: faults %q, want one with %q", test.new, test.old, faults, test.want)
		}
	}
}

// The page of pipelines names every input with its default.
func TestActionIsDocumented(t *testing.T) {
	text := need(os.ReadFile("../action.yml"))(t)
	page := need(os.ReadFile("../docs/how-to/pipeline.md"))(t)
	var a struct {
		Inputs map[string]struct{ Default string } `yaml:"inputs"`
	}
	if err := yaml.Unmarshal(text, &a); err != nil || len(a.Inputs) == 0 {
		t.Fatal(len(a.Inputs), err)
	}
	for name, in := range a.Inputs {
		row := "| `" + name + "` | "
		if in.Default != "" {
			row += "`" + in.Default + "` |"
		}
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/how-to/pipeline.md has no row %q", row)
		}
	}
}
