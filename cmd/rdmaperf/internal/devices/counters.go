package devices

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Counters reads what a device has counted since it came up, for one port, or with port 0 for all, and for the device
// as a whole. A device that is not there has none (Documentation/ABI/stable/sysfs-class-infiniband; IBTA 16.1.3.5).
// rdmamap answers 0 for a counter that cannot be read, and takes the caching time in hw_counters/lifespan for one.
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

// tcpCounters tell of a bad path (RFC 1213; Linux Documentation/networking/snmp_counter.rst).
var tcpCounters = []string{"RetransSegs", "InErrs", "InCsumErrors", "TCPTimeouts", "TCPLostRetransmit",
	"TCPSpuriousRTOs"}

// TCPDevice stands for the kernel's TCP where a device would.
const TCPDevice = "kernel TCP (all connections)"

// TCPCounters reads the kernel's TCP counters, which are of the whole network namespace.
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

// parseNetCounters reads one protocol of /proc/net/snmp or netstat: a line of names and a line of values.
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
