package rdmaenv

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestVariable(t *testing.T) {
	for value, want := range map[string]struct {
		device string
		mode   bpev.Mode
	}{
		"":                    {"auto", bpev.BPEV},
		"off":                 {"off", bpev.BPEV},
		"event":               {"auto", bpev.Event},
		"iwarp, bp":           {"iwarp", bpev.BP},
		"event,verbs:mlx5_0,": {"verbs:mlx5_0", bpev.Event},
	} {
		if w, err := parse(value); err != nil || w.device != want.device || w.cfg.Polling.Mode != want.mode {
			t.Errorf("%q: %+v, %v", value, w, err)
		}
	}
	for _, value := range []string{"tcp", "verbs:", "iwarp,verbs", "busy", "off,off"} {
		if w, err := parse(value); !errors.Is(err, ErrVariable) {
			t.Errorf("%q: %+v, %v", value, w, err)
		}
	}
}

func TestOpen(t *testing.T) {
	for value, has := range map[string]bool{"off": false, "iwarp": true} {
		w, err := parse(value)
		if err != nil {
			t.Fatal(err)
		}
		n, err := w.open()
		if err != nil || (n != nil) != has {
			t.Errorf("%q: %v, %v", value, n, err)
		}
		if n != nil {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	w := wish{device: "verbs:nosuchdevice0"}
	if _, err := w.open(); !errors.Is(err, rdma.ErrNoDevice) && !errors.Is(err, rdma.ErrNotSupported) {
		t.Errorf("a device that is not there: %v", err)
	}
}

// Both calls of a program, over the device of this process.
func TestProgram(t *testing.T) {
	t.Setenv(Variable, "iwarp")
	l, err := Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if l.Addr().Network() != "rdma" {
		t.Errorf("listens over %s", l.Addr().Network())
	}
	s := grpc.NewServer(grpc.WaitForHandlers(true))
	healthpb.RegisterHealthServer(s, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(), WithRDMA(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var from peer.Peer
	if _, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{},
		grpc.Peer(&from)); err != nil || from.Addr.Network() != "rdma" {
		t.Errorf("%v, %v", from.Addr, err)
	}
	cc.Close()
	s.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
