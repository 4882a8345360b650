package engine

import (
	"context"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Workload is a row of the table of workloads: everything that tells it from the
// others. The engine asks a row and never for its name. Where a method may be nil, what
// its comment says behind "nil:" holds.
type Workload struct {
	Name string
	Kind *reports.Kind // describes its results; nil: they have nothing of their own

	// Of a plan and its points, before a device is asked.

	Point    func(Point) error        // what its points must be beside a good operation and size; nil: nothing
	Known    func(*Plan, Point) error // what only the client can tell, by Plan.Private; nil: nothing
	Planned  func(*Plan, Point) error // the same, and beside the plan, whose defaults are filled in; nil: nothing
	NoEvents string                   // why it cannot have event polling; "": it can
	NoSeries string                   // why it has no series; "": it has
	Has      Members                  // of points
	Describe func(Point) string       // how a point reads; nil: its name, operation and size
	Rated    bool                     // a point may have a rate

	// Of a point and what transports can do.

	Needs   []Need                                                    // operations beside that of the point
	Sends   func(*Plan, Point, transports.Kind, transports.Caps) bool // it sends messages of its own: credits, barriers, notifications; nil: none
	Limits  func(*Plan, Point, transports.Caps) error                 // what a transport's limits forbid; nil: nothing special
	Clocked bool                                                      // timed by the device where that has a clock of its own
	Divided bool                                                      // the size of a point is that of many messages
	Hint    string                                                    // against a window that is too large; "": a smaller size or fewer QPs

	Shape  func(*Shape, *Plan, Abilities)    // fills in QPs, threads, depths, slots, and how data arrives
	Check  func(*Shape) error                // holds a shape of the peer against that; nil: nothing special
	Layout func(*Shape) Layout               // StreamLayout, …
	Config func(*Shape, *transports.Config)  // changes how sessions are set up; nil: nothing
	Sleeps func(sh *Shape, side string) bool // a side sleeps now and then while it polls, on request; nil: neither does
	Stored func(*Shape) int                  // bytes that the server keeps beside windows; nil: none
	Stall  func(*Shape) int64                // bytes under way at most; nil: depth times size on each QP

	Client, Server func(*Group) (Side, error) // make the sides of a point of sessions

	OneTarget  bool // one thread of the server serves all sessions
	Numbered   bool // its stream is one way, and its messages carry numbers
	Stream     bool // operations are counted, and not timed one by one
	Again      bool // one more phase with another pattern proves that nothing was lost
	OnlyPolled bool // the server's thread has nothing to do but poll
	PingPong   bool // it may run in the provider (LoopProvider)
	Idles      bool // a target of writes may sleep until the barrier

	// Of a run.

	Run        func(*Measurement, context.Context) error          // the client's phases; nil: those of sessions
	Serve      func(*ServedClient, context.Context, *Shape) error // the server's; nil: those of sessions
	Warm       func(*Measurement)                                 // what the warm-up does; nil: as any phase
	Before     func(*Measurement, context.Context) error          // phases ahead of the measured one; nil: none
	Keep       func(*Measurement)                                 // takes figures that the next phase overwrites; nil: none
	Prove      func(*Measurement)                                 // what the phase of again does; nil: as any phase
	Samples    string                                             // name of the raw samples; "": reports.SamplesLatency
	RoundTrip  func(*Shape) string                                // ways in a latency; nil: none
	Result     func(*Measurement, *reports.Result, *Outcome)      // completes the result
	Parameters func(*Measurement, map[string]any)                 // effective options that only it has; nil: none

	// AllParameters, if not nil, are the effective options instead of those of sessions.
	AllParameters func(*Measurement) map[string]any

	Calls *CallWork // of a workload of calls; nil: of sessions

	// ByCall is the row of its points with the operation call; nil: it makes none. Its
	// Name and Kind are the same.
	ByCall *Workload

	// Runner, if not nil, is what runs the points. Of the above, only Name, Kind,
	// Point, Planned, NoEvents, NoSeries, Describe, Rated and Limits count then.
	Runner Runner
}

// Members are those of a point that few workloads have.
type Members struct{ Arms, Options, BothWays, AppWork bool }

// Need is an operation that a workload makes beside that of the point.
type Need struct {
	Kind transports.Kind
	Why  string
}

// Abilities are those of the transports of a point.
type Abilities struct {
	client, Server transports.Caps
	Both           transports.Caps // what both can do
}

// Table is all workloads that an engine knows. Both sides of a run have the same.
type Table []*Workload

// Find returns the row of a name, or nil.
func (t Table) Find(name string) *Workload {
	i := slices.IndexFunc(t, func(w *Workload) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return t[i]
}

// Of returns the row of a point, or nil.
func (t Table) Of(pt Point) *Workload {
	w := t.Find(pt.Workload)
	if w != nil && w.ByCall != nil && pt.Op == transports.KindCall.String() {
		return w.ByCall
	}
	return w
}

// Names lists the workloads.
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, w := range t {
		names[i] = w.Name
	}
	return names
}

// work is the row of the shape's workload.
func (sh *Shape) work() *Workload { return sh.Row }

// OfCalls tells workloads that a carrier of calls runs, rather than sessions.
func (w *Workload) OfCalls() bool { return w.Calls != nil }

// hasCalls tells whether some point is of a workload of calls.
func (p *Plan) hasCalls() bool {
	return slices.ContainsFunc(p.Points, func(pt Point) bool {
		w := p.Workloads.Of(pt)
		return w != nil && w.OfCalls()
	})
}
