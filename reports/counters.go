package reports

import (
	"maps"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Counters is what the devices of both sides counted in the measured phase.
type Counters struct {
	Client []DeviceCounters `json:"client,omitempty"`
	Server []DeviceCounters `json:"server,omitempty"`
}

// DeviceCounters are the counters of one port, or with port 0 of the device as a whole, under the system's names:
// readings, or in a result the change. A negative change says that a counter was reset.
type DeviceCounters struct {
	Device   string           `json:"device"`
	Port     int              `json:"port,omitempty"`
	Counters map[string]int64 `json:"counters"`

	// Detail: they say how the work was done, and the text has them on request.
	Detail bool `json:"detail,omitempty"`
	// Process: each process counts for itself.
	Process bool `json:"process,omitempty"`
}

// Name is the device with its port.
func (c *DeviceCounters) Name() string {
	if c.Port == 0 {
		return c.Device
	}
	return c.Device + "/" + view.Integer(int64(c.Port))
}

// Moved lists the counters in the order of their names, or only those that changed.
func (c *DeviceCounters) Moved(all bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Counters)),
		func(name string) bool { return !all && c.Counters[name] == 0 })
}

// CounterChanges are the differences of two readings of what both have.
func CounterChanges(before, after []DeviceCounters) []DeviceCounters {
	var out []DeviceCounters
	for _, b := range after {
		i := slices.IndexFunc(before, func(a DeviceCounters) bool { return a.Device == b.Device && a.Port == b.Port })
		if i < 0 {
			continue
		}
		d := DeviceCounters{Device: b.Device, Port: b.Port, Detail: b.Detail, Process: b.Process,
			Counters: map[string]int64{}}
		for name, v := range b.Counters {
			if was, ok := before[i].Counters[name]; ok {
				d.Counters[name] = v - was
			}
		}
		if len(d.Counters) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// Shared tells whether both sides have the device.
func (c *Counters) Shared(d *DeviceCounters) bool {
	in := func(list []DeviceCounters) bool {
		return slices.ContainsFunc(list, func(o DeviceCounters) bool {
			return o.Device == d.Device && o.Port == d.Port
		})
	}
	return !d.Process && in(c.Client) && in(c.Server)
}

type deviceSide struct {
	Side    string
	Devices []DeviceCounters
}

// Sides are the devices of a result with their side.
func (c *Counters) Sides() []deviceSide {
	if c == nil {
		return nil
	}
	return []deviceSide{{"client", c.Client}, {"server", c.Server}}
}
