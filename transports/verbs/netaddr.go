package verbs

import (
	"net"
	"net/netip"
	"slices"
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
