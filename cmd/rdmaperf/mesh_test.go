package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	meshresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Limits that no pair is beyond make the verdict that of no machine.
func TestRanksStartedByHandMeasureEachPair(t *testing.T) {
	const n = 3
	port := freePort(t) // rank 0 takes it
	self := need(os.Executable())(t)
	file := filepath.Join(t.TempDir(), "mesh.json")
	var ranks []*exec.Cmd
	out := make([]strings.Builder, n)
	for r := range n {
		cmd := exec.Command(self, "mesh", "--transport", "tcp", "-D", "20ms", "--json", file, "--rendezvous-timeout", "30s",
			"--fail-if", "latency>1000000%", "--fail-if", "bandwidth<0.01%")
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
