package verbs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// deviceAddrs are the IP addresses by which rdma_cm reaches a port: those of the network interfaces behind its GIDs,
// global before link-local. iWARP ports show the interface's MAC in their GID, and no interface on older kernels.
func deviceAddrs(gids []gidEntry) []netip.Addr {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var all []netip.Addr
	for i := range interfaces {
		if behind(gids, interfaces[i].Name, interfaces[i].HardwareAddr) {
			addrs, _ := interfaces[i].Addrs() // an interface that went away has none
			all = append(all, hostAddrs(addrs, interfaces[i].Name)...)
		}
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int {
		return pick(a.IsLinkLocalUnicast(), 1, 0) - pick(b.IsLinkLocalUnicast(), 1, 0)
	})
	return all
}

func behind(gids []gidEntry, name string, mac net.HardwareAddr) bool {
	return slices.ContainsFunc(gids, func(e gidEntry) bool {
		if e.NetDev != "" {
			return e.NetDev == name
		}
		return len(mac) == 6 && [6]byte(e.GID[:6]) == [6]byte(mac)
	})
}

func hostAddrs(addrs []net.Addr, zone string) []netip.Addr {
	var out []netip.Addr
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		ip := p.Addr().Unmap()
		if ip.Is6() && ip.IsLinkLocalUnicast() {
			ip = ip.WithZone(zone)
		}
		out = append(out, ip)
	}
	return out
}

// bindAddr is where rdma_cm listens when addr is asked for: there, or, where that address is not one of the device's
// own (loopback, or the network over which the two sides arranged their run), at the same port of the device's first
// address of that family. The wildcard stays: rdma_cm then takes any device.
func bindAddr(addr string, own []netip.Addr) string {
	host, port, err := net.SplitHostPort(addr)
	ip, perr := netip.ParseAddr(host)
	if err != nil || perr != nil || ip.IsUnspecified() || len(own) == 0 || slices.Contains(own, ip.Unmap()) {
		return addr
	}
	best := own[0]
	if i := slices.IndexFunc(own, func(o netip.Addr) bool { return o.Is4() == ip.Unmap().Is4() }); i >= 0 {
		best = own[i]
	}
	return net.JoinHostPort(best.String(), port)
}

// Bits of ibv_query_device_ex(3): of general_caps the first, of rc_odp_caps the others.
const (
	odpSupport = 1 << 0
	odpSend    = 1 << 0
	odpRecv    = 1 << 1
	odpWrite   = 1 << 2
	odpRead    = 1 << 3
	odpAtomic  = 1 << 4
	odpSRQRecv = 1 << 5
)

// mayFault reports whether pages may be missing under each operation of a reliable connection
// that the device has: Caps has one word for all of them.
func mayFault(general uint64, rc uint32, caps rdma.Caps) bool {
	need := uint32(0)
	for _, f := range []struct {
		bits uint32
		used bool
	}{
		{odpSend | odpRecv, caps.Ops.Has(rdma.OpSend)},
		{odpWrite, caps.Ops.Has(rdma.OpWrite)},
		{odpRead, caps.Ops.Has(rdma.OpRead)},
		{odpAtomic, caps.Ops.Has(rdma.OpFetchAdd)},
		{odpSRQRecv, caps.Features.Has(rdma.FeatSRQ)},
	} {
		if f.used {
			need |= f.bits
		}
	}
	return general&odpSupport != 0 && rc&need == need
}

// copiesUpwards reports whether the kernel's memcpy, with which software devices place what arrives, stores the last
// byte last. On x86-64 it does where it is one string instruction: with rep_good or erms, and since Linux 6.4 with fsrm
// only. Else memcpy_orig of arch/x86/lib/memcpy_64.S begins at the end for about half of all addresses. Nothing is
// known of other processors.
func copiesUpwards(arch, release, cpuinfo string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || arch != "amd64" {
		return false
	}
	flags := ""
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			flags = " " + strings.TrimSpace(value) + " "
			break
		}
	}
	has := func(flag string) bool { return strings.Contains(flags, " "+flag+" ") }
	if major > 6 || major == 6 && minor >= 4 {
		return has("fsrm")
	}
	return has("rep_good") || has("erms")
}

func placesUpwards() bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return false
	}
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && copiesUpwards(runtime.GOARCH, string(release), string(cpuinfo))
}

const sysRoot = "/sys"

func noDevice() error {
	dir := filepath.Join(sysRoot, "class/infiniband")
	cause := "not run: this machine has no RDMA device"
	try := "a software one (modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0), or --transport iwarp"
	entries, err := os.ReadDir(dir)
	switch {
	case len(entries) > 0:
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		cause = fmt.Sprintf("not run: the kernel has %s, but libibverbs opens none", list(names))
		try = "apt install ibverbs-providers, or dnf install libibverbs"
		if nodes, _ := filepath.Glob("/dev/infiniband/uverbs*"); len(nodes) == 0 {
			cause = fmt.Sprintf("not run: the kernel has %s, but /dev/infiniband has no uverbs", list(names))
			try = "modprobe ib_uverbs, or in a container --device /dev/infiniband"
		}
	case err != nil:
		cause += " (no " + dir + ")"
	}
	return &rdma.AdviceError{Err: &kindError{rdma.ErrNoDevice, errors.New(cause)}, Try: try}
}
