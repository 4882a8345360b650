package stackspec

import (
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Counters is the reader of what is counted for an open stack: below it, and by
// its own tiers. Nil for one that counts nothing. Another client's stack of the same
// name has tiers of its own.
func Counters(tr transports.Stack) func() []reports.DeviceCounters {
	below := countersOf(tr.Name())
	if len(rdma.CountsOf(tr)) == 0 {
		return below
	}
	return func() (all []reports.DeviceCounters) {
		if below != nil {
			all = below()
		}
		for _, c := range rdma.CountsOf(tr) {
			all = append(all, reports.DeviceCounters{Device: c.Layer, Counters: c.Values, Detail: c.Detail,
				Process: c.Detail})
		}
		return all
	}
}

// countersOf gives the reader of the counters below a stack, by its full name: the
// RDMA device of kernel verbs, or the kernel's TCP of the soft stacks. Nil for a
// stack that has neither.
func countersOf(stack string) func() []reports.DeviceCounters {
	return countersOn(devices.Local(), stack)
}

func countersOn(h devices.Host, stack string) func() []reports.DeviceCounters {
	layers, err := Parse(stack)
	if err != nil {
		return nil
	}
	l := layers[len(layers)-1]
	if counts := EntryOf(l).counts; counts != nil {
		return counts(h, l)
	}
	return nil
}

// verbsCounters are those of the RDMA device.
func verbsCounters(h devices.Host, l Layer) func() []reports.DeviceCounters {
	device, port := l.port()
	if device == "" {
		return nil
	}
	return func() []reports.DeviceCounters { return h.Counters(device, port) }
}

// port is the device and the port that a layer names, as in verbs:mlx5_0/2 or
// verbs(port=2):mlx5_0; 0 is every port.
func (l Layer) port() (device string, port int) {
	device, behind, _ := strings.Cut(l.Device, "/")
	if behind == "" {
		behind, _ = l.Param("port")
	}
	if n, err := strconv.Atoi(behind); err == nil && n > 0 {
		port = n
	}
	return device, port
}
