package loop

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// What both sides expect of a connection: callers for each of its depth and those beside, and
// where connections follow one another those that have just ended.
func TestConnectionsExpectTheirCallers(t *testing.T) {
	sh := &engine.Shape{Point: engine.Point{Size: 100, Response: 20}, Depth: 4, QPs: 5}
	longest := func(*engine.Shape) (int, int) { return 7, 8 }
	for _, c := range []struct {
		work             engine.CallWork
		callers, conns   int
		request, respond int
	}{
		{engine.CallWork{}, 4, 5, 100, 20}, {engine.CallWork{Handles: 3, Beside: 2}, 14, 5, 100, 20},
		{engine.CallWork{Turnover: true, Longest: longest}, 4, 10 + spareConns, 7, 8},
	} {
		sh.Row = &engine.Workload{Calls: &c.work}
		if got := CallConfig(sh, nil); got.Callers != c.callers || got.Conns != c.conns || got.MaxRequest != c.request || got.MaxResponse != c.respond {
			t.Errorf("%+v, want %+v", got, c)
		}
	}
	for addr, elsewhere := range map[string]bool{"127.0.0.1:5": false, "[::1]:5": false, "@name": true} {
		if noHostPort(addr) != elsewhere {
			t.Errorf("%s has no host and port: %v", addr, !elsewhere)
		}
	}
}
