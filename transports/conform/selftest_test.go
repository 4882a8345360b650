package conform_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// mem is a harness over the reference device, with whatever faults cfg arms.
func mem(cfg memdev.Config) conform.Harness {
	open := func(context.Context) (rdma.Device, rdma.Device, string, error) {
		f := memdev.NewFabric(cfg)
		a, errA := f.Open("a")
		b, errB := f.Open("b")
		return a, b, "b:0", errors.Join(errA, errB)
	}
	return conform.FreshKiller("mem", open, func(b rdma.Device) error { b.(*memdev.Device).Kill(); return nil })
}

// TestReferencePasses: every case passes on the device that was written as the
// reference, and none is unsupported except those that ask for an absence.
func TestReferencePasses(t *testing.T) {
	h := mem(memdev.Config{Seed: 1})
	start := time.Now()
	rep := conform.Run(context.Background(), h, conform.Options{Strict: true})
	if err := h.Close(); err != nil {
		t.Errorf("close harness: %v", err)
	}
	if err := conform.WriteMatrix(os.Stdout, rep); err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(start))
	for _, r := range rep.Results {
		if r.DurationNS > 50e6 {
			t.Log(r.ID, r.DurationNS/1e6)
		}
	}
	for _, r := range rep.Results {
		if r.Evidence != "" {
			t.Log(r.ID, r.Evidence)
		}
	}
}
