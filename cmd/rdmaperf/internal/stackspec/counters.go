package stackspec

import (
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/softstack/lwip"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Counters is the reader of what is counted below an open stack and by its own tiers; nil for nothing.
func Counters(tr transports.Stack) func() []reports.DeviceCounters {
	below := countersOn(devices.Local(), tr.Name())
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

// countersOn is the reader of the counters below a stack, by its full name; nil for a stack that has none.
func countersOn(h devices.Host, stack string) func() []reports.DeviceCounters {
	_, l := bottom(stack)
	if counts := EntryOf(*l).counts; counts != nil {
		return counts(h, *l)
	}
	return nil
}

// verbsCounters are those of verbs:mlx5_0/2 or verbs(port=2):mlx5_0; of every port where the layer names none.
func verbsCounters(h devices.Host, l Layer) func() []reports.DeviceCounters {
	device, behind, _ := strings.Cut(l.Device, "/")
	if device == "" {
		return nil
	}
	if behind == "" {
		behind, _ = l.Param("port")
	}
	port, err := strconv.Atoi(behind)
	if err != nil || port < 0 {
		port = 0
	}
	return func() []reports.DeviceCounters { return h.Counters(device, port) }
}

func iwarpCounters(h devices.Host, l Layer) func() []reports.DeviceCounters {
	below := softCounters(h, l)
	return func() []reports.DeviceCounters {
		n := iwarp.Totals()
		return append(below(), inProcess("iwarp copies", map[string]int64{
			"octets_staged": int64(n.Staged), "octets_placed": int64(n.Placed), "octets_direct": int64(n.Direct),
			"octets_framed": int64(n.Framed), "yield_calls": int64(n.Yields),
			"receive_thread_usec": int64(n.Thread / 1000)}))
	}
}

// inProcess are details that all connections of the process count together, as several may share a stack.
func inProcess(device string, counters map[string]int64) reports.DeviceCounters {
	return reports.DeviceCounters{Device: device, Detail: true, Process: true, Counters: counters}
}

// softCounters reads what a soft stack counts: TCP of the kernel or in user space, copies, and system calls.
func softCounters(h devices.Host, l Layer) func() []reports.DeviceCounters {
	named, _ := l.Param("stack")
	kernel := named == "" || named == "kernel"
	return func() (all []reports.DeviceCounters) {
		if kernel {
			all = h.TCPCounters()
		}
		if n := lwip.Totals(); n != (lwip.Counts{}) {
			all = append(all, reports.DeviceCounters{Device: "lwip links", Process: true, Counters: map[string]int64{
				"frames_dropped": int64(n.TxDropped), "frames_missed": int64(n.RxMissed),
				"packets_refused": int64(n.Refused), "frames_lost": int64(n.Lost),
				"frames_duplicated": int64(n.Duplicated), "frames_reordered": int64(n.Reordered),
				"frames_delayed": int64(n.Delayed)}},
				inProcess("lwip", map[string]int64{
					"tx_frames": int64(n.TxFrames), "tx_octets": int64(n.TxOctets), "tx_copied": int64(n.TxCopied),
					"tx_referenced": int64(n.TxReferenced), "rx_frames": int64(n.RxFrames),
					"rx_octets": int64(n.RxOctets), "rx_copied": int64(n.RxCopied), "bell_calls": int64(n.Bells),
					"yield_calls": int64(n.Yields), "packet_thread_usec": int64(n.Thread / 1000)}))
		}
		n := stream.KernelCalls()
		return append(all, inProcess("socket calls", map[string]int64{
			"recv_calls": int64(n.Recv), "recv_empty": int64(n.RecvEmpty), "recv_octets": int64(n.RecvOctets),
			"send_calls": int64(n.Send), "send_octets": int64(n.SendOctets), "queue_calls": int64(n.Queue),
			"epoll_calls": int64(n.Poll)}))
	}
}
