package disturbance

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/reports"
)

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
