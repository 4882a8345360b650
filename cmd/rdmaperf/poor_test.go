package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Machines and surroundings that are short of something: each is a row, with the words and
// the exit code that a run has there. $1… is the command; a row without what it needs, such
// as a control group that may be made, is skipped by its name.
func TestPoorMachines(t *testing.T) {
	small := "run --transport iwarp --workload latency --op send,write -s 64 -n 100 --warmup none --pin none --quiet " +
		"--no-save"
	unlocked := `command -v setpriv >/dev/null || exit 99
ulimit -l 0; exec setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock "$@"`
	if os.Getuid() != 0 {
		unlocked = `ulimit -l 0; exec "$@"` // CAP_IPC_LOCK is root's
	}
	const group = `for d in /sys/fs/cgroup/memory /sys/fs/cgroup; do
	g=$d/rdmaperf-test-$$; mkdir $g 2>/dev/null || continue
	for f in memory.limit_in_bytes memory.max; do
		if [ -w $g/$f ] && { echo 512M >$g/$f && echo $$ >$g/cgroup.procs; } 2>/dev/null; then
			"$@"; c=$?; echo $$ >$d/cgroup.procs; rmdir $g; exit $c
		fi
	done
	rmdir $g
done; exit 99`
	const full = `unshare -m true 2>/dev/null || exit 99
exec unshare -m sh -c 'mount -t tmpfs -o size=64k none /mnt || exit 99
"$@"; c=$?
[ -z "$(find /mnt -type f -size 0 -o -name ".rdmaperf*")" ] || { echo "left behind: $(ls -la /mnt/out)" >&2; exit 98; }
exit $c' - "$@"`
	for _, c := range []struct {
		name, shell, args string
		code              int
		want              string // of stderr; "": stderr is empty
	}{
		{"64 descriptors", `ulimit -n 64; exec "$@"`, small, 0, ""},
		{"64 descriptors, 100 queue pairs", `ulimit -n 64; exec "$@"`,
			"run --transport tcp --workload throughput --op send -q 100 -s 64 -n 100 --quiet --no-save", 1,
			"too many open files; try ulimit -n"},
		{"64 descriptors, 64 clients", `ulimit -n 64; exec "$@"`,
			"run --transport iwarp --workload incast --clients 64 --op send -s 64 -n 10 --quiet --no-save", 1,
			"too many open files; try ulimit -n"},
		{"64 descriptors, 100 connections of calls", `ulimit -n 64; exec "$@"`,
			"run --transport grpc(tcp) --workload rpc -q 100 -s 64 -n 100 --quiet --no-save", 1,
			"too many open files; try ulimit -n"},
		{"no locked memory", unlocked, small, 0, ""},
		{"one CPU", `exec taskset -c 0 "$@"`,
			"run --transport tcp,iwarp,sched+iwarp,grpc(fused)+iwarp,lite+iwarp --workload latency -s 64 -n 50 " +
				"--quiet --no-save", 0, ""},
		{"one CPU, pinned to two", `exec taskset -c 0 "$@"`, small + " --pin 0,1", 2,
			"server's CPU 1 is none that this process may run on"},
		{"512 MB", group, small, 0, ""},
		{"512 MB, a plan of 2 GB", group,
			"run --transport iwarp --workload throughput --op write -s 64M -q 4 -t 4 -n 20 --quiet --no-save", 2,
			"bytes of memory, of which this machine, or the limit of this process's control group, leaves"},
		{"a full disk", full, strings.TrimSuffix(small, " --no-save") + " -o /mnt/out --op send,write,read --raw", 1,
			"no space left on device"},
		{"a full standard output", `exec "$@" >/dev/full`, small, 1, "write /dev/stdout: no space left on device"},
		{"no HOME", `unset HOME XDG_CONFIG_HOME; exec "$@"`, small, 0, ""},
		{"no HOME, a baseline to save", `unset HOME XDG_CONFIG_HOME; exec "$@"`,
			strings.TrimSuffix(small, " --no-save") + " --save before", 2, "$HOME is not defined"},
		{"standard output is closed", `exec "$@" >&-`, small, 0, ""},
		{"standard error is closed", `exec "$@" 2>&-`, small, 0, ""},
		{"standard streams are closed", `exec "$@" <&- >&- 2>&-`, small, 0, ""},
		{"an error, and standard error is closed", `exec "$@" 2>&-`, "run --transport carrierpigeon", 2, ""},
		{"a directory that nobody may write",
			`d=$(mktemp -d); cd "$d" && "$@"; c=$?; cd /; rmdir "$d" || exit 98; exit $c`, small, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			self := need(os.Executable())(t)
			temporary := t.TempDir()
			cmd := exec.Command("/bin/sh", append([]string{"-c", c.shell, "sh", self}, strings.Fields(c.args)...)...)
			cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.WaitDelay = time.Second
			var errs strings.Builder
			cmd.Stderr = &errs
			stop := time.AfterFunc(time.Minute, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			err := cmd.Run()
			stop.Stop()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			code, said := cmd.ProcessState.ExitCode(), errs.String()
			switch {
			case code == 99:
				t.Skip("it cannot be made so here")
			case code != c.code:
				t.Errorf("exit %d, want %d: %s", code, c.code, said)
			case c.want == "" && said != "", !strings.Contains(said, c.want), strings.Count(said, "\n") > 1:
				t.Errorf("it says %q, want one line with %q", said, c.want)
			}
			if syscall.Kill(-cmd.Process.Pid, 0) == nil {
				t.Error("processes stay behind")
				syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			}
			if left, _ := filepath.Glob(filepath.Join(temporary, "*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
