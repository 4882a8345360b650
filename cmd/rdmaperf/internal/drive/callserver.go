package drive

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"

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
	b, err := os.ReadFile("/proc/self/statm") // proc(5): size, then resident, in pages
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// callHeap is what the heap counts for the collector, at least: this workload alone would collect every 4 MiB, as no
// server of any use does.
const callHeap = 32 << 20

// heapPad makes the collector run as with callHeap in use. It is never touched, so it is not resident.
var heapPad = sync.OnceValue(func() []byte { return make([]byte, callHeap) })

func collectAsUsed() {
	heapPad()
	runtime.GC()
}

const callCollector = "as in a process with 32 MiB in use"
