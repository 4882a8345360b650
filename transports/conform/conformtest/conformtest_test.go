package conformtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/conform/conformtest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestReference is the suite on the reference device, as other packages use it.
func TestReference(t *testing.T) {
	h := &conform.Harness{Name: "mem", Open: func(context.Context) (rdma.Device, rdma.Device, string, error) {
		f := memdev.NewFabric(memdev.Config{Seed: 2})
		a, errA := f.Open("a")
		b, errB := f.Open("b")
		return a, b, "b:0", errors.Join(errA, errB)
	}}
	conformtest.Run(t, h, conform.Options{Only: []string{"dev", "qps", "ord/write-then-send", "rdr/sink-remote-write"},
		Seed: 2})
	if err := h.Close(); err != nil {
		t.Errorf("close harness: %v", err)
	}
}
