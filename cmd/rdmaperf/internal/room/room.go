package room

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Fixed are words that are always the same.
func Fixed(words ...string) func() []string { return func() []string { return words } }

// Room is one workload.
type Room struct {
	Name    string            // as --workload and Result.Workload spell it
	Runner  engine.Runner     // what its two sides do
	Results *reports.Workload // declares its results; nil: they have nothing of their own
	Summary string            // what it measures, in a few words for the help; "" where the name says it
	Note    string            // for the help: when it is measured although nobody named it, or not
	Group   string            // title of its flags in the help; rows side by side may share one

	Standard bool // measured when no workload is named
	ForCalls bool // measured when no workload is named and every stack carries calls alone
	Calls    bool // made of calls, so that only stacks that carry calls run it

	// OwnThreads: it has as many threads as connections, whose CPUs nobody can name.
	OwnThreads bool

	// Means are flags that mean this workload when none is named, each group by itself.
	// Takes are flags that mean another workload and may stand beside this one, too.
	Means [][]string
	Takes []string

	// Own are flags that are refused when other workloads are named. Names are all of
	// its flags in the order of the help.
	Own   []string
	Names []string

	// Words are what the shell offers for flags of its own.
	Words map[string]func() []string

	// Unless tells, when no workload was named, that the other flags describe something
	// that this workload does not do. nil: they never do.
	Unless func(c *Common) bool

	// Ops and Sizes are those measured when none are given, as the help shows them.
	Ops   []string
	Sizes []int

	// Text is its section of docs/workloads.md, in Markdown without the heading, which is
	// Group; "" where that page has it by hand.
	Text string

	// Published are figures of others that results are read against.
	Published []reports.Published

	Flags func() Flags // of a new command line
}

// Table is what the engine knows of these workloads.
func Table(rooms ...*Room) engine.Table {
	t := engine.Table{}
	for _, r := range rooms {
		if r.Runner == nil { // its points are those of others
			continue
		}
		t[r.Name] = engine.Entry{Runner: r.Runner, Results: r.Results}
	}
	return t
}

// Flags are those of a workload on one command line, as given.
type Flags interface {
	// Register adds the flags.
	Register(f *pflag.FlagSet)
	// Plan fills in what all points share. It is called for every workload, measured
	// or not, so that no mistake goes unseen.
	Plan(p *engine.Plan, c *Common) error
	// Check refuses flags that describe another workload than this one, which was named.
	Check(c *Common) error
	// Points are what to measure. A workload whose points need more than they hold puts
	// it into the plan.
	Points(p *engine.Plan, c *Common) ([]engine.Point, error)
}

// None is what a workload without flags of its own embeds.
type None struct{}

// Register adds nothing.
func (None) Register(*pflag.FlagSet) {}

// Plan fills in nothing.
func (None) Plan(*engine.Plan, *Common) error { return nil }

// Check refuses nothing.
func (None) Check(*Common) error { return nil }
