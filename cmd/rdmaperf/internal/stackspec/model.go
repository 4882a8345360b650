package stackspec

import (
	"time"

	"github.com/rdmaperf/rdmaperf/transports/model"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const modelName = "model"

// modelParams declares those of a model layer.
var modelParams = params[model.Config]{
	nicParam("cx3", "on", "ConnectX-3, 40 Gb/s; as all presets fitted by shape to what is published"),
	nicParam("cx5", "", "ConnectX-5, 100 Gb/s"),
	nicTime("service", "170ns or 30ns", "time of a request in the NIC's pipeline, without cache misses",
		func(c *model.Config) *time.Duration { return &c.Service }),
	nicTime("wire", "550ns or 450ns", "one-way delay between two NICs, without serialisation",
		func(c *model.Config) *time.Duration { return &c.Wire }),
	nicTime("doorbell", "100ns", "from a post until the NIC has the first request",
		func(c *model.Config) *time.Duration { return &c.Doorbell }),
	nicTime("miss", "850ns or 500ns", "a read over PCIe", func(c *model.Config) *time.Duration { return &c.Miss }),
	nicCount("inflight", "1 or 11", "cache misses outstanding at once", func(c *model.Config) *int {
		return &c.Inflight
	}),
	nicCount("keys", "128 or 16384", "keys that the NIC caches",
		func(c *model.Config) *int { return &c.Keys }),
	nicCount("translations", "1024 or 32768", "page translations that the NIC caches",
		func(c *model.Config) *int { return &c.Translations }),
	nicCount("qps", "400 or 4096", "queue pair contexts that the NIC caches",
		func(c *model.Config) *int { return &c.QPs }),
	nicCount("ways", "all", "associativity of each cache", func(c *model.Config) *int {
		return &c.Ways
	}),
	{paramDoc{"page", sizeOf, "4096", "base pages; huge ones stay 2 MiB"}, func(c *model.Config, v value) error {
		c.Page = v.n
		return nil
	}},
	{paramDoc{"gbps", countOf(1, 10000), "40 or 100", "rate of the link, Gb/s"}, func(c *model.Config, v value) error {
		c.Gbps = float64(v.n)
		return nil
	}},
}

func nicParam(name, def, help string) param[model.Config] {
	return param[model.Config]{paramDoc{name, switchOf, def, help}, func(c *model.Config, v value) error {
		c.Preset = name
		return nil
	}}
}

func nicTime(name, def, help string, of func(*model.Config) *time.Duration) param[model.Config] {
	return param[model.Config]{
		paramDoc{name, timeOf, def, help}, func(c *model.Config, v value) error { *of(c) = v.d; return nil }}
}

func nicCount(name, def, help string, of func(*model.Config) *int) param[model.Config] {
	return param[model.Config]{
		paramDoc{name, countOf(1, 1<<24), def, help}, func(c *model.Config, v value) error { *of(c) = v.n; return nil }}
}

func wrapModel(l Layer, below rdma.Device) (rdma.Device, error) {
	var c model.Config
	if err := modelParams.Read(l, &c); err != nil {
		return nil, err
	}
	return model.Wrap(below, c)
}
