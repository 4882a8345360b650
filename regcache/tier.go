package regcache

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TierConfig is what a tier keeps behind the close of a registration.
type TierConfig struct {
	Config
	// Keep leaves keys with remote rights valid behind MR.Close, as the caches of MPI libraries do, until a bound, lost
	// memory or FreePD revokes them. Without it they end with Close, as rdma.MR promises.
	Keep bool
}

// tier is a device that keeps registrations. The data path is that of the device below.
type tier struct {
	rdma.Device
	cfg   TierConfig
	cache *Cache

	mu      sync.Mutex
	scopes  map[rdma.PD]*Scope
	trimmed time.Time
}

// Wrap puts a tier over below, which its Close closes too. It fails as [New] does.
func Wrap(below rdma.Device, cfg TierConfig) (rdma.Device, error) {
	c, err := New(below, cfg.Config)
	if err != nil {
		return nil, err
	}
	return &tier{Device: below, cfg: cfg, cache: c, scopes: map[rdma.PD]*Scope{}}, nil
}

func (t *tier) Caps() rdma.Caps {
	c := t.Device.Caps()
	c.Features |= rdma.FeatKeepsKeys
	return c
}

// Counts leaves out regions and bytes: what is there now is no count.
func (t *tier) Counts() []rdma.Counts {
	own := t.cache.Counters().Map()
	delete(own, "regions")
	delete(own, "bytes")
	return append([]rdma.Counts{{Layer: "regcache", Values: own}}, rdma.CountsOf(t.Device)...)
}

func (t *tier) Name() string {
	var p []string
	add := func(on bool, s string) {
		if on {
			p = append(p, s)
		}
	}
	add(t.cfg.Keep, "keep")
	add(t.cfg.MaxRegions > 0, fmt.Sprintf("regions=%d", t.cfg.MaxRegions))
	add(t.cfg.MaxBytes > 0, fmt.Sprintf("bytes=%d", t.cfg.MaxBytes))
	add(t.cfg.MaxAge > 0, "age="+t.cfg.MaxAge.String())
	add(t.cfg.Source != SourceAuto, "source="+t.cfg.Source.String())
	name := "regcache"
	if len(p) > 0 {
		name += "(" + strings.Join(p, ",") + ")"
	}
	return name + "+" + t.Device.Name()
}

// tierMR is one use of a region.
type tierMR struct {
	*Region
	buf    rdma.Buffer
	access rdma.Access
	once   sync.Once
	err    error
}

// RegMR may return the key of a larger region, and of others who registered the same bytes.
func (t *tier) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	if access&remote != 0 && !t.cfg.Keep || access.Has(rdma.RemoteInvalidate) {
		mr, err := t.cache.register(pd, buf, access) // makes room where the device has none
		if err == nil {
			t.cache.mu.Lock()
			t.cache.n.Passed++
			t.cache.mu.Unlock()
		}
		return mr, err
	}
	s, err := t.scope(pd)
	if err != nil {
		return nil, err
	}
	r, err := s.Get(buf, access)
	if err != nil {
		return nil, err
	}
	return &tierMR{Region: r, buf: buf, access: access}, nil
}

func (t *tier) scope(pd rdma.PD) (*Scope, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cfg.MaxAge > 0 {
		if now := time.Now(); now.Sub(t.trimmed) > t.cfg.MaxAge/4 { // an age is right within a quarter
			t.trimmed = now
			if err := t.cache.Trim(now); err != nil {
				return nil, err
			}
		}
	}
	s := t.scopes[pd]
	if s == nil {
		var err error
		if s, err = t.cache.Scope(pd); err != nil {
			return nil, err
		}
		t.scopes[pd] = s
	}
	return s, nil
}

func (t *tier) FreePD(pd rdma.PD) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.scopes[pd]; s != nil {
		if err := t.cache.leave(pd); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
		delete(t.scopes, pd)
	}
	return t.Device.FreePD(pd)
}

func (t *tier) Close() error {
	if err := t.cache.Close(); err != nil {
		return err
	}
	return t.Device.Close()
}

func (m *tierMR) Addr() uint64        { return m.buf.Addr() }
func (m *tierMR) Len() uint64         { return uint64(m.buf.Len()) }
func (m *tierMR) Access() rdma.Access { return m.access }
func (m *tierMR) Close() error {
	m.once.Do(func() { m.err = m.Put() })
	return m.err
}
