package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Incast: many clients stream to one server thread. A client is a thread of its own
// with one connection, and nothing is shared between two of them but the process.
// The point's QPs are its clients; the server serves all of them in turn, as one
// node of a cluster does, so it needs busy polling.

// DefaultClients is how many send where nothing is said. Arbitrary: a small rack.
const DefaultClients = 8

// validateIncast checks what only this workload asks of a point.
func (p Point) validateIncast() error {
	k, _ := transports.ParseKind(p.Op)
	switch {
	case k != transports.KindSend && k != transports.KindWrite && k != transports.KindWriteImm:
		return errors.New("clients send to the server: send, write or write_imm")
	case p.QPs > maxThreads:
		return fmt.Errorf("%d clients: want 1 to %d", p.QPs, maxThreads)
	}
	return nil
}

// incastShape is a stream with a thread for each client.
func (sh *Shape) incastShape(p *Plan, caps transports.Caps) {
	if sh.Point.QPs == 0 {
		sh.QPs = DefaultClients
	}
	sh.Threads = sh.QPs
	sh.streamDepths(p, caps)
}

func (sh *Shape) checkIncast() error {
	if sh.Threads != sh.QPs || sh.Polling != PollingBusy {
		return fmt.Errorf("%d threads of %d clients, %s polling", sh.Threads, sh.QPs, sh.Polling)
	}
	return nil
}

// sideThreads is how many workers a side has.
func (sh *Shape) sideThreads(side string) int {
	if sh.Workload == WorkloadIncast && side == sideServer {
		return 1
	}
	return sh.Threads
}

// streaming tells workloads whose client runs the stream loop.
func (sh *Shape) streaming() bool {
	return sh.Workload == WorkloadThroughput || sh.Workload == WorkloadIncast
}

// share is what one worker did in its own window.
type share struct {
	ops    int64
	window time.Duration
}

// incast completes the result with the clients' shares.
func (m *measurement) incast(res *reports.Result, out *outcome) {
	in := &reports.Incast{Clients: m.sh.QPs}
	var rates []float64
	for _, s := range out.shares {
		t := reports.NewThroughput(s.ops*int64(m.sh.Size), s.ops, s.window)
		in.PerClient = append(in.PerClient, reports.ClientShare{Operations: s.ops, DurationNs: int64(s.window), BytesPerSecond: t.BytesPerSecond})
		rates = append(rates, t.BytesPerSecond)
	}
	if len(rates) > 0 {
		in.MinBytesPerSecond, in.MaxBytesPerSecond, in.Jain = slices.Min(rates), slices.Max(rates), reports.JainIndex(rates)
	}
	res.Incast = in
}
