package conformance

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// idlePath is a path that does nothing of what a case asks for.
type idlePath struct{ conform.Path }

func (idlePath) Harm(loss, double, reorder float64) {}
func (idlePath) Cut(bool)                           {}
func (idlePath) Stop(bool)                          {}

// TestBadPaths: over a path that is harmed our stack passes, and where nothing is harmed
// each of the cases is red: it does not pass for want of trouble.
func TestBadPaths(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces and TUN devices need root")
	}
	t.Parallel()
	cases := []string{"dth/link-cut", "dth/stopped-peer", "dth/loss", "dth/loss-atomics"}
	at, err := stackspec.Survey("iwarp")
	if err != nil {
		t.Fatal(err)
	}
	idle := func(ctx context.Context, giveUp time.Duration) (a, b rdma.Device, listen string, p conform.Path,
		err error) {
		a, b, listen, p, err = (&pathSite{at}).overPath(ctx, giveUp)
		return a, b, listen, idlePath{p}, err
	}
	for name, c := range map[string]struct {
		open  conform.PathOpener
		want  conform.Verdict
		limit time.Duration
	}{"harmed": {(&pathSite{at}).overPath, conform.Pass, 60 * time.Second},
		"idle": {idle, conform.Fail, 2 * time.Second}} {
		h := &conform.Harness{Name: "iwarp", OpenPath: c.open}
		rep := conform.Run(t.Context(), h, conform.Options{Only: cases, CaseTimeout: c.limit})
		for _, r := range rep.Results {
			if r.ID != "coverage" && r.Verdict != c.want {
				t.Errorf("%s: %s is %s: want %v, got %s, %s", name, r.ID, r.Verdict, r.Want, r.Got, r.Evidence)
			}
		}
		if err := h.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
