package bench

import (
	"context"
	"net"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
)

// moved listens on an address of its own, as a device does whose network is not
// the one of the control channel.
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

func (m *moved) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session, error) {
	m.dialled = append(m.dialled, addr)
	return m.Transport.Dial(ctx, addr, hello, cfg)
}

func TestSessionsGoWhereTheTransportListens(t *testing.T) {
	var client *moved
	_, err := runPoints(t, func(t testing.TB) (transports.Transport, transports.Transport) {
		c, s := tcpEnds(t)
		client = &moved{Transport: c}
		return client, &moved{Transport: s}
	}, quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64}))
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

func TestElsewhereIsAnotherAddressOnly(t *testing.T) {
	for _, c := range []struct {
		host, addr string
		want       bool
	}{
		{"10.0.0.1", "10.0.0.1:7", false},
		{"10.0.0.1", "[::ffff:10.0.0.1]:7", false},
		{"fe80::1%eth0", "[fe80::1%eth0]:7", false},
		{"10.0.0.1", "0.0.0.0:7", false},
		{"10.0.0.1", "[::]:7", false},
		{"127.0.0.1", "end1:49152", false},
		{"127.0.0.1", "no port", false},
		{"127.0.0.1", "10.78.0.1:7", true},
		{"10.0.0.1", "[2001:db8::1]:7", true},
	} {
		if got := elsewhere(c.host, c.addr); got != c.want {
			t.Errorf("elsewhere(%s, %s) = %v", c.host, c.addr, got)
		}
	}
}
