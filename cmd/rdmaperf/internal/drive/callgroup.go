package drive

import (
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// CallGroup is callers of a point that do the same thing, each one call after the other.
type CallGroup struct {
	First, Conns int           // connections that it calls on
	Each         int           // callers on each
	Untimed      bool          // its calls are counted alone
	Rate         float64       // calls a second of all together, due at intended starts; 0: a closed loop
	Gap          time.Duration // of a closed loop: the least time from the start of a call to the next; 0: none

	// New makes a caller; index counts those of the group, connection by connection.
	New func(conn transports.CallConn, index int) (engine.Caller, error)
}

// CallPhase says which groups call in a phase: Lead, whose end ends the phase, and Beside until then; 0 is none.
type CallPhase struct{ Lead, Beside int }

// CallsBeside is what the group beside the lead did in a phase, which is in [engine.Outcome.Detail].
type CallsBeside struct {
	Ops, Bytes int64
	Window     time.Duration // until its last call ended
}

type callGroup struct {
	CallGroup
	workers []*callWorker
	tallies []*tally
}

func newCallGroup(of CallGroup) *callGroup {
	g := &callGroup{CallGroup: of, tallies: make([]*tally, min(of.Conns*of.Each, MaxTallies))}
	for i := range g.tallies {
		g.tallies[i] = &tally{}
		g.tallies[i].reset(!g.Untimed, g.open(), 0, 0)
	}
	return g
}

func (g *callGroup) open() bool { return g.Rate > 0 }

func (g *callGroup) hire(k *Calls) error {
	for i := range g.Conns {
		for j := range g.Each {
			n := i*g.Each + j
			c, err := g.New(k.conns[g.First+i], n)
			if err != nil {
				return err
			}
			g.workers = append(g.workers, &callWorker{k: k, g: g, c: c, t: g.tallies[n%len(g.tallies)], index: n,
				slot: j, conn: g.First + i})
		}
	}
	poisson := k.Plan.Arrivals == engine.ArrivalsPoisson && k.Sh.Rate > 0
	for i, w := range g.workers {
		if g.open() {
			w.pace, w.shift = pacer(g.Rate, poisson, k.Sh.Seed, i, len(g.workers))
		}
	}
	return nil
}

func (g *callGroup) shares(begin int64) []engine.Share {
	all := make([]engine.Share, g.Conns)
	for _, w := range g.workers {
		s := &all[w.conn-g.First]
		s.Ops += w.ops
		s.Window = max(s.Window, time.Duration(max(0, w.end-begin)))
	}
	return all
}

func (g *callGroup) work(begin int64) *CallsBeside {
	b, end := &CallsBeside{}, begin
	for _, t := range g.tallies {
		b.Ops += t.ops
		b.Bytes += t.bytes
		end = max(end, t.end)
	}
	b.Window = time.Duration(end - begin)
	return b
}

// watched are the tallies whose progress keeps a phase going: of the lead, and behind its end of those beside it.
func (k *Calls) watched(r *callRun) []*tally {
	if r.over.Load() && k.beside != nil {
		return k.beside.tallies
	}
	return k.lead.tallies
}
