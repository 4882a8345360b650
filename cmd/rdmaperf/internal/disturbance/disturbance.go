// Package disturbance counts what the machine took from the threads of a measurement, and what TCP connections lost.
//
// A Reader is for outside of windows: it opens a few files of proc_pid_task(5) for each thread, some 20 us each. What a
// kernel does not count stays 0. Steal is the whole machine's, in ticks of 10 ms.
package disturbance

import (
	"bytes"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Reader knows the threads. It belongs to one goroutine, and holds no file open between two readings.
type Reader struct {
	root fs.FS
	tids []int
}

// Of returns a reader of threads of this process by their kernel numbers; without any, of all that it has when it is
// read.
func Of(tids ...int) *Reader { return &Reader{os.DirFS("/"), tids} }

// tick is the unit of /proc/stat, USER_HZ, which every architecture of Linux has at 100.
const tick = 10_000_000 // ns

// Read sums up the threads. One that ended meanwhile counts nothing.
func (r *Reader) Read() reports.Noise {
	tids := r.tids
	if len(tids) == 0 {
		entries, _ := fs.ReadDir(r.root, "proc/self/task") // none: nothing is known
		for _, e := range entries {
			if tid, err := strconv.Atoi(e.Name()); err == nil {
				tids = append(tids, tid)
			}
		}
	}
	var n reports.Noise
	for _, tid := range tids {
		r.thread(&n, "proc/self/task/"+strconv.Itoa(tid)+"/")
	}
	n.Threads = len(tids)
	n.StealNs = r.steal()
	return n
}

// Between is what the second reading has more than the first.
func Between(before, after reports.Noise) reports.Noise {
	less := func(a, b int64) int64 { return max(a-b, 0) } // a thread that ended takes its counts along
	return reports.Noise{
		Threads:             after.Threads,
		InvoluntarySwitches: less(after.InvoluntarySwitches, before.InvoluntarySwitches),
		RunQueueWaitNs:      less(after.RunQueueWaitNs, before.RunQueueWaitNs),
		Dispatches:          less(after.Dispatches, before.Dispatches),
		Migrations:          less(after.Migrations, before.Migrations),
		MinorFaults:         less(after.MinorFaults, before.MinorFaults),
		MajorFaults:         less(after.MajorFaults, before.MajorFaults),
		StealNs:             less(after.StealNs, before.StealNs),
		Sockets:             after.Sockets,
		Segments:            less(after.Segments, before.Segments),
		Retransmits:         less(after.Retransmits, before.Retransmits),
		WindowLimitedNs:     less(after.WindowLimitedNs, before.WindowLimitedNs),
	}
}

func (r *Reader) thread(n *reports.Noise, dir string) {
	if f := strings.Fields(r.file(dir + "schedstat")); len(f) >= 3 { // run time, wait, slices
		n.RunQueueWaitNs += number(f[1])
		n.Dispatches += number(f[2])
	}
	// The name may hold anything, so fields count from behind its last parenthesis.
	stat := r.file(dir + "stat")
	if f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(f) > 9 {
		n.MinorFaults += number(f[7])
		n.MajorFaults += number(f[9])
	}
	n.InvoluntarySwitches += value(r.file(dir+"status"), "nonvoluntary_ctxt_switches")
	n.Migrations += value(r.file(dir+"sched"), "se.nr_migrations")
}

// steal is the ninth word of the first line (proc_stat(5)).
func (r *Reader) steal() int64 {
	line, _, _ := strings.Cut(r.file("proc/stat"), "\n")
	if f := strings.Fields(line); len(f) > 8 && f[0] == "cpu" {
		return number(f[8]) * tick
	}
	return 0
}

func (r *Reader) file(name string) string {
	b, _ := fs.ReadFile(r.root, name) // a file that is not there counts nothing
	return string(bytes.TrimSpace(b))
}

func value(text, key string) int64 {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return number(strings.TrimSpace(v))
		}
	}
	return 0
}

func number(s string) int64 {
	v, _ := strconv.ParseInt(s, 10, 64)
	return v
}

// Sockets sums up TCP_INFO (tcp(7)) of each TCP connection that this process has open, those of the control channel
// included. It takes two system calls and some 2 us for each descriptor, so it is for outside of windows.
func Sockets() (n reports.Noise) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return n // nothing is known
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// Of what is no TCP socket, or closed by now, there is no such option.
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil || info.State != stateEstablished {
			continue
		}
		n.Sockets++
		n.Segments += int64(info.Segs_out)
		n.Retransmits += int64(info.Total_retrans)
		n.WindowLimitedNs += int64(info.Rwnd_limited) * 1000 // of µs
	}
	return n
}

// stateEstablished is TCP_ESTABLISHED of include/net/tcp_states.h; a listening socket has no such counts.
const stateEstablished = 1

// WithSockets is n with the connections of o.
func WithSockets(n, o reports.Noise) reports.Noise {
	n.Sockets, n.Segments, n.Retransmits, n.WindowLimitedNs = o.Sockets, o.Segments, o.Retransmits, o.WindowLimitedNs
	return n
}
