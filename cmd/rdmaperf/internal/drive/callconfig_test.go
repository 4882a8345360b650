package drive

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Arrivals by chance are those of a point with a rate, of each caller by a seed of its own, and
// begin at once; calls at an interval that a workload chose follow one another.
func TestOnlyCallsOfARateArriveByChance(t *testing.T) {
	for rate, chance := range map[float64]bool{0: false, 3000: true} {
		m, k := point()
		m.Plan.Arrivals, m.Sh.Rate, m.Sh.Seed = engine.ArrivalsPoisson, rate, 7
		k.conns = make([]transports.CallConn, 1)
		g := newCallGroup(CallGroup{Conns: 1, Each: 3, Rate: 3000,
			New: func(transports.CallConn, int) (engine.Caller, error) { return nobody{}, nil }})
		if err := g.hire(k); err != nil {
			t.Fatal(err)
		}
		for i, w := range g.workers {
			sharesARate(t, i, w.pace, w.shift, chance)
		}
	}
}

// A name of a machine or process is no host and port.
func TestNamesHaveNoHostAndPort(t *testing.T) {
	for addr, elsewhere := range map[string]bool{"127.0.0.1:5": false, "[::1]:5": false, "@name": true} {
		if noHostPort(addr) != elsewhere {
			t.Errorf("%s has no host and port: %v", addr, !elsewhere)
		}
	}
}

// A connection that fails without a known cause is the data path's; where the cause is known, or
// both ends must be on one machine, that is said.
func TestWhyAConnectionFailed(t *testing.T) {
	for name, c := range map[string]struct {
		caps transports.Caps
		err  error
		hint string
		code int
	}{
		"unknown":       {transports.Caps{}, errBroken, "the data path", reports.ExitPeer},
		"no more files": {transports.Caps{}, syscall.EMFILE, "ulimit", reports.ExitFailed},
		"rejected":      {transports.Caps{}, rdma.ErrNotSupported, "", reports.ExitNotRun},
		"one machine":   {transports.Caps{SameHost: true}, errBroken, "on this machine", reports.ExitPeer},
	} {
		err := ConnectFailed(withCalls{caps: c.caps}, c.err)
		var exit *reports.ExitError
		if !errors.As(err, &exit) || exit.Code != c.code || !strings.Contains(exit.Hint, c.hint) ||
			!errors.Is(err, c.err) {
			t.Errorf("%s: %v (%+v)", name, err, exit)
		}
	}
}

// withCalls is a stack for calls of such capabilities.
type withCalls struct {
	transports.CallTransport
	caps transports.Caps
}

func (w withCalls) Caps() transports.Caps { return w.caps }

// Whose progress keeps a phase going: that of the lead, and behind it of who is beside.
func TestWhoKeepsAPhaseGoing(t *testing.T) {
	lead, beside := &callGroup{tallies: make([]*tally, 1)}, &callGroup{tallies: make([]*tally, 2)}
	for _, c := range []struct {
		over   bool
		beside *callGroup
		want   int
	}{{false, nil, 1}, {true, nil, 1}, {false, beside, 1}, {true, beside, 2}} {
		r := &callRun{}
		r.over.Store(c.over)
		if got := len((&Calls{lead: lead, beside: c.beside}).watched(r)); got != c.want {
			t.Errorf("over %v, beside %v: %d, want %d", c.over, c.beside != nil, got, c.want)
		}
	}
}
