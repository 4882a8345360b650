package stackspec

import (
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// regcacheParams declares those of a regcache layer.
var regcacheParams = params[regcache.TierConfig]{
	{paramDoc{"keep", switchOf, "",
		"keys with remote rights stay valid when a registration is closed, too, as in caches of MPI libraries"},
		func(c *regcache.TierConfig, v value) error { c.Keep = true; return nil }},
	{paramDoc{"regions", countOf(1, 1<<20), "16384", "most registrations that are kept"},
		func(c *regcache.TierConfig, v value) error { c.MaxRegions = v.n; return nil }},
	{paramDoc{"bytes", sizeOf, "what the device takes", "most bytes that are kept registered"},
		func(c *regcache.TierConfig, v value) error { c.MaxBytes = uint64(v.n); return nil }},
	{paramDoc{"age", timeOf, "for ever", "how long an unused registration is kept"},
		func(c *regcache.TierConfig, v value) error { c.MaxAge = v.d; return nil }},
	{paramDoc{"source", wordOf(regcache.Sources()...), regcache.SourceAuto.String(),
		"how unmapped memory is detected; auto takes the strongest way that the system permits"},
		func(c *regcache.TierConfig, v value) (err error) {
			c.Source, err = regcache.ParseSource(v.text)
			return err
		}},
}

func wrapRegcache(l Layer, below rdma.Device) (rdma.Device, error) {
	var c regcache.TierConfig
	if err := regcacheParams.Read(l, &c); err != nil {
		return nil, err
	}
	return regcache.Wrap(below, c)
}
