package drive

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Failure keeps the first error that ends a point, from anywhere.
type Failure chan error

// NewFailure is for one point.
func NewFailure() Failure { return make(Failure, 1) }

// Fail ends the point with err, such as a corruption; the first counts.
func (f Failure) Fail(err error) {
	select {
	case f <- err:
	default:
	}
}

// ServeCalls serves a point of calls by svc, which it closes. What fails ends the point.
func ServeCalls(ctx context.Context, s *engine.Serve, sh *engine.Shape, cfg transports.CallConfig,
	svc engine.CallService, fails Failure) (err error) {
	defer func() {
		if e := svc.Close(); err == nil && e != nil {
			err = engine.Failed("end service", e)
		}
	}()
	tr, err := engine.CallsOf(s.Stack)
	if err != nil {
		return err
	}
	base := resident()
	setup, cancel := context.WithTimeout(ctx, engine.SetupTimeout(sh))
	defer cancel()
	number, secret := s.Ticket()
	cfg.Secret = secret
	srv, err := tr.ListenCalls(setup, net.JoinHostPort(s.Host, "0"), cfg, Answers{svc})
	if err != nil {
		return engine.TransportError("listen for calls", err)
	}
	defer srv.Close() // its error was the clients' calls'
	addr := srv.Addr()
	if err := s.Peer.Send(&engine.Listening{Addr: addr, Elsewhere: noHostPort(addr) || engine.Elsewhere(s.Host, addr),
		Token: number, Resident: base}); err != nil {
		return err
	}
	return s.Phases(ctx, func(ph *engine.PhaseStart) error { return callPhase(ctx, s, svc, fails, ph) })
}

func callPhase(ctx context.Context, s *engine.Serve, svc engine.CallService, fails Failure,
	ph *engine.PhaseStart) error {
	var rep engine.PhaseReport
	if ph.Generation == engine.GenMemory {
		rep.Resident = resident()
	}
	if err := svc.Begin(ph.Generation); err != nil {
		return err
	}
	collectAsUsed()
	changes := s.Counters(ph)
	r := waiting(func(halted <-chan struct{}) error {
		select {
		case <-halted:
			return nil
		case err := <-fails:
			return err
		}
	})
	stop, err := s.UntilStop(ctx, ph, r)
	r.Halt(engine.StopSoon)
	out := r.Wait()
	ops, wrong := svc.End()
	if err := cmp.Or(err, out.Err, wrong); err != nil {
		return err
	}
	out.Ops, rep.Counters, rep.Verified = ops, changes(), stop.Check
	return s.Report(out, rep)
}

// noHostPort reports names of one machine or process, such as that of an abstract unix socket.
func noHostPort(addr string) bool {
	_, _, err := net.SplitHostPort(addr)
	return err != nil
}

// Answers are those of a handler, in which a panic is the error of the call.
type Answers struct{ transports.CallHandler }

// ServeCall implements transports.CallHandler.
func (a Answers) ServeCall(q *transports.Served) (err error) {
	defer onepeer.Recover(func(fault error) {
		err = &transports.CallError{Code: transports.CallInternal, Text: fault.Error()}
	})
	return a.CallHandler.ServeCall(q)
}

// resident is the process's resident memory in use, in bytes; 0 where the system does not say.
func resident() int64 {
	debug.FreeOSMemory()
	b, _ := os.ReadFile("/proc/self/statm") // proc(5): size, then resident, in pages
	var size, pages int64
	fmt.Sscan(string(b), &size, &pages)
	return pages * int64(os.Getpagesize())
}

// heapPad makes the collector run as with 32 MiB in use: this workload alone would collect every 4 MiB, as no server of
// any use does. It is never touched, so it is not resident.
var heapPad = sync.OnceValue(func() []byte { return make([]byte, 32<<20) })

func collectAsUsed() {
	heapPad()
	runtime.GC()
}

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
