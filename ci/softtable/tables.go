package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Figures of a result.
type figure func(r *reports.Result) (float64, bool)

func p50(r *reports.Result) (float64, bool) {
	if r.Latency == nil {
		return 0, false
	}
	return r.Latency.P50 / 1000, true
}

func mbits(r *reports.Result) (float64, bool) {
	if r.Throughput == nil {
		return 0, false
	}
	return r.Throughput.BytesPerSecond * 8 / 1e6, true
}

// counted adds up counters of one side, over all its devices.
func counted(side []reports.DeviceCounters, names ...string) (sum float64) {
	for _, d := range side {
		for _, n := range names {
			sum += float64(d.Counters[n])
		}
	}
	return sum
}

func (m measures) all(k key, f figure) (xs []float64) {
	for _, r := range m[k] {
		if x, ok := f(r); ok {
			xs = append(xs, x)
		}
	}
	return xs
}

// show is a median, or a dash.
func show(xs []float64, format string) string {
	if len(xs) == 0 {
		return "-"
	}
	return fmt.Sprintf(format, targets.Median(xs))
}

func (m measures) keys(match func(key) bool) []key {
	return slices.SortedFunc(func(yield func(key) bool) {
		for k := range maps.Keys(m) {
			if match(k) && !yield(k) {
				return
			}
		}
	}, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.set, b.set), cmp.Compare(a.stack, b.stack), cmp.Compare(a.size, b.size),
			cmp.Compare(a.work, b.work), cmp.Compare(a.depth, b.depth))
	})
}

// schemes are latency and throughput by size, on shared memory and between namespaces.
func (m measures) schemes(w io.Writer) {
	fmt.Fprintf(w, "schemes: median over repeats; latency is half a round trip, depth 1\n")
	fmt.Fprintf(w, "%-44s %8s %12s %16s %16s\n", "scheme", "#bytes", "p50[usec]", "Mb/s depth 1", "Mb/s depth 16")
	for _, k := range m.keys(func(k key) bool {
		return (k.set == "schemes" || k.set == "xdp") && k.workload == "latency"
	}) {
		at := func(depth int) key { t := k; t.workload, t.depth = "throughput", depth; return t }
		name := k.stack
		if k.set == "xdp" {
			name += " (veth)"
		}
		fmt.Fprintf(w, "%-44s %8d %12s %16s %16s\n", name, k.size, show(m.all(k, p50), "%.2f"),
			show(m.all(at(1), mbits), "%.0f"), show(m.all(at(16), mbits), "%.0f"))
	}
}

// calls are the counters of system calls.
var calls = []string{"recv_calls", "send_calls", "queue_calls", "epoll_calls", "bell_calls", "yield_calls"}

// per is a count by another of the same result.
func per(f func(r *reports.Result) float64, by func(r *reports.Result) float64) figure {
	return func(r *reports.Result) (float64, bool) {
		if r.Counters == nil || by(r) == 0 {
			return 0, false
		}
		return f(r) / by(r), true
	}
}

func payload(r *reports.Result) float64 { return float64(r.Operations) * float64(r.SizeBytes) }

// copiesBy are octets that the sender's code of some counters copied, a byte of payload.
func copiesBy(names ...string) figure {
	return per(func(r *reports.Result) float64 { return counted(r.Counters.Client, names...) }, payload)
}

// sentCopies and receivedCopies are all of them, of streams from client to server.
var (
	sentCopies     = copiesBy("octets_framed", "tx_copied", "tx_octets", "send_octets")
	receivedCopies = per(func(r *reports.Result) float64 {
		return counted(r.Counters.Server, "octets_staged", "octets_placed", "octets_direct", "rx_copied")
	}, payload)
)

// accounts are copies a byte and system calls a message, by those who copy and call.
func (m measures) accounts(w io.Writer) {
	fmt.Fprintf(w, "\ncopies of a payload byte and system calls a message, of the streams of sends at depth 16, as "+
		"counted by the code that copies and calls\n")
	fmt.Fprintf(w, "%-44s %8s %10s %10s %12s %12s\n", "scheme", "#bytes", "sending", "receiving", "calls send",
		"calls recv")
	for _, k := range m.keys(func(k key) bool {
		return slices.Contains([]string{"schemes", "copies", "zero", "zeroxdp", "wide1460", "wide8960", "xdp"},
			k.set) && k.workload == "throughput" && k.depth == 16
	}) {
		messages := func(r *reports.Result) float64 { return float64(r.Operations) }
		fmt.Fprintf(w, "%-44s %8d %10s %10s %12s %12s\n", k.stack, k.size, show(m.all(k, sentCopies), "%.2f"),
			show(m.all(k, receivedCopies), "%.2f"),
			show(m.all(k, per(func(r *reports.Result) float64 { return counted(r.Counters.Client, calls...) },
				messages)), "%.3f"),
			show(m.all(k, per(func(r *reports.Result) float64 { return counted(r.Counters.Server, calls...) },
				messages)), "%.3f"))
	}
	fmt.Fprintf(w, "(a copy is of payload and its headers; kernel sockets: the kernel's copy in and out counts once "+
		"each; small messages share segments and calls)\n")
}

// dropped are frames that found no room, by those who dropped them.
func dropped(r *reports.Result) (float64, bool) {
	if r.Counters == nil {
		return 0, false
	}
	return counted(r.Counters.Client, "frames_dropped") + counted(r.Counters.Server, "frames_dropped",
		"packets_refused"), true
}

// share is how many of 1000 frames found no room.
func share(r *reports.Result) (float64, bool) {
	n, ok := dropped(r)
	if !ok {
		return 0, false
	}
	sent := counted(r.Counters.Client, "tx_frames") + counted(r.Counters.Server, "tx_frames")
	return n / max(n+sent, 1) * 1000, true
}

// threadOf is the CPU that the second thread of a model had of one process: that for
// packets (c1), or that receives and places (c3). It counts whether it found anything or not.
func threadOf(side func(*reports.Counters) []reports.DeviceCounters) figure {
	return func(r *reports.Result) (float64, bool) {
		if r.Counters == nil {
			return 0, false
		}
		return counted(side(r.Counters), "packet_thread_usec", "receive_thread_usec") / 1e6, true
	}
}

// cpuOf is the CPU seconds of one process.
func cpuOf(seconds func(*reports.CPU) float64) figure {
	return func(r *reports.Result) (float64, bool) {
		if r.CPU == nil {
			return 0, false
		}
		return seconds(r.CPU), true
	}
}

// models is a set of threading models against application work.
func (m measures) models(w io.Writer, set, title string) {
	keys := m.keys(func(k key) bool { return k.set == set })
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s: a model that has two busy threads a process needs four CPUs for both sides; here are %d\n",
		title, m.cpus(set))
	fmt.Fprintf(w, "%-44s %-10s %8s %10s %12s %12s %10s %10s %12s %10s %12s %10s\n", "model", "workload", "#bytes",
		"app work", "p50[usec]", "Mb/s", "dropped", "per 1000", "CPU s send", "of thread", "CPU s recv", "of thread")
	for _, k := range keys {
		name := k.stack
		if k.stack == raw {
			name = "iwarp(stack=raw,link=shm,threads=c2)"
		}
		fmt.Fprintf(w, "%-44s %-10s %8d %10s %12s %12s %10s %10s %12s %10s %12s %10s\n", name, k.workload, k.size,
			fmt.Sprintf("%d us", k.work/1000), show(m.all(k, p50), "%.2f"), show(m.all(k, mbits), "%.0f"),
			show(m.all(k, dropped), "%.0f"), show(m.all(k, share), "%.2f"),
			show(m.all(k, cpuOf(func(c *reports.CPU) float64 { return c.ClientSeconds })), "%.2f"),
			show(m.all(k, threadOf(func(c *reports.Counters) []reports.DeviceCounters { return c.Client })), "%.2f"),
			show(m.all(k, cpuOf(func(c *reports.CPU) float64 { return c.ServerSeconds })), "%.2f"),
			show(m.all(k, threadOf(func(c *reports.Counters) []reports.DeviceCounters { return c.Server })), "%.2f"))
	}
}

func (m measures) threads(w io.Writer) { m.models(w, "threads", "threading models") }

// drops is what a small ring drops while the receiver works.
func (m measures) drops(w io.Writer) {
	m.models(w, "drops", "frames that rings of 64 drop, of two connections whose windows are 90, while the receiver "+
		"works on each message")
}

// references is sending by reference beside copying, by one library, and beside copying where a
// request waits for the peer's stack as well.
func (m measures) references(w io.Writer) {
	keys := m.keys(func(k key) bool { return (k.set == "zero" || k.set == "zeroxdp") && k.workload == "latency" })
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(w, "\nsending by reference: lwIP built for it, in all rows; CPU seconds are both sides', of the "+
		"streams\n")
	fmt.Fprintf(w, "%-52s %8s %12s %16s %10s\n", "stack", "#bytes", "p50[usec]", "Mb/s depth 16", "CPU s/GB")
	for _, k := range keys {
		t := k
		t.workload, t.depth = "throughput", 16
		fmt.Fprintf(w, "%-52s %8d %12s %16s %10s\n", k.stack, k.size, show(m.all(k, p50), "%.2f"),
			show(m.all(t, mbits), "%.0f"), show(m.all(t, secondsPerGB), "%.2f"))
	}
}

// secondsPerGB is the CPU time of both sides for 10^9 octets of payload.
func secondsPerGB(r *reports.Result) (float64, bool) {
	if r.CPU == nil || payload(r) == 0 {
		return 0, false
	}
	return (r.CPU.ClientSeconds + r.CPU.ServerSeconds) / payload(r) * 1e9, true
}

// widths is long messages by what a packet may carry.
func (m measures) widths(w io.Writer) {
	keys := m.keys(func(k key) bool { return k.set == "wide1460" || k.set == "wide8960" })
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(w, "\nlarger packets and windows; wide: lwIP built from its source with a window of 1 MiB and "+
		"segments of that size\n")
	fmt.Fprintf(w, "%-10s %-52s %-10s %8s %6s %12s %12s\n", "library", "stack", "workload", "#bytes", "depth",
		"p50[usec]", "Mb/s")
	for _, k := range keys {
		fmt.Fprintf(w, "%-10s %-52s %-10s %8d %6d %12s %12s\n", k.set, k.stack, k.workload, k.size, k.depth,
			show(m.all(k, p50), "%.2f"), show(m.all(k, mbits), "%.0f"))
	}
}

// cpus is how many CPUs the processes of a set had, 0 where nothing says so.
func (m measures) cpus(set string) int {
	for _, k := range m.keys(func(k key) bool { return k.set == set }) {
		for _, r := range m[k] {
			if n, ok := r.Parameters[machineCPUs].(int); ok {
				return n
			}
		}
	}
	return 0
}

// losses is throughput by what the impairment of the link loses.
func (m measures) losses(w io.Writer) {
	keys := m.keys(func(k key) bool { return k.set == "loss" && k.workload == "throughput" })
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(w, "\nloss by the seeded impairment of the link, every byte compared\n")
	for _, k := range keys {
		fmt.Fprintf(w, "%-60s %8d bytes %10s Mb/s, %s frames lost\n", k.stack, k.size, show(m.all(k, mbits), "%.1f"),
			show(m.all(k, func(r *reports.Result) (float64, bool) {
				if r.Counters == nil {
					return 0, false
				}
				return counted(r.Counters.Client, "frames_lost") + counted(r.Counters.Server, "frames_lost"), true
			}), "%.0f"))
	}
}
