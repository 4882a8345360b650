package iwarp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/suite"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
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

// TestConformance runs the whole suite by default, and on other configurations what they do differently.
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

// TestWireCases runs every wire case, hazards too, against the device behind a test target, with early placement and
// without. The other wire tests hold what the cases leave out: direct placement, the initiator, sockets that end.
func TestWireCases(t *testing.T) {
	for name, cfg := range map[string]iwarp.Config{"default": {}, "checked": {StoreAndForward: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() {
				done <- target.Serve(ctx, l, target.Config{Transport: "iwarp", Variants: []string{"markers", "nocrc"},
					Log: slog.New(slog.DiscardHandler), Open: func(variant string) (rdma.Device, string, error) {
						own := cfg
						own.Markers, own.NoCRC = variant == "markers", variant == "nocrc"
						dev, err := iwarp.Open(own)
						return dev, "", err
					}})
			}()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}()
			rep := suite.Run(t.Context(), l.Addr().String(),
				suite.Options{Options: conform.Options{CaseTimeout: time.Minute}, Hazard: true})
			if rep.Err != nil || len(rep.Results) != len(suite.Catalogue()) {
				t.Fatalf("%d of %d cases: %v", len(rep.Results), len(suite.Catalogue()), rep.Err)
			}
			for _, r := range rep.Results {
				if r.Verdict != conform.Pass {
					t.Errorf("%s: %s: want %q, got %s %s", r.ID, r.Verdict, r.Want, r.Got, r.Evidence)
				}
			}
		})
	}
}
