package iwarp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/conform/conformtest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// harness is a fresh pair of devices over loopback TCP for every case.
func harness(cfg iwarp.Config) *conform.Harness {
	open := func(context.Context) (rdma.Device, rdma.Device, string, error) {
		a, errA := iwarp.Open(cfg)
		b, errB := iwarp.Open(cfg)
		return a, b, "127.0.0.1:0", errors.Join(errA, errB)
	}
	kill := func(b rdma.Device) error { b.(*iwarp.Device).Kill(); return nil }
	return &conform.Harness{Name: "iwarp", Open: open, Kill: kill, Addr6: "[::1]:0"}
}

// TestConformance runs the whole suite on the default configuration, and the
// groups whose path through the stack differs on the others.
func TestConformance(t *testing.T) {
	data := []string{"snd", "inl", "rdw", "rdr", "ord", "lrg"}
	for name, c := range map[string]struct {
		cfg  iwarp.Config
		only []string
	}{
		"default": {iwarp.Config{}, nil},
		"p2p":     {iwarp.Config{PeerToPeer: true}, []string{"cm", "ord", "rdr"}},
		"markers": {iwarp.Config{Markers: true}, data},
		"checked": {iwarp.Config{StoreAndForward: true}, data},
		"nocrc":   {iwarp.Config{NoCRC: true}, data},
		"acked":   {iwarp.Config{OnAck: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "acked" {
				fulltest.Only(t, "every completion waits for the peer's TCP")
			}
			t.Parallel() // it mostly waits
			h := harness(c.cfg)
			defer func() {
				if err := h.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			conformtest.Run(t, h, conform.Options{Strict: true, Only: c.only})
		})
	}
}
