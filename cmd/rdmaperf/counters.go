package main

import (
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/reports"
)

// countersOf gives the reader of the counters below a stack, by its full name: the
// RDMA device of kernel verbs, or the kernel's TCP of the soft stacks. Nil for a
// stack that has neither.
func countersOf(stack string) func() []reports.DeviceCounters {
	return countersOn(devices.Local(), stack)
}

func countersOn(h devices.Host, stack string) func() []reports.DeviceCounters {
	layers, err := parseStack(stack)
	if err != nil {
		return nil
	}
	switch l := layers[len(layers)-1]; l.name {
	case "verbs":
		device, port := l.port()
		if device == "" {
			return nil
		}
		return func() []reports.DeviceCounters { return h.Counters(device, port) }
	case "iwarp", "tcp":
		return h.TCPCounters
	}
	return nil
}

// port is the device and the port that a layer names, as in verbs:mlx5_0/2 or
// verbs(port=2):mlx5_0; 0 is every port.
func (l layer) port() (device string, port int) {
	device, behind, _ := strings.Cut(l.device, "/")
	for _, p := range l.params {
		if value, ok := strings.CutPrefix(p, "port="); ok && behind == "" {
			behind = value
		}
	}
	if n, err := strconv.Atoi(behind); err == nil && n > 0 {
		port = n
	}
	return device, port
}
