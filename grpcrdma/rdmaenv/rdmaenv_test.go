package rdmaenv

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
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
		rpctest.Must(t, err)
		n, err := w.open()
		if err != nil || (n != nil) != has {
			t.Errorf("%q: %v, %v", value, n, err)
		}
		if n != nil {
			rpctest.Must(t, n.Close())
		}
	}
	w := wish{device: "verbs:nosuchdevice0"}
	if _, err := w.open(); !errors.Is(err, rdma.ErrNoDevice) && !errors.Is(err, rdma.ErrNotSupported) {
		t.Errorf("a device that is not there: %v", err)
	}
}
