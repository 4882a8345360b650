package iwarp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/conform/conformtest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// harness is a fresh pair of devices over loopback TCP for every case.
func harness(cfg iwarp.Config) conform.Harness {
	open := func(context.Context) (rdma.Device, rdma.Device, string, error) {
		a, errA := iwarp.Open(cfg)
		b, errB := iwarp.Open(cfg)
		return a, b, "127.0.0.1:0", errors.Join(errA, errB)
	}
	return conform.FreshKiller("iwarp", open, func(b rdma.Device) error { b.(*iwarp.Device).Kill(); return nil })
}

// TestConformance runs the whole suite on the ways the stack can be configured.
func TestConformance(t *testing.T) {
	for name, cfg := range map[string]iwarp.Config{
		"default": {}, "p2p": {PeerToPeer: true}, "markers": {Markers: true}, "checked": {StoreAndForward: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := harness(cfg)
			defer func() {
				if err := h.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			conformtest.Run(t, h, conform.Options{Strict: true})
		})
	}
}
