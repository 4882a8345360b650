package devices

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Counters reads what a device has counted since it came up: of one port, or with port 0 of all its ports, and what it
// counts for the device as a whole (port 0 in the answer). A device that is not there has none.
//
// The files are those of Documentation/ABI/stable/sysfs-class-infiniband: counters (IBTA 16.1.3.5; port_xmit_data and
// port_rcv_data are in units of four bytes) and hw_counters, whose names are the driver's. rdmamap reads the same
// directories, but answers 0 for a counter that cannot be read, which would look like a change of its whole value, and
// takes the caching time in hw_counters/lifespan for one.
func (h Host) Counters(device string, port int) []reports.DeviceCounters {
	if device == "" || strings.ContainsAny(device, "/\\") || device[0] == '.' {
		return nil // a name, never a path
	}
	dir := path.Join(classDir, device)
	var out []reports.DeviceCounters
	add := func(port int, dirs ...string) {
		c := reports.DeviceCounters{Device: device, Port: port, Counters: map[string]int64{}}
		for _, d := range dirs {
			h.countersIn(d, c.Counters)
		}
		if len(c.Counters) > 0 {
			out = append(out, c)
		}
	}
	add(0, path.Join(dir, "hw_counters"))
	ports := dirNames(h.Root, path.Join(dir, "ports"))
	slices.SortFunc(ports, compareNames)
	for _, p := range ports {
		if n, err := strconv.Atoi(p); err == nil && n > 0 && (port == 0 || port == n) {
			in := path.Join(dir, "ports", p)
			add(n, path.Join(in, "counters"), path.Join(in, "hw_counters"))
		}
	}
	return out
}

// countersIn reads one directory. What is not a number stays out: unsupported counters answer with an error or "N/A".
func (h Host) countersIn(dir string, to map[string]int64) {
	for _, name := range dirNames(h.Root, dir) {
		if name == "lifespan" {
			continue
		}
		if v, err := strconv.ParseUint(h.read(dir, name), 10, 64); err == nil {
			to[name] = int64(v) // differences come out right in two's complement
		}
	}
}

// tcpCounters are those of the kernel's TCP that tell of a bad path: segments sent again, timeouts, damaged segments
// (RFC 1213 tcpRetransSegs and tcpInErrs; Linux Documentation/networking/snmp_counter.rst).
var tcpCounters = []string{"RetransSegs", "InErrs", "InCsumErrors", "TCPTimeouts", "TCPLostRetransmit",
	"TCPSpuriousRTOs"}

// TCPDevice stands for the kernel's TCP where a device would.
const TCPDevice = "kernel TCP (all connections)"

// TCPCounters reads the kernel's TCP counters. They are of the network namespace
// that this process is in, not of one connection.
func (h Host) TCPCounters() []reports.DeviceCounters {
	c := reports.DeviceCounters{Device: TCPDevice, Counters: map[string]int64{}}
	for file, protocol := range map[string]string{"snmp": "Tcp", "netstat": "TcpExt"} {
		for name, v := range parseNetCounters(h.read("proc/net", file), protocol) {
			if slices.Contains(tcpCounters, name) {
				c.Counters[name] = v
			}
		}
	}
	if len(c.Counters) == 0 {
		return nil
	}
	return []reports.DeviceCounters{c}
}

// parseNetCounters reads one protocol of /proc/net/snmp or netstat: a line of names
// and a line of values, both behind the protocol and a colon.
func parseNetCounters(text, protocol string) map[string]int64 {
	out := map[string]int64{}
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != protocol+":" {
			continue
		}
		if names == nil {
			names = fields[1:]
			continue
		}
		for i, f := range fields[1:] {
			if v, err := strconv.ParseInt(f, 10, 64); err == nil && i < len(names) {
				out[names[i]] = v
			}
		}
		names = nil
	}
	return out
}
