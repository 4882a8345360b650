package reports

import (
	"maps"
	"slices"
)

// Counters is what the devices of both sides counted in the measured phase: the
// window, and the few messages that begin and end it.
type Counters struct {
	Client []DeviceCounters `json:"client,omitempty"`
	Server []DeviceCounters `json:"server,omitempty"`
}

// DeviceCounters are the counters of one port of a device, or with port 0 of the
// device as a whole, under the names that the system has for them: readings, or in
// a result the change. A negative change says that a counter was reset.
type DeviceCounters struct {
	Device   string           `json:"device"`
	Port     int              `json:"port,omitempty"`
	Counters map[string]int64 `json:"counters"`
}

// name is the device with its port.
func (c *DeviceCounters) name() string {
	if c.Port == 0 {
		return c.Device
	}
	return c.Device + "/" + integer(int64(c.Port))
}

// moved lists the counters in the order of their names, or only those that changed.
func (c *DeviceCounters) moved(all bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Counters)), func(name string) bool { return !all && c.Counters[name] == 0 })
}

// CounterChanges are the differences of two readings. What only one of them has is
// left out: it says nothing about the time between.
func CounterChanges(before, after []DeviceCounters) []DeviceCounters {
	var out []DeviceCounters
	for _, b := range after {
		i := slices.IndexFunc(before, func(a DeviceCounters) bool { return a.Device == b.Device && a.Port == b.Port })
		if i < 0 {
			continue
		}
		d := DeviceCounters{Device: b.Device, Port: b.Port, Counters: map[string]int64{}}
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

// shared tells whether both sides have the device.
func (c *Counters) shared(d *DeviceCounters) bool {
	in := func(list []DeviceCounters) bool {
		return slices.ContainsFunc(list, func(o DeviceCounters) bool { return o.Device == d.Device && o.Port == d.Port })
	}
	return in(c.Client) && in(c.Server)
}

// sides are the devices of a result with their side.
func (c *Counters) sides() []struct {
	side    string
	devices []DeviceCounters
} {
	if c == nil {
		return nil
	}
	return []struct {
		side    string
		devices []DeviceCounters
	}{{"client", c.Client}, {"server", c.Server}}
}
