package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/rdmaperf/rdmaperf/reports"
)

// steering is what a terminal would obey: a bidirectional override and an isolate, an escape
// sequence, and C1's control sequence introducer.
const steering = "\u202eevil\x1b[2J\u2066\u009b"

// bend adds steering to every text of a document that names nothing in it.
func bend(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = bend(e, k)
		}
	case []any:
		for i, e := range v {
			v[i] = bend(e, key)
		}
	case string:
		switch key {
		case "schema", "workload", "op", "started", "started_at", "time", "status", "unit", "polling", "measured_by",
			"clock", "kind":
			return v // a document whose numbers mean something else is refused
		}
		return v + steering
	}
	return v
}

// Whatever somebody else's document says, no command prints what steers a terminal.
func TestForeignDocumentsDoNotSteerTheTerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	runs(t, "run", "--transport", "tcp", "--workload", "latency", "--op", "send", "-s", "64", "-n", "20", "--quiet", "-o",
		"good")
	const good = "good/result.json"
	var doc any
	must(t, json.Unmarshal(need(os.ReadFile(good))(t), &doc))
	must(t, os.WriteFile("bent.json", need(json.Marshal(bend(doc, "")))(t), 0o644))
	for _, c := range []struct {
		args string
		code int
	}{
		{"compare bent.json bent.json", 0},
		{"compare " + good + " bent.json", reports.ExitUsage},
		{"compare --force bent.json " + good, reports.ExitUsage},
		{"report bent.json -o - --format markdown", 0},
		{"report bent.json -o - --format latex", 0},
	} {
		r := ends(t, c.code, strings.Fields(c.args)...)
		said := r.stdout + r.stderr
		if c.code == 0 {
			contains(t, said, "evil")
		}
		if i := strings.IndexFunc(said, func(sign rune) bool {
			return sign != '\n' && sign != '\t' && unicode.In(sign, unicode.Cc, unicode.Cf)
		}); i >= 0 {
			t.Errorf("%s prints %q", c.args, said[i:min(i+9, len(said))])
		}
	}
}

// A token is in nothing that either side says or writes, whether it is right or wrong.
func TestATokenIsInNoLogAndNoResult(t *testing.T) {
	const right, wrong = "open-sesame-7153", "shut-sesame-9284"
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("RDMAPERF_TOKEN", "")
	secret := filepath.Join(t.TempDir(), "right")
	for name, token := range map[string]string{secret: right, secret + "-not": wrong} {
		must(t, os.WriteFile(name, []byte(token+"\n"), 0o600))
	}
	server, port := serveHere(t, "--token-file", secret, "--verbose")
	said := ""
	for file, code := range map[string]int{secret: 0, secret + "-not": reports.ExitPeer} {
		r := ends(t, code, "run", "127.0.0.1", "-p", port, "--token-file", file, "--transport", "tcp,grpc(tcp)", "-s", "64",
			"-n", "20", "--verbose", "--workload", "latency,rpc", "--warmup", "none", "--pin", "none", "-o",
			filepath.Base(file), "--raw")
		said += r.stdout + r.stderr
	}
	must(t, server.cmd.Process.Signal(syscall.SIGTERM))
	server.wait(30 * time.Second)
	contains(t, server.errs.String(), "the token differs from the server's")
	for _, token := range []string{right, wrong} {
		if strings.Contains(said+server.errs.String()+server.out.String(), token) {
			t.Errorf("%s is printed:\n%s%s", token, said, server.errs.String())
		}
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), right) {
			t.Errorf("%s has the token", path)
		}
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files of results, %v", files, err)
	}
}

// In a network of its own this machine has a public address: a server there that anybody may
// use says so, once, and one with a list or a token does not.
func TestAServerOnAPublicAddressSaysSoOnce(t *testing.T) {
	self := need(os.Executable())(t)
	secret := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(secret, []byte("open sesame"), 0o600))
	for args, want := range map[string]int{"": 1, "--bind 203.0.113.5": 1, "--bind 127.0.0.1": 0,
		"--allow 203.0.113.0/24": 0, "--token-file " + secret: 0} {
		cmd := exec.Command("/bin/sh",
			append([]string{"-c", `unshare -n true 2>/dev/null && command -v ip >/dev/null || exit 99
exec unshare -n sh -c 'ip link set lo up && ip addr add 203.0.113.5/32 dev lo || exit 99
timeout 20 "$@" & s=$!
at=127.0.0.1; case "$*" in *"--bind 203"*) at=203.0.113.5;; esac
for i in 1 2; do "$1" run $at -p 19999 --transport tcp --workload latency --op send -s 64 -n 10 --quiet --no-save --pin none --warmup none --timeout 10s >/dev/null; done
kill $s; wait $s' - "$@"`, "sh", self, "serve", "-p", "19999"}, strings.Fields(args)...)...)
		cmd.Env = append(os.Environ(), "RDMAPERF_TOKEN"+"=")
		cmd.WaitDelay = time.Second
		said, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() == 99 {
			t.Skip("no network namespace can be made here")
		}
		if n := strings.Count(string(said), "anybody who reaches this address"); n != want ||
			!strings.Contains(string(said), "listening") {
			t.Errorf("serve %s says so %d times, want %d: %v\n%s", args, n, want, err, said)
		}
	}
}
