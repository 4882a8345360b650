package workload

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// Options of a point may come from a stranger: rooms that have some refuse nothing at all and
// what they do not know before the point runs, and describe it without believing it.
func TestStrangeOptionsAreRefusedBeforeAPointRuns(t *testing.T) {
	want := map[string]bool{"clients": true, "sharing": true, "locks": true, "qos": true, "regions": true, "allreduce": true, "think": true}
	for _, r := range Rooms {
		if !want[r.Name] {
			continue
		}
		delete(want, r.Name)
		for _, o := range []engine.Options{"", "null?", `{"Nonsense":1}`, `{"Think":-1,"Clients":-1}`, "{}"} {
			pt := engine.Point{Workload: r.Name, Options: o}
			if r.Work.Point(pt) == nil {
				t.Errorf("%s takes the options %q", r.Name, o)
			}
			if r.Work.Describe(pt) == "" {
				t.Errorf("%s has no words for the options %q", r.Name, o)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no such rooms: %v", want)
	}
}
