package run

import (
	"context"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// A stack whose connections poll while nobody calls would take the CPUs from the stacks whose turn it is: its sessions
// end with each slice. All others stay open.
func TestSessionsThatPollIdleEndWithTheirSlice(t *testing.T) {
	for spec, want := range map[string]bool{"grpc(dropin,bp)+iwarp": true, "grpc(fused,bp)+sched+iwarp": true,
		"grpc(dropin)+iwarp": false, "grpc(dropin,event)+iwarp": false, "iwarp": false, "grpc(tcp)": false} {
		stopped := false
		x := &turn{m: &runner{rounds: 2}, a: &arm{spec: spec}, c: new(engine.Client),
			next: func() ([]reports.Result, error, bool) { return nil, nil, true }, stop: func() { stopped = true }}
		if _, err := x.slice(context.Background()); err != nil || stopped != want || x.ended != want {
			t.Errorf("%s: stopped %v, ended %v, error %v, want %v", spec, stopped, x.ended, err, want)
		}
	}
}
