package workload_test

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Options of a point may come from anybody: either side of a workload that has some refuses
// nothing at all and what it does not know before it opens anything.
func TestStrangeOptionsAreRefusedBeforeAPointRuns(t *testing.T) {
	alone := map[string]bool{"clients": true, "sharing": true, "locks": true, "qos": true, "regions": true,
		"register": true}
	withServer := map[string]bool{"allreduce": true, "think": true, "kv": true, "mixed": true, "starvation": true,
		"paramserver": true}
	tried := 0
	for _, w := range catalogue.All() {
		name := w.Meta().Name
		if !alone[name] && !withServer[name] {
			continue
		}
		tried++
		for _, o := range []engine.Options{"", "null?", `{"Nonsense":1}`, `{"Think":-1,"Clients":-1}`, "{}"} {
			pt := engine.Point{Workload: name, Options: o}
			s := engine.Setup{Plan: &engine.Plan{}, Point: pt}
			if err := w.Client(t.Context(), &engine.Run{Setup: s}); reports.Code(err) != reports.ExitUsage {
				t.Errorf("the client of %s, with the options %q: %v", name, o, err)
			}
			err := w.Server(t.Context(), &engine.Serve{Setup: s})
			if withServer[name] && reports.Code(err) != reports.ExitUsage ||
				alone[name] && !strings.Contains(err.Error(), "has no server") {
				t.Errorf("the server of %s, with the options %q: %v", name, o, err)
			}
		}
	}
	if tried != len(alone)+len(withServer) {
		t.Errorf("%d workloads with options", tried)
	}
}
