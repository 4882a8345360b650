package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
)

// complete asks as the shells' scripts do.
func complete(t *testing.T, args ...string) []string {
	t.Helper()
	r := rdmaperf(t, append([]string{"__complete"}, args...)...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	return lines[:len(lines)-1] // the last one is how to go on
}

// Cobra would keep a command whose values were completed.
func TestOnlyTheShellsRequestSetsUpCompletion(t *testing.T) {
	for _, c := range newRootCommand().Commands() {
		if _, set := c.GetFlagCompletionFunc("transport"); set {
			t.Errorf("%s completes values before it is asked to", c.Name())
		}
	}
}

func TestValuesAreCompleted(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--workload", ""}, "latency"},
		{[]string{"run", "--workload", "latency,th"}, "latency,throughput"},
		{[]string{"run", "--op", "write_"}, "write_imm"},
		{[]string{"run", "--format", ""}, "csv"},
		{[]string{"compare", "--format", "m"}, "markdown"},
		{[]string{"conform", "--explain", "ord/write-then"}, "ord/write-then-read"},
		{[]string{"run", "--polling", ""}, "event"},
		{[]string{"run", "--ycsb", "a,"}, "a,b"},
		{[]string{"perftest", "ib_send"}, "ib_send_lat"},
		{[]string{"perftest", "ib_write_bw", "--report_g"}, "--report_gbits"},
		{[]string{"help", "conf"}, "conform"},
	} {
		if got := complete(t, c.args...); !slices.Contains(got, c.want) {
			t.Errorf("%q offers %q, want %q among it", c.args, got, c.want)
		}
	}
	if got := complete(t, "run", "--workload", "latency,"); slices.Contains(got, "latency,latency") {
		t.Errorf("what stands in the list is offered again: %q", got)
	}
	// ShellCompDirectiveNoFileComp
	if r := rdmaperf(t, "__complete", "run", "--qp", ""); !strings.HasPrefix(r.stdout, ":4") {
		t.Errorf("files are offered for a number: %q", r.stdout)
	}
}

// What is offered is accepted, and the table names no flag that is gone.
func TestWhatIsOfferedIsAccepted(t *testing.T) {
	root := newRootCommand()
	known := map[string]bool{}
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	command, _, _ := root.Find([]string{"run"}) // a command of the table
	calls := []string{"ycsb", "rpc", "tensor"}
	for name, of := range vocabulary {
		if !known[name] {
			t.Errorf("no command has --%s", name)
		}
		if command.Flags().Lookup(name) == nil || name == "ib-dev" {
			continue
		}
		for _, word := range of(command) {
			var o run.Options
			cmd := runCommand(&o)
			args := []string{"--" + name, word}
			switch {
			case slices.Contains(calls, name):
				args = append(args, "--transport", "grpc(fused)+iwarp")
			case name == "mtu":
				args = append(args, "--transport", "verbs")
			case name == "arrivals":
				args = append(args, "--rate", "100")
			case name == "hol-arm":
				args = append(args, "--op", "write")
			case name == "op":
				args = append(args, "--workload", "latency")
			}
			if err := cmd.ParseFlags(args); err != nil {
				t.Errorf("%q: %v", args, err)
			} else if _, err := o.Plan(cmd); err != nil {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
}

// bashDriver loads the script that the command prints, and completes a line as bash does when Tab is pressed: words are
// split at bash's word breaks. The first function is of the package bash-completion, which not every machine has.
const bashDriver = `
_get_comp_words_by_ref() {
	local i word=; words=(); cword=-1
	for ((i = 0; i <= COMP_CWORD; i++)); do # "=" and ":" join again (-n "=:")
		case ${COMP_WORDS[i]} in
		=|:) words[cword]+=${COMP_WORDS[i]}; word=1 ;;
		*) if [[ $word ]]; then words[cword]+=${COMP_WORDS[i]}; word=; else words+=("${COMP_WORDS[i]}"); ((++cword)); fi ;;
		esac
	done
	cur=${words[cword]}; prev=${words[cword-1]}
}
__ltrim_colon_completions() { :; }
compopt() { :; } # which only bash itself may ask for
eval "$(rdmaperf completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
of=$(complete -p rdmaperf) || exit 3
$(sed 's/.* -F \([^ ]*\) .*/\1/' <<<"$of") 2>&1
printf '%s\n' "${COMPREPLY[@]}"
`

// TestBashCompletes drives bash itself.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	self := need(os.Executable())(t)
	bin := t.TempDir()
	must(t, os.Symlink(self, filepath.Join(bin, "rdmaperf")))
	config := filepath.Join(bin, "rdmaperf.d", "rdmaperf", "config.yaml")
	must(t, os.MkdirAll(filepath.Dir(config), 0o755))
	must(t, os.WriteFile(config, []byte("hosts: [node7, node8]\n"), 0o644))
	for _, c := range []struct {
		line string
		want string // among what is offered
		not  string
	}{
		{"rdmaperf ru", "run", "report"},
		{"rdmaperf run --workload lat", "latency", "throughput"},
		{"rdmaperf run --workload latency,th", "latency,throughput", ""},
		{"rdmaperf run --transport iw", "iwarp", "tcp"},
		{"rdmaperf run --transport tcp,sched+iw", "tcp,sched+iwarp", ""},
		{"rdmaperf conform --transport=me", "mem", ""},
		{"rdmaperf run --transport tcp,iw", "tcp,iwarp", ""},
		{"rdmaperf run --op fetch", "fetch_add", "send"},
		{"rdmaperf run --verify s", "sample", "none"},
		{"rdmaperf run -m 40", "4096", "1024"},
		{"rdmaperf run --format c", "csv", "text"},
		{"rdmaperf run no", "node7", "run"},
		{"rdmaperf conform --only ord/write-then-r", "ord/write-then-read", ""},
		{"rdmaperf compare --format m", "markdown", ""},
		{"rdmaperf perftest ib_send_", "ib_send_lat", "ib_write_bw"},
	} {
		var out bytes.Buffer
		cmd := exec.Command(bash, append([]string{"--norc", "-c", bashDriver, "bash"}, strings.Split(c.line, " ")...)...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+filepath.Join(bin, "rdmaperf.d"))
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", c.line, err, &out)
		}
		var offered []string
		for line := range strings.Lines(out.String()) {
			offered = append(offered, strings.TrimSpace(strings.ReplaceAll(line, "\\", ""))) // one candidate is escaped
		}
		if !slices.Contains(offered, c.want) || c.not != "" && slices.Contains(offered, c.not) {
			t.Errorf("%s: bash offers %q, want %q and not %q", c.line, offered, c.want, c.not)
		}
	}
}
