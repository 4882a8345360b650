package engine_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
)

// An exclusive server serves all connections of one run; another run is refused or waits for its end, and is told for
// whom. A client that leaves while it waits takes no turn.
func TestExclusiveServerServesOneRunAtATime(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table, Exclusive: true})
	connect := func(run string, noWait bool, log *slog.Logger) (*engine.Client, error) {
		plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
		plan.Run, plan.NoWait, plan.Log = run, noWait, log
		return engine.Connect(t.Context(), addr, tr, plan)
	}
	var first [2]*engine.Client
	for i := range first {
		var err error
		if first[i], err = connect("one", true, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := connect("two", true, nil); reports.Code(err) != reports.ExitPeer ||
		!strings.Contains(err.Error(), "127.0.0.1 has been measuring") {
		t.Errorf("with --no-wait: %v, want who measures", err)
	}
	log := make(lineWriter, 16)
	got := make(chan error, 1)
	go func() {
		c, err := connect("two", false, slog.New(slog.NewTextHandler(log, nil)))
		if err == nil {
			_, err = c.Run(t.Context(), 0)
			c.Close()
		}
		got <- err
	}()
	if line := <-log; !strings.Contains(line, "for=127.0.0.1") {
		t.Errorf("the one that waits logs %q", line)
	}
	first[0].Close()
	select {
	case err := <-got:
		t.Fatalf("served beside another run: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	first[1].Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
