package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bashDriver loads the script that the command prints, and completes a line as bash does
// when Tab is pressed: words are split at bash's word breaks. The first function is
// of the package bash-completion, which not every machine has.
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
		cmd := exec.Command(bash, append([]string{"--norc", "-c", bashDriver, "bash"},
			strings.Split(c.line, " ")...)...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"),
			"XDG_CONFIG_HOME="+filepath.Join(bin, "rdmaperf.d"))
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
