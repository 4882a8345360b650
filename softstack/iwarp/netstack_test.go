//go:build netstack

package iwarp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/softstack/netstack"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/conform/conformtest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestConformanceOverNetstack runs the whole suite over gVisor's stack.
func TestConformanceOverNetstack(t *testing.T) {
	stack, err := netstack.Open(netstack.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := iwarp.Config{Stack: stack}
	open := func(context.Context) (rdma.Device, rdma.Device, string, error) {
		a, errA := iwarp.Open(cfg)
		b, errB := iwarp.Open(cfg)
		return a, b, "127.0.0.1:0", errors.Join(errA, errB)
	}
	h := conform.FreshKiller("iwarp", open, func(b rdma.Device) error { b.(*iwarp.Device).Kill(); return nil })
	defer func() {
		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	conformtest.Run(t, h, conform.Options{Strict: true})
	t.Logf("%+v", netstack.Totals())
}
