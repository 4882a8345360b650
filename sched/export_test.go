package sched

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// WithoutKeeper keeps the device's goroutine from starting, for tests that decide
// alone what happens when.
func WithoutKeeper(d rdma.Device) rdma.Device {
	d.(*device).keep.stopped = true
	return d
}
