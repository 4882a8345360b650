package stackspec

import "github.com/rdmaperf/rdmaperf/regcache"

var regcacheParams = params[regcache.TierConfig]{
	{paramDoc{"keep", switchOf, "",
		"keys with remote rights stay valid when a registration is closed, too, as in caches of MPI libraries"},
		func(c *regcache.TierConfig, _ value) { c.Keep = true }},
	{paramDoc{"regions", countOf(1, 1<<20), "16384", "most registrations that are kept"},
		func(c *regcache.TierConfig, v value) { c.MaxRegions = v.n }},
	{paramDoc{"bytes", sizeOf, "what the device takes", "most bytes that are kept registered"},
		func(c *regcache.TierConfig, v value) { c.MaxBytes = uint64(v.n) }},
	{paramDoc{"age", timeOf, "for ever", "how long an unused registration is kept"},
		func(c *regcache.TierConfig, v value) { c.MaxAge = v.d }},
	{paramDoc{"source", wordOf(regcache.Sources()...), regcache.SourceAuto.String(),
		"how unmapped memory is detected; auto takes the strongest way that the system permits"},
		func(c *regcache.TierConfig, v value) { c.Source, _ = regcache.ParseSource(v.text) }}, // it is one of the words
}
