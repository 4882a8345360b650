package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A Runner is a workload as the engine runs it: what its two sides do at a point. The
// engine gives them the opened stack, the plan and a channel between them, bounds their
// time, and collects the results.
type Runner interface {
	// Client measures one point and hands what it measured to r, also what it measured
	// before an error. It is called again for every repeat.
	Client(ctx context.Context, r *Run) error

	// Server is the other side of a point. It ends when Client does, which it learns from
	// Peer.Receive. It checks the point, which may come from anybody, before it opens anything.
	Server(ctx context.Context, s *Serve) error
}

// ClientOnly is what a workload embeds whose points have Alone set.
type ClientOnly struct{}

// Server refuses.
func (ClientOnly) Server(_ context.Context, s *Serve) error {
	return PeerError("check point", fmt.Errorf("the workload %q has no server", s.Point.Workload),
		"the same rdmaperf version on both sides")
}

// Table is the workloads that points may name. Each side has its own.
type Table map[string]Entry

// Entry is one workload.
type Entry struct {
	Runner
	Results *reports.Workload // declares its results; nil: they have nothing of their own
}

// Names lists the workloads.
func (t Table) Names() []string { return slices.Sorted(maps.Keys(t)) }

// Abilities are those of the stacks of a point.
type Abilities struct {
	Client, Server transports.Caps
	Both           transports.Caps // what both can do
}

// able are the abilities of two stacks.
func able(client, server transports.Caps) Abilities {
	return Abilities{client, server, common(client, server)}
}
