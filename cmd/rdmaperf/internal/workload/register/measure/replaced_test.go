package measure

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Memory whose pages were replaced behind everybody's back is noticed by every source
// but none. With that one a device that pins pages writes to the old ones each time, and
// one that reaches memory by its address cannot show it.
func TestSourcesNoticeReplacedMemory(t *testing.T) {
	targets(t, func(t *testing.T, g *Target) {
		for word, why := range Sources(g) {
			if why != nil {
				t.Logf("source %s is not granted here: %v", word, why)
				continue
			}
			s, err := regcache.ParseSource(word)
			if err != nil {
				t.Fatal(err)
			}
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
			err = CheckStale(d)
			if err != nil {
				t.Errorf("source %s: %v", word, err)
			}
			if d.Stale = 1; (CheckStale(d) == nil) != (s == regcache.SourceNone) {
				t.Errorf("source %s: a stale use is taken for %v", word, CheckStale(d))
			}
		}
	})
}

// paging is a device that declares on-demand paging. What is below finds the pages by
// itself, as a process does.
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

// On a device that declares it, the arm registers nothing but on demand, and first and
// second uses of new memory are told apart.
func TestOnDemandPagingWhereDeclared(t *testing.T) {
	below, err := memdev.NewFabric(memdev.Config{}).Open("a")
	if err != nil {
		t.Fatal(err)
	}
	dev := &paging{Device: below}
	g, err := Device(dev, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}
