package ci

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/wiretest/suite"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

// TestTheLabsLedgersAreInOrder: the guest is slow to say that an entry is not.
func TestTheLabsLedgersAreInOrder(t *testing.T) {
	for file, cases := range map[string][]conform.Case{"lab/ledger.json": conform.Catalogue(),
		"lab/wire.json": suite.Catalogue()} {
		f := need(os.Open(file))(t)
		defer f.Close()
		l := need(conform.ReadLedger(f))(t)
		for _, e := range l.Stale(cases) {
			t.Errorf("%s: no case is called %q", file, e.Case)
		}
		for i, e := range l.Entries {
			if e.Sometimes && e.Got == "" {
				t.Errorf("%s, entry %d, %s on %s: what depends on the moment has to name the failure", file, i+1, e.Case,
					e.Transport)
			}
		}
	}
}

// TestHazardsOfTheLabAreCases: what kernels die of is a case that is marked as a hazard,
// or runs beside those that are not.
func TestHazardsOfTheLabAreCases(t *testing.T) {
	b := need(os.ReadFile("lab/wire.hazards"))(t)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 6 || !slices.Contains([]string{"dies", "complains", "sometimes"}, f[2]) || f[3] == "" ||
			f[4] == "" || f[5] == "" {
			t.Errorf("%q: want kernels, case, dies, complains or sometimes, what happens, source, date", line)
			continue
		}
		if !slices.ContainsFunc(suite.Catalogue(), func(c conform.Case) bool { return c.ID == f[1] && c.Hazard }) {
			t.Errorf("%s is no hazard of the suite", f[1])
		}
	}
}

// A guest of the lab ends when the run that booted it is killed, and when whoever started
// that run is. Nothing is booted: a stand-in for QEMU sleeps and says its process.
func TestGuestsDieWithTheirCaller(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("no setpriv (util-linux)")
	}
	host := need(filepath.Abs("lab/host"))(t)
	for _, who := range []string{"the run", "its caller", "timeout"} {
		t.Run(who, func(t *testing.T) {
			dir := t.TempDir()
			complaints := need(os.Create(filepath.Join(dir, "stderr")))(t)
			defer complaints.Close()
			ended := make(chan error, 1)
			said := func(name string) int {
				t.Helper()
				end := time.After(30 * time.Second)
				for {
					b, err := os.ReadFile(filepath.Join(dir, name))
					if err == nil && strings.HasSuffix(string(b), "\n") {
						pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
						return pid
					}
					select {
					case err = <-ended:
					case <-end:
						err = errors.New("not for 30 s")
					case <-time.After(10 * time.Millisecond):
						continue
					}
					b, _ = os.ReadFile(complaints.Name())
					t.Fatalf("%s did not start (the run: %v)\n%s", name, err, b)
				}
			}
			write(t, filepath.Join(dir, "qemu-system-x86_64"),
				"#!/bin/bash\necho $PPID >"+dir+"/timeout\necho $$ >"+dir+"/guest\nexec sleep 600\n")
			run := write(t, filepath.Join(dir, "run"), fmt.Sprintf(`#!/bin/bash
set -euo pipefail
lab=%s
. "$lab/common.sh"
. "$lab/guest.sh"
lab=${lab%%/host}
follow_caller "$0" "$@"
trap end_child EXIT
trap 'exit 143' TERM
echo $$ >%s/run-is
forwards=() cpus=1 mem=1 kernel_dir=/ initrd=/ boot_limit=600
qemu 600 tcg / /dev/null
`, host, dir))
			caller := exec.Command("bash", "-c", `"$0" & echo $$ >"$1"; wait`, run, filepath.Join(dir, "caller"))
			caller.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			caller.Stderr = complaints
			must(t, caller.Start())
			go func() { ended <- caller.Wait(); close(ended) }()
			defer func() { <-ended }()
			defer caller.Process.Kill()
			guest := said("guest")
			defer syscall.Kill(guest, syscall.SIGKILL) // it is gone already
			killed := map[string]string{"the run": "run-is", "its caller": "caller", "timeout": "timeout"}[who]
			must(t, syscall.Kill(said(killed), syscall.SIGKILL))
			for end := time.Now().Add(20 * time.Second); alive(guest); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the guest lives on")
				}
			}
		})
	}
}

// alive tells whether a process runs: one that nobody waited for does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}
