package engine_test

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestLimitsAreCheckedBeforeAnythingRuns(t *testing.T) {
	all := transports.Caps{Kinds: ^transports.KindSet(0), MaxMsg: 8 << 20, MaxSessions: 100, MaxDepth: 1024,
		MaxReadDepth: 16, MaxInline: 64}
	for _, c := range []struct {
		what string
		edit func(*engine.Plan, *transports.Caps)
		text string // empty: no error
	}{
		{"within", func(p *engine.Plan, _ *transports.Caps) { p.QPs = 100 }, ""},
		{"one QP too many", func(p *engine.Plan, _ *transports.Caps) { p.QPs = 101 },
			"101 QPs are above the device's limit of 100"},
		{"a point of a sweep", func(p *engine.Plan, _ *transports.Caps) { p.Points[0].QPs = 400 }, "400 QPs are above"},
		{"no limit known", func(p *engine.Plan, c *transports.Caps) { p.QPs, c.MaxSessions = 4096, 0 }, ""},
		{"connections of calls are no sessions", func(p *engine.Plan, c *transports.Caps) {
			p.QPs, p.Points[0].Op, c.MaxConns = 1024, "call", 1024
		}, ""},
		{"and have a limit of their own", func(p *engine.Plan, c *transports.Caps) {
			p.QPs, p.Points[0].Op, c.MaxConns = 65, "call", 64
		}, "65 connections are above the limit of 64"},
		{"a message too long", func(p *engine.Plan, _ *transports.Caps) { p.Points[0].Size = 8<<20 + 1 },
			"size 8388609 is above the limit of 8388608 bytes"},
		{"too much inline", func(p *engine.Plan, _ *transports.Caps) { p.Inline = 65 }, "inline 65 is above"},
		{"two at once", func(p *engine.Plan, _ *transports.Caps) {
			p.QPs = 101
			p.Points = append(p.Points, engine.Point{Workload: latency.Name, Op: "read", Size: 16 << 20, QPs: 1})
		},
			"101 QPs are above the device's limit of 100, size 16777216"},
	} {
		plan, caps := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "write", Size: 64}), all
		c.edit(&plan, &caps)
		err := engine.Check(&plan, "verbs:rxe0", caps)
		switch {
		case c.text == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.text != "" && (reports.Code(err) != reports.ExitUsage ||
			!strings.Contains(err.Error(), "check verbs:rxe0: "+c.text)):
			t.Errorf("%s: %v (exit %d), want %q", c.what, err, reports.Code(err), c.text)
		}
	}
}
