//go:build lwip && cgo

package iwarp_test

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/softstack/lwip"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/conform/conformtest"
)

// TestConformanceOverLwIP runs the whole suite by default, and the groups of data on other arms.
func TestConformanceOverLwIP(t *testing.T) {
	data := []string{"snd", "inl", "rdw", "rdr", "ord", "lrg"}
	for _, c := range []struct {
		name string
		cfg  lwip.Config
		own  iwarp.Config
		only []string
	}{
		{"default", lwip.Config{}, iwarp.Config{}, nil},
		{"two copies", lwip.Config{TwoCopies: true}, iwarp.Config{}, data},
		{"packet thread", lwip.Config{Threads: lwip.C1}, iwarp.Config{}, data},
		{"receive thread", lwip.Config{}, iwarp.Config{ReceiveThread: true}, data},
		{"receive thread, done when acknowledged", lwip.Config{}, iwarp.Config{ReceiveThread: true, OnAck: true}, data},
		{"sequential", lwip.Config{Sequential: true}, iwarp.Config{}, data},
		{"markers", lwip.Config{}, iwarp.Config{Markers: true}, data},
		{"by reference", lwip.Config{ByReference: true}, iwarp.Config{}, nil},
		{"by reference, receive thread", lwip.Config{ByReference: true}, iwarp.Config{ReceiveThread: true}, nil},
		{"by reference, sequential", lwip.Config{ByReference: true, Sequential: true}, iwarp.Config{}, data},
	} {
		t.Run(c.name, func(t *testing.T) {
			stack, err := lwip.Open(c.cfg)
			if errors.Is(err, lwip.ErrCopies) {
				t.Skipf("%v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			cfg := c.own
			cfg.Stack = stack
			h := harness(cfg)
			h.Addr6 = ""
			defer func() {
				if err := h.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			conformtest.Run(t, h, conform.Options{Strict: true, Only: c.only})
			t.Logf("%+v", stack.Counts())
		})
	}
}
