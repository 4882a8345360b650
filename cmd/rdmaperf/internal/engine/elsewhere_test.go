package engine_test

import (
	"context"
	"net"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/transports"
)

// moved listens on an address of its own, as a device does whose network is not the one of the control channel.
type moved struct {
	transports.Transport
	dialled []string
}

func (m *moved) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return m.Transport.Listen(ctx, net.JoinHostPort("127.0.0.2", port), cfg)
}

func (m *moved) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session,
	error) {
	m.dialled = append(m.dialled, addr)
	return m.Transport.Dial(ctx, addr, hello, cfg)
}

func TestSessionsGoWhereTheTransportListens(t *testing.T) {
	var client *moved
	_, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
		c, s := enginetest.SessionEnds(t, enginetest.TcpEnds)
		client = &moved{Transport: c}
		return client, &moved{Transport: s}
	}, enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64}))
	if err != nil {
		t.Fatal(err)
	}
	if len(client.dialled) != 1 {
		t.Fatalf("dialled %v", client.dialled)
	}
	if host, _, err := net.SplitHostPort(client.dialled[0]); err != nil || host != "127.0.0.2" {
		t.Errorf("dialled %s, want the address of the server's device", client.dialled[0])
	}
}
