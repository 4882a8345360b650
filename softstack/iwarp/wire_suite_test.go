package iwarp_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/suite"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestWireCases runs every wire case, hazards too, against the device behind a test target: as it is, and with
// each CRC checked before the payload is placed. The other wire tests of this package hold what the cases leave out:
// direct placement, the initiator's role, sockets that end, and what the device alone can show.
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
