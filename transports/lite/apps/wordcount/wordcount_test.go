package wordcount

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local/localtest"
)

// The sources of the tier are real text enough: four nodes find what one machine does.
func TestFourNodesCountAsOneMachine(t *testing.T) {
	files, err := filepath.Glob("../../*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	want := expect.Get(Local(files))(t)
	c := localtest.Open(t, 4)
	taken := make([]int, 4)
	err = local.Each(c.Nodes, func(i int, n *lite.Node) error {
		got, files, err := Run(n, Job{Name: "wc", Nodes: []int{0, 1, 2, 3}, Files: files})
		if taken[i] = files; err == nil && !maps.Equal(got, want) {
			t.Errorf("node %d: %d words, want %d, or other counts", i, len(got), len(want))
		}
		return err
	})
	if sum := taken[0] + taken[1] + taken[2] + taken[3]; err != nil || sum != len(files) {
		t.Fatalf("%d files taken, want %d: %v", sum, len(files), err)
	}
	if want["lite"] == 0 || want["func"] == 0 {
		t.Errorf("the words of a Go program are not there: %d", len(want))
	}
}

// A node that dies before it takes part leaves the others with an error.
func TestADeadNodeIsAnError(t *testing.T) {
	c := localtest.Open(t, 3)
	start := time.Now()
	errs := make([]error, 2)
	time.AfterFunc(50*time.Millisecond, func() { c.Kill(2) })
	local.Each(c.Nodes[:2], func(i int, n *lite.Node) error {
		_, _, errs[i] = Run(n, Job{Name: "wc", Nodes: []int{0, 1, 2}, Files: []string{"wordcount.go"}})
		return nil
	})
	for i, err := range errs {
		expect.Is(t, fmt.Sprintf("node %d after %v", i, time.Since(start)), err, lite.ErrPeerDead)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(Counts{"a": 1, "bc": 300}))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := Counts{}
		if c.decode(b) != nil {
			return
		}
		d := Counts{}
		if err := d.decode(encode(c)); err != nil || !maps.Equal(c, d) {
			t.Errorf("%v comes back as %v, %v", c, d, err)
		}
	})
}
