package model

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Config is a NIC. Zero values mean those of the preset.
type Config struct {
	Preset string // "cx3" or "cx5"; "" is cx3

	Service  time.Duration // of a request in the pipeline, without misses
	Wire     time.Duration // one way: PCIe, wire and switch, without serialisation
	Doorbell time.Duration // of a post, whatever it holds, until the NIC has the first request
	Miss     time.Duration // a read over PCIe
	Inflight int           // misses that are fetched at once

	Keys         int // entries of the cache of keys
	Translations int // of the cache of translations, one a page
	QPs          int // of the cache of queue pair contexts
	Ways         int // of each cache; 0: every entry may stand anywhere
	Page         int // bytes that a translation covers where the memory has base pages

	Gbps float64 // of the link
}

// presets are fitted to published shapes: requests fall beyond about 100 keys and a few MB of 4-KiB pages (LITE,
// SOSP'17, slides 29 and 31, ConnectX-3, 40 Gb/s), and with thousands of connections to 83 % and 32 % (Storm, arXiv
// 1902.02411, as recalled). 0.85 µs for a read over PCIe is hackingnasdaq's of 2014; sizes of caches are choices that
// put the knees there.
var presets = map[string]Config{
	"cx3": {Service: 170 * time.Nanosecond, Wire: 550 * time.Nanosecond, Doorbell: 100 * time.Nanosecond,
		Miss: 850 * time.Nanosecond, Inflight: 1, Keys: 128, Translations: 1 << 10, QPs: 400, Page: 4096, Gbps: 40},
	"cx5": {Service: 30 * time.Nanosecond, Wire: 450 * time.Nanosecond, Doorbell: 100 * time.Nanosecond,
		Miss: 500 * time.Nanosecond, Inflight: 11,
		Keys: 16 << 10, Translations: 32 << 10, QPs: 4 << 10, Page: 4096, Gbps: 100},
}

// Presets are the names of the NICs.
var Presets = []string{"cx3", "cx5"}

const (
	maxEntries = 1 << 24 // of a cache; bounds memory
	// headers is the bytes of a packet's local route, base transport and RDMA headers and two checksums (IBTA 5.2).
	headers = 8 + 12 + 16 + 6
	mtu     = 4096
)

// Normal is the NIC with every value, or rdma.ErrInvalid for what cannot be.
func (c Config) Normal() (Config, error) {
	c.Preset = cmp.Or(c.Preset, Presets[0])
	p, ok := presets[c.Preset]
	if !ok {
		return c, fmt.Errorf("NIC %q, want one of %s: %w", c.Preset, strings.Join(Presets, ", "), rdma.ErrInvalid)
	}
	for _, d := range []struct{ v, or *time.Duration }{{&c.Service, &p.Service}, {&c.Wire, &p.Wire},
		{&c.Doorbell, &p.Doorbell}, {&c.Miss, &p.Miss}} {
		if *d.v == 0 {
			*d.v = *d.or
		}
		if *d.v < 0 || *d.v > time.Second {
			return c, fmt.Errorf("time %v, want 1ns to 1s: %w", *d.v, rdma.ErrInvalid)
		}
	}
	for _, d := range []struct {
		what  string
		v, or *int
		most  int
	}{
		{"misses at once", &c.Inflight, &p.Inflight, 1024}, {"keys", &c.Keys, &p.Keys, maxEntries},
		{"translations", &c.Translations, &p.Translations, maxEntries}, {"queue pairs", &c.QPs, &p.QPs, maxEntries},
		{"bytes of a page", &c.Page, &p.Page, 1 << 30},
	} {
		if *d.v == 0 {
			*d.v = *d.or
		}
		if *d.v < 1 || *d.v > d.most {
			return c, fmt.Errorf("%s %d, want 1 to %d: %w", d.what, *d.v, d.most, rdma.ErrInvalid)
		}
	}
	if c.Page&(c.Page-1) != 0 {
		return c, fmt.Errorf("page of %d bytes, want a power of two: %w", c.Page, rdma.ErrInvalid)
	}
	for _, n := range []int{c.Keys, c.Translations, c.QPs} {
		if c.Ways < 0 || c.Ways > 0 && n%c.Ways != 0 {
			return c, fmt.Errorf("%d ways of a cache of %d entries, want a divisor: %w", c.Ways, n, rdma.ErrInvalid)
		}
	}
	c.Gbps = cmp.Or(c.Gbps, p.Gbps)
	if !(c.Gbps >= 0.001 && c.Gbps <= 1e5) {
		return c, fmt.Errorf("link of %v Gb/s, want 0.001 to 100000: %w", c.Gbps, rdma.ErrInvalid)
	}
	return c, nil
}

// String is the NIC with every parameter, as results name it.
func (c Config) String() string {
	ways := ""
	if c.Ways > 0 {
		ways = fmt.Sprintf(",ways=%d", c.Ways)
	}
	return fmt.Sprintf("model(%s,service=%v,wire=%v,doorbell=%v,miss=%v,inflight=%d,keys=%d,translations=%d,qps=%d%s,"+
		"page=%d,gbps=%g)",
		c.Preset, c.Service, c.Wire, c.Doorbell, c.Miss, c.Inflight, c.Keys, c.Translations, c.QPs, ways, c.Page,
		c.Gbps)
}
