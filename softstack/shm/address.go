package shm

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// local reports whether a host is this machine.
func local(host string) bool {
	if host == "" || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		ips, err := net.LookupIP(host)
		if err != nil || len(ips) == 0 {
			return false
		}
		ip = ips[0]
	}
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}

// Six reports whether a host is an address of IPv6. A name is not, nor is no host at all.
func Six(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Is6() && !ip.Is4In6()
}

// Target takes "host:port" apart. Error: another machine, or no port.
func Target(addr string) (host, port string, n uint16, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil {
		return "", "", 0, err
	}
	if !local(host) {
		return "", "", 0, fmt.Errorf("%s is another machine: link=shm joins processes of one", host)
	}
	v, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", "", 0, fmt.Errorf("port %q", port)
	}
	return host, port, uint16(v), nil
}
