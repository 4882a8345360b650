package disturbance

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Sockets sums up what the kernel counts of each TCP connection that this process has open (TCP_INFO, tcp(7)): segments
// sent, those sent again, and the time for which there was something to send and the peer's receive window did not let
// it. It costs two system calls and some 2 us for each descriptor, so it is for outside of windows.
//
// Connections of the control channel count as well, and on a server those of other
// clients. A connection that ends between two readings takes its counts along.
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

// stateEstablished is TCP_ESTABLISHED of include/net/tcp_states.h. A listening socket has
// other things where an established one has its counts.
const stateEstablished = 1

// WithSockets is n with the connections of o.
func WithSockets(n, o reports.Noise) reports.Noise {
	n.Sockets, n.Segments, n.Retransmits, n.WindowLimitedNs = o.Sockets, o.Segments, o.Retransmits, o.WindowLimitedNs
	return n
}
