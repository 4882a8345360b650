package stackspec

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Devices of the counters of soft stacks. All are of the process, as several
// connections may share a stack.
const (
	copiesDevice  = "iwarp copies"
	socketsDevice = "socket calls"
)

// iwarpCounters reads the copies of iWARP, too.
func iwarpCounters(h devices.Host, l Layer) func() []reports.DeviceCounters {
	below := softCounters(h, l)
	return func() []reports.DeviceCounters {
		n := iwarp.Totals()
		return append(below(), reports.DeviceCounters{Device: copiesDevice, Detail: true, Process: true,
			Counters: map[string]int64{
				"octets_staged": int64(n.Staged), "octets_placed": int64(n.Placed), "octets_direct": int64(n.Direct),
				"octets_framed": int64(n.Framed), "yield_calls": int64(n.Yields),
				"receive_thread_usec": int64(n.Thread / 1000)}})
	}
}

// softCounters reads what a soft stack counts: the kernel's TCP, or the stack in user
// space; copies; and system calls.
func softCounters(h devices.Host, l Layer) func() []reports.DeviceCounters {
	named, _ := l.Param("stack")
	kernel := named == "" || named == "kernel"
	return func() (all []reports.DeviceCounters) {
		if kernel {
			all = h.TCPCounters()
		}
		all = append(all, userStackCounters()...)
		n := stream.KernelCalls()
		return append(all, reports.DeviceCounters{Device: socketsDevice, Detail: true, Process: true,
			Counters: map[string]int64{
				"recv_calls": int64(n.Recv), "recv_empty": int64(n.RecvEmpty), "recv_octets": int64(n.RecvOctets),
				"send_calls": int64(n.Send), "send_octets": int64(n.SendOctets), "queue_calls": int64(n.Queue),
				"epoll_calls": int64(n.Poll)}})
	}
}
