// Package localtest opens clusters for tests of the programs over LITE.
package localtest

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Open opens n nodes over iWARP, which the end of the test closes.
func Open(t testing.TB, n int) *local.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cfg := lite.Config{Arena: 24 << 20, DeadAfter: 600 * time.Millisecond, Beat: 50 * time.Millisecond,
		Timeout: 20 * time.Second}
	c, err := local.Open(ctx, n, cfg, func(int) (rdma.Device, string, error) {
		d, err := iwarp.Open(iwarp.Config{})
		return d, "127.0.0.1:0", err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}
