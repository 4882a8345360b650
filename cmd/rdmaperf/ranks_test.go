package main

import (
	"bytes"
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

	meshresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Limits that no pair is beyond make the verdict that of no machine.
func TestRanksStartedByHandMeasureEachPair(t *testing.T) {
	const n = 3
	port := freePort(t) // rank 0 takes it
	file := filepath.Join(t.TempDir(), "mesh.json")
	var ranks []*exec.Cmd
	out := make([]strings.Builder, n)
	for r := range n {
		cmd := exec.Command(need(os.Executable())(t), "mesh", "--transport", "tcp", "-D", "20ms", "--json", file,
			"--rendezvous-timeout", "30s", "--fail-if", "latency>1000000%", "--fail-if", "bandwidth<0.01%")
		cmd.Env = append(os.Environ(), fmt.Sprint("RANK=", r), fmt.Sprint("WORLD_SIZE=", n), "MASTER_ADDR=127.0.0.1",
			"MASTER_PORT="+port)
		cmd.Stdout, cmd.Stderr = &out[r], &out[r]
		must(t, cmd.Start())
		ranks = append(ranks, cmd)
	}
	for r, cmd := range ranks {
		if err := cmd.Wait(); err != nil {
			t.Errorf("rank %d: %v\n%s", r, err, out[r].String())
		}
	}
	if !strings.Contains(out[0].String(), "3 ranks on 1 host, 3 pairs") {
		t.Errorf("rank 0:\n%s", out[0].String())
	}
	d := need(resultfile.ReadDocument(file))(t)
	seen := map[string]bool{}
	for i := range d.Results {
		r := &d.Results[i]
		m := reports.DetailOf[meshresults.Mesh](r)
		if m == nil || m.Failed != "" || !r.Verified || r.Operations == 0 {
			t.Errorf("%+v of %+v", m, r)
			continue
		}
		seen[fmt.Sprint(m.Measure, m.From, m.To)] = true
	}
	if len(seen) != 3*n {
		t.Errorf("%d figures, want %d: %v", len(seen), 3*n, seen)
	}
}

// Ranks in processes of their own sum vectors by every algorithm and arm, all sums are
// compared, and the page has their times and rates.
func TestRunAllreduce(t *testing.T) {
	out := t.TempDir()
	runs(t, "run", "--transport", "iwarp", "--workload", "allreduce", "--ranks", "3", "-s", "1K,64K", "-n",
		"3", "--output", out)
	d := documentOf(t, filepath.Join(out, "result.json"))
	if len(d.Results) != 3*2*2*4 { // algorithms, sizes, buffers, arms
		t.Errorf("%d results, want 48", len(d.Results))
	}
	for _, res := range d.Results {
		x := allreduce.Of(&res)
		if x == nil || !res.Verified || res.Operations != 3 || res.Stack != "iwarp(crc)" || x.Ranks != 3 ||
			x.BusBytesPerSecond <= 0 || (x.Buffers == "fresh") != (x.Map != nil && x.Unmap != nil) {
			t.Errorf("%+v, detail %+v", res, x)
		}
		if regs := x.Cache["mem_regs"]; x.Arm == "cache" && x.Buffers == "reused" &&
			(res.SizeBytes > 8192 && regs == 0 || res.SizeBytes <= 8192 && regs != 0) {
			t.Errorf("%d bytes, eager up to 8 KiB: %d registrations", res.SizeBytes, regs)
		}
	}
	contains(t, contents(t, out, "report.html"), "All-reduce ring: total p50 by size",
		"All-reduce halving: bus bw by size", "All-reduce doubling: reduce p50 by size")
}

// The death of a rank ends the run with one line that names it, soon, and no process is left.
func TestADeadRankEndsTheRun(t *testing.T) {
	killed := make(chan int, 1)
	go func() {
		// until the ranks are there and have begun
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if pids := serversOf(os.Getpid()); len(pids) == 3 {
				time.Sleep(time.Second)
				syscall.Kill(pids[1], syscall.SIGKILL)
				killed <- pids[1]
				return
			}
		}
		killed <- 0
	}()
	began := time.Now()
	r := rdmaperf(t, "run", "--transport", "iwarp", "--workload", "allreduce", "--ranks", "3", "-s", "1M", "-D", "30s",
		"--arms", "cache", "--buffers", "reused", "--no-save")
	pid := <-killed
	if pid == 0 {
		t.Fatalf("never three ranks\n%s", r.stderr)
	}
	want := "(process " + strconv.Itoa(pid) + "): the server closed the connection"
	if r.code != reports.ExitPeer || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") > 3 {
		t.Errorf("exit code %d, want %d and %q:\n%s", r.code, reports.ExitPeer, want, r.stderr)
	}
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("told after %v", took)
	}
	if left := serversOf(os.Getpid()); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// serversOf are the children of a process that are servers of a run.
func serversOf(parent int) []int {
	return slices.DeleteFunc(childrenOf(parent), func(pid int) bool {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return !bytes.Contains(cmd, []byte("--once-parent"))
	})
}
