package register

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/regcache/offload"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var must = workloadtest.Must

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestSchemaHasEveryMember(t *testing.T) { reporttest.Described(t, results) }

func targets(t *testing.T, f func(t *testing.T, g *Target)) {
	over := func(name string, open func() (rdma.Device, error)) {
		t.Run(name, func(t *testing.T) {
			dev, err := open()
			must(t, err)
			g, err := Device(dev)
			must(t, err)
			f(t, g)
			must(t, errors.Join(g.Close(), dev.Close()))
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
		must(t, g.Close())
	})
}

func take(t *testing.T, g *Target, p Point) *Register {
	t.Helper()
	out, err := Run(context.Background(), g, p, time.Millisecond, 1)
	if err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	return out
}

// Every arm has every pattern's stages on every target, and gives all back, or the target could not be closed.
func TestEveryArmHasEveryPattern(t *testing.T) {
	targets(t, func(t *testing.T, g *Target) {
		for _, arm := range arms.Names() {
			for _, pattern := range []string{PatternRepeated, PatternRandom, PatternOverlapping, PatternNew, PatternSet} {
				for _, o := range []offload.Config{{}, {Hop: true}} {
					p := Point{Arm: arm, Size: 8192, Pattern: pattern, Offload: o}
					if pattern == PatternSet {
						p.Buffers, p.Regions = 8, 4
					}
					if arm == arms.ODP {
						_, err := Run(t.Context(), g, p, time.Millisecond, 1)
						if !errors.Is(err, rdma.ErrNotSupported) {
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

// A working set above what may be locked is measured: the cache gives up what nobody uses. The thread that drops its
// capability ends with the goroutine.
func TestAWorkingSetMayExceedWhatMayBeLocked(t *testing.T) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim); err != nil || lim.Cur > 64<<20 || lim.Cur < 1<<20 {
		t.Skipf("RLIMIT_MEMLOCK of %d bytes is not one to go above here", lim.Cur)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&hdr, &data[0]); err != nil {
			t.Error(err)
			return
		}
		data[0].Effective &^= 1 << unix.CAP_IPC_LOCK
		if err := unix.Capset(&hdr, &data[0]); err != nil {
			t.Error(err)
			return
		}
		g, err := Pin()
		if err != nil {
			t.Logf("skipped: %v", err)
			return
		}
		defer g.Close()
		const size = 64 << 10
		n := 2 * int(lim.Cur) / size
		p := Point{Arm: arms.Cache, Size: size, Pattern: PatternSet, Buffers: n, Regions: 2 * n}
		if most, why := Most(g, p); p.Bytes() > most {
			t.Errorf("at most %d bytes: %s", most, why)
		}
		d, err := Run(context.Background(), g, p, 20*time.Millisecond, 7)
		if err != nil {
			t.Error(err)
			return
		}
		if d.Cache["evictions"] == 0 || d.SetHits == 0 || d.SetHits == d.SetGets {
			t.Errorf("%d hits of %d, %v", d.SetHits, d.SetGets, d.Cache)
		}
		p = Point{Arm: arms.Cache, Size: int(lim.Cur), Pattern: PatternRepeated}
		if most, _ := Most(g, p); most >= int(lim.Cur) {
			t.Errorf("a buffer of all that may be locked: at most %d", most)
		}
	})
	wg.Wait()
}

// Every source but none notices replaced pages. With none, a device that pins writes to the old ones, and one that
// reaches memory by address cannot show it.
func TestSourcesNoticeReplacedMemory(t *testing.T) {
	targets(t, func(t *testing.T, g *Target) {
		for word, why := range Sources(g) {
			if why != nil {
				t.Logf("source %s is not granted here: %v", word, why)
				continue
			}
			s, err := regcache.ParseSource(word)
			must(t, err)
			d, err := Run(context.Background(), g, Point{Arm: arms.Cache, Size: 64 << 10, Pattern: PatternReplaced,
				Source: s}, 5*time.Millisecond, 1)
			if err != nil {
				t.Fatalf("source %s: %v", word, err)
			}
			want := int64(0)
			if s == regcache.SourceNone && g.Name == "pin" {
				want = d.Replaced
			}
			if d.Replaced == 0 || d.Stale != want || d.Register == nil || d.Unmap == nil || d.SourceSays == "" {
				t.Errorf("source %s: %d stale of %d, want %d; %+v", word, d.Stale, d.Replaced, want, d)
			}
			if err := CheckStale(d); err != nil {
				t.Errorf("source %s: %v", word, err)
			}
			if d.Stale = 1; (CheckStale(d) == nil) != (s == regcache.SourceNone) {
				t.Errorf("source %s: a stale use is taken for %v", word, CheckStale(d))
			}
		}
	})
}

// paging declares on-demand paging; what is below finds the pages by itself, as a process does.
type paging struct {
	rdma.Device
	onDemand, pinned int
}

func (p *paging) Caps() rdma.Caps {
	c := p.Device.Caps()
	c.OnDemand = true
	return c
}

func (p *paging) RegMR(pd rdma.PD, b rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	if access.Has(rdma.OnDemand) {
		p.onDemand++
	} else {
		p.pinned++
	}
	return p.Device.RegMR(pd, b, access&^rdma.OnDemand)
}

// The arm registers nothing but on demand, and tells first and second uses of new memory apart.
func TestOnDemandPagingWhereDeclared(t *testing.T) {
	below, err := memdev.NewFabric(memdev.Config{}).Open("a")
	must(t, err)
	dev := &paging{Device: below}
	g, err := Device(dev)
	must(t, err)
	own := dev.pinned // the window of the far end
	for _, pattern := range []string{PatternRepeated, PatternNew} {
		d := take(t, g, Point{Arm: arms.ODP, Size: 64 << 10, Pattern: pattern})
		if d.Register == nil || d.Use == nil || (d.Again != nil) != (pattern == PatternNew) {
			t.Errorf("%s: %+v", pattern, d)
		}
	}
	if dev.onDemand == 0 || dev.pinned != own {
		t.Errorf("%d registrations on demand, %d others", dev.onDemand, dev.pinned-own)
	}
	must(t, g.Close())
	must(t, dev.Close())
}
