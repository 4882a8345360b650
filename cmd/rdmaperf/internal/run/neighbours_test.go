package run

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == NeighbourChild {
		Spin()
	}
	os.Exit(m.Run())
}

func TestNeighboursMultiplyThePoints(t *testing.T) {
	points := []engine.Point{{Op: "send"}, {Op: "write"}}
	got, err := besideNeighbours(points, "0, 2")
	if err != nil {
		t.Fatal(err)
	}
	want := []engine.Point{{Op: "send"}, {Op: "send", Neighbours: 2}, {Op: "write"}, {Op: "write", Neighbours: 2}}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{"", "-1", "x", "1,1", "4097", "1.5"} {
		if _, err := besideNeighbours(points, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// cpuTime is what the processes ran, in ticks of the scheduler (proc_pid_stat(5)).
func cpuTime(t *testing.T, n neighbours) (sum []int) {
	for _, c := range n {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(c.Process.Pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
		ticks, err := strconv.Atoi(fields[11])
		if err != nil {
			t.Fatal(err)
		}
		sum = append(sum, ticks)
	}
	return sum
}

// So many as asked for spin, no others, and none between slices; at the end all are gone.
func TestNeighboursSpinBesideASliceOnly(t *testing.T) {
	n, err := startNeighbours([]engine.Point{{Neighbours: 1}, {Neighbours: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.end()
	n.spin(1)
	for end := time.Now().Add(30 * time.Second); cpuTime(t, n)[0] < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the neighbour does not spin")
		}
	}
	n.rest()
	time.Sleep(5 * time.Millisecond) // the signal arrives at its next tick
	before := cpuTime(t, n)
	time.Sleep(50 * time.Millisecond)
	if after := cpuTime(t, n); !slices.Equal(before, after) || after[1] > 1 {
		t.Errorf("neighbours ran %v ticks, and %v a moment later", before, after)
	}
	n.end()
	if len(n) != 2 || n[1].ProcessState == nil {
		t.Errorf("%v", n)
	}
}
