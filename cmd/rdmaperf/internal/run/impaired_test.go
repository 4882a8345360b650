package run

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/impair"
)

func TestImpairmentsArePathsInTheOrderGiven(t *testing.T) {
	paths, err := badPaths([]string{"delay=2ms", "loss=0,0.1%,0.05", "seed=9"})
	if err != nil {
		t.Fatal(err)
	}
	want := []badPath{
		{name: "delay=2ms,loss=0", cfg: impair.Config{Delay: 2 * time.Millisecond, Seed: 9}},
		{name: "delay=2ms,loss=0.1%", cfg: impair.Config{Delay: 2 * time.Millisecond, Loss: 0.001, Seed: 9}},
		{name: "delay=2ms,loss=0.05", cfg: impair.Config{Delay: 2 * time.Millisecond, Loss: 0.05, Seed: 9}},
	}
	if len(paths) != len(want) {
		t.Fatalf("%+v", paths)
	}
	for i := range want {
		if paths[i] != want[i] {
			t.Errorf("%+v, want %+v", paths[i], want[i])
		}
	}
	for _, bad := range [][]string{{"loss"}, {"loss=2"}, {"loss=100%"}, {"loss=-1"}, {"noise=1"}, {"delay=-1s"},
		{"stop=1m"}, {"cut=-1s"}} {
		if _, err := badPaths(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestPulsesHarmAndMendInTurns: whoever ends them finds nothing harmed.
func TestPulsesHarmAndMendInTurns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said []bool
	n := pulse(ctx, time.Millisecond, func(on bool) {
		said = append(said, on)
		if len(said) == 3 {
			cancel()
		}
	})
	if n != 1 || len(said) != 4 || said[3] {
		t.Errorf("%d whole pulses, harmed %v", n, said)
	}
	if n := pulse(ctx, 0, func(bool) { t.Error("harmed") }); n != 0 {
		t.Errorf("%d pulses of none", n)
	}
}
