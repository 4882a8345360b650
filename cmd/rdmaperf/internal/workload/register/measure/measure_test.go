package measure

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/register/results"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/regcache/offload"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// targets runs a test over all that registers here.
func targets(t *testing.T, f func(t *testing.T, g *Target)) {
	over := func(name string, open func() (rdma.Device, error)) {
		t.Run(name, func(t *testing.T) {
			dev, err := open()
			if err != nil {
				t.Fatal(err)
			}
			g, err := Device(dev, "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			f(t, g)
			if err := errors.Join(g.Close(), dev.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	over("mem", func() (rdma.Device, error) { return memdev.NewFabric(memdev.Config{}).Open("a") })
	over("iwarp", func() (rdma.Device, error) { return iwarp.Open(iwarp.Config{}) })
	t.Run("pin", func(t *testing.T) {
		g, err := Pin()
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			t.Skipf("no io_uring here: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		f(t, g)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

func take(t *testing.T, g *Target, p Point) *results.Register {
	t.Helper()
	out, err := Run(context.Background(), g, p, time.Millisecond, 1)
	if err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	return out
}

// Every arm with every pattern has the stages that the pattern has, on every target,
// and gives everything back (the target could not be closed otherwise).
func TestEveryArmHasEveryPattern(t *testing.T) {
	targets(t, func(t *testing.T, g *Target) {
		for _, arm := range arms.Names() {
			for _, pattern := range append(Patterns(), PatternSet) {
				for _, o := range []offload.Config{{}, {Hop: true}} {
					p := Point{Arm: arm, Size: 8192, Pattern: pattern, Offload: o}
					if pattern == PatternSet {
						p.Buffers, p.Regions = 8, 4
					}
					if arm == arms.ODP {
						if _, err := Run(context.Background(), g, p, time.Millisecond, 1); !errors.Is(err,
							rdma.ErrNotSupported) {
							t.Errorf("%v: %v", p, err)
						}
						continue
					}
					d := take(t, g, p)
					if d.Register == nil || (d.Full == nil) != (pattern == PatternSet) || d.Operations == 0 ||
						(d.Map != nil) != (pattern == PatternNew) {
						t.Errorf("%v: %+v", p, d)
					}
					if (arm == arms.None) != (d.Cache == nil) {
						t.Errorf("%v: counters %v", p, d.Cache)
					}
				}
			}
		}
	})
}

// A device that moves bytes to anywhere else is found out.
func TestUsesAreCompared(t *testing.T) {
	targets(t, func(t *testing.T, g *Target) {
		use := g.use
		g.use = func(lkey uint32, b rdma.Buffer, number uint64) error {
			err := use(lkey, b, number)
			b.Bytes()[b.Len()-1]++
			if err == nil {
				err = holds(b, append(make([]byte, 0, 8), b.Bytes()[b.Len()-8:]...))
			}
			if err != nil {
				return err
			}
			var want [8]byte
			fill(want[:], number)
			return holds(b, want[:])
		}
		for _, p := range []Point{{Pattern: PatternRepeated}, {Pattern: PatternRandom}, {Pattern: PatternNew},
			{Pattern: PatternSet, Buffers: 4}, {Pattern: PatternRepeated, Threads: 2, Together: true}} {
			p.Arm, p.Size = arms.Cache, 8192
			if _, err := Run(context.Background(), g, p, time.Millisecond, 1); !errors.Is(err, ErrOther) {
				t.Errorf("%v: a changed byte: %v", p, err)
			}
		}
	})
}

// The cache hits while the working set fits, and not always behind that.
func TestHitRatioHasAKneeAtTheCapacity(t *testing.T) {
	targets(t, func(t *testing.T, g *Target) {
		ratio := func(buffers int) float64 {
			d, err := Run(context.Background(), g, Point{Arm: arms.Cache, Size: 4096, Pattern: PatternSet,
				Buffers: buffers, Regions: 16}, 20*time.Millisecond, 7)
			if err != nil {
				t.Fatal(err)
			}
			return float64(d.SetHits) / float64(d.SetGets)
		}
		if in, beyond := ratio(16), ratio(64); in != 1 || beyond > 0.5 {
			t.Errorf("hit ratio %.3f of 16 buffers, %.3f of 64, with room for 16", in, beyond)
		}
	})
}

// Lazily unmapped memory is revived and stays below its bound; the eager arm gives all
// up.
func TestLazyMemoryIsRevivedAndBounded(t *testing.T) {
	targets(t, func(t *testing.T, g *Target) {
		lazy := take(t, g, Point{Arm: arms.Lazy, Size: 64 << 10, Pattern: PatternNew, Deferred: 256 << 10}).Pool
		if lazy.Revived == 0 || lazy.MostDeferred == 0 || lazy.MostDeferred > lazy.DeferredBound {
			t.Errorf("lazy: %+v", lazy)
		}
		if eager := take(t, g, Point{Arm: arms.Prereg, Size: 64 << 10, Pattern: PatternNew}).Pool; eager.Revived != 0 ||
			eager.DeferredBound != 0 {
			t.Errorf("eager: %+v", eager)
		}
	})
}

func TestThreadsRegisterAtOnce(t *testing.T) {
	targets(t, func(t *testing.T, g *Target) {
		for _, arm := range []string{arms.None, arms.Cache, arms.Lazy} {
			d := take(t, g, Point{Arm: arm, Size: 8192, Pattern: PatternRepeated, Threads: 8, Together: true})
			if d.Threads != 8 || d.EachNs <= 0 || d.Register == nil || d.Register.Count < 8 {
				t.Errorf("%s: %+v", arm, d)
			}
		}
	})
}

func TestWhatIsTooMuchIsRefused(t *testing.T) {
	g, err := Pin()
	if err != nil {
		t.Skipf("no io_uring here: %v", err)
	}
	defer g.Close()
	for _, p := range []Point{{Arm: "some", Size: 1, Pattern: PatternNew}, {Arm: arms.None, Size: 1, Pattern: "some"},
		{Arm: arms.None, Pattern: PatternNew}} {
		if _, err := Run(context.Background(), g, p, time.Millisecond, 1); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if n, why := Most(g, Point{}); n < 1 || n > 1<<30 || why == "" {
		t.Errorf("most %d, %q", n, why)
	}
}
