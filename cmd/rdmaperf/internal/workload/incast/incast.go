package incast

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	incastkind "github.com/rdmaperf/rdmaperf/reports/kinds/incast"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Incast: many clients stream to one server thread. A client is a thread of its own
// with one connection, and nothing is shared between two of them but the process.
// The point's QPs are its clients; the server serves all of them in turn, as one
// node of a cluster does, so it needs busy polling.

// DefaultClients is how many send where nothing is said: a small rack.
const DefaultClients = 8

// validateIncast checks what only this workload asks of a point.
func validateIncast(p engine.Point) error {
	k, _ := transports.ParseKind(p.Op)
	switch {
	case k != transports.KindSend && k != transports.KindWrite && k != transports.KindWriteImm:
		return errors.New("clients send to the server: send, write or write_imm")
	case p.QPs > engine.MaxThreads:
		return fmt.Errorf("%d clients: want 1 to %d", p.QPs, engine.MaxThreads)
	}
	return nil
}

// incastShape is a stream with a thread for each client.
func incastShape(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
	if sh.Point.QPs == 0 {
		sh.QPs = DefaultClients
	}
	sh.Threads = sh.QPs
	drive.StreamDepths(sh, p, ab.Both)
	sh.Arrives(ab)
}

func checkIncast(sh *engine.Shape) error {
	if sh.Threads != sh.QPs || sh.Polling != engine.PollingBusy {
		return fmt.Errorf("%d threads of %d clients, %s polling", sh.Threads, sh.QPs, sh.Polling)
	}
	return nil
}

func incastParameters(m *engine.Measurement, p map[string]any) {
	m.Sh.Barrier(p)
	p["server_threads"] = m.Sh.SideThreads(engine.SideServer)
}

// incastResult completes the result with the clients' shares.
func incastResult(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	res.Detail = shares(m.Sh, out)
	drive.OneWay(m, res, out)
}

// shares are those of the clients.
func shares(sh *engine.Shape, out *engine.Outcome) *incastkind.Incast {
	in := &incastkind.Incast{Clients: sh.QPs}
	var rates []float64
	for _, s := range out.Shares {
		t := reports.NewThroughput(s.Ops*int64(sh.Size), s.Ops, s.Window)
		in.PerClient = append(in.PerClient, incastkind.ClientShare{Operations: s.Ops, DurationNs: int64(s.Window),
			BytesPerSecond: t.BytesPerSecond})
		rates = append(rates, t.BytesPerSecond)
	}
	if len(rates) > 0 {
		in.MinBytesPerSecond, in.MaxBytesPerSecond, in.Jain = slices.Min(rates), slices.Max(rates),
			incastkind.JainIndex(rates)
	}
	return in
}
