package run

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// What large messages take is known before the run: memory of the largest, time of all, and of this machine alone.
func TestWhatLargeMessagesTakeIsAnnounced(t *testing.T) {
	points := []engine.Point{{Workload: "latency", Size: 1 << 30}, {Workload: "latency", Size: 64}}
	m := &runner{o: new(Options), arms: []*arm{{plan: engine.Plan{Points: points}}, {plan: engine.Plan{Points: points}}}}
	if memory, took := m.large(); memory != 6<<30 || took.Round(time.Second) != 41*time.Second {
		t.Errorf("%d bytes, %v, want 6 GiB, 41 s", memory, took)
	}
	m.o.host = "far"
	if memory, _ := m.large(); memory != 3<<30 {
		t.Errorf("with a HOST %d bytes, want 3 GiB", memory)
	}
	m.arms = []*arm{{plan: engine.Plan{Points: points[1:], QPs: 4}}}
	if memory, _ := m.large(); memory != 0 {
		t.Errorf("of 64 bytes %d, want nothing", memory)
	}
}
