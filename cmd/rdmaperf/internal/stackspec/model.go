package stackspec

import "github.com/rdmaperf/rdmaperf/transports/model"

var nicCount = countOf(1, 1<<24)

var modelParams = params[model.Config]{
	{paramDoc{"cx3", switchOf, "on", "ConnectX-3, 40 Gb/s; as all presets fitted by shape to what is published"},
		func(c *model.Config, _ value) { c.Preset = "cx3" }},
	{paramDoc{"cx5", switchOf, "", "ConnectX-5, 100 Gb/s"}, func(c *model.Config, _ value) { c.Preset = "cx5" }},
	{paramDoc{"service", timeOf, "170ns or 30ns", "time of a request in the NIC's pipeline, without cache misses"},
		func(c *model.Config, v value) { c.Service = v.d }},
	{paramDoc{"wire", timeOf, "550ns or 450ns", "one-way delay between two NICs, without serialisation"},
		func(c *model.Config, v value) { c.Wire = v.d }},
	{paramDoc{"doorbell", timeOf, "100ns", "from a post until the NIC has the first request"},
		func(c *model.Config, v value) { c.Doorbell = v.d }},
	{paramDoc{"miss", timeOf, "850ns or 500ns", "a read over PCIe"}, func(c *model.Config, v value) { c.Miss = v.d }},
	{paramDoc{"inflight", nicCount, "1 or 11", "cache misses outstanding at once"},
		func(c *model.Config, v value) { c.Inflight = v.n }},
	{paramDoc{"keys", nicCount, "128 or 16384", "keys that the NIC caches"},
		func(c *model.Config, v value) { c.Keys = v.n }},
	{paramDoc{"translations", nicCount, "1024 or 32768", "page translations that the NIC caches"},
		func(c *model.Config, v value) { c.Translations = v.n }},
	{paramDoc{"qps", nicCount, "400 or 4096", "queue pair contexts that the NIC caches"},
		func(c *model.Config, v value) { c.QPs = v.n }},
	{paramDoc{"ways", nicCount, "all", "associativity of each cache"}, func(c *model.Config, v value) { c.Ways = v.n }},
	{paramDoc{"page", sizeOf, "4096", "base pages; huge ones stay 2 MiB"},
		func(c *model.Config, v value) { c.Page = v.n }},
	{paramDoc{"gbps", countOf(1, 10000), "40 or 100", "rate of the link, Gb/s"},
		func(c *model.Config, v value) { c.Gbps = float64(v.n) }},
}
