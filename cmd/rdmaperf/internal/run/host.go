package run

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// splitHost reads the HOST of a command line: a name or an address, with a port or without, in brackets where needed:
// node7:19000, fe80::1%eth0, [::1]:19000. port is that of --port; given: the user chose it.
func splitHost(arg string, port int, given bool) (string, int, error) {
	host, own, err := arg, "", error(nil)
	switch {
	case strings.Contains(arg, "://") || strings.ContainsAny(arg, "/@ "):
		return "", 0, fmt.Errorf("HOST %q: want a name or an address, and a port at most", arg)
	case strings.HasPrefix(arg, "[") && strings.HasSuffix(arg, "]"):
		host = arg[1 : len(arg)-1]
	case strings.HasPrefix(arg, "[") || strings.Count(arg, ":") == 1:
		if host, own, err = net.SplitHostPort(arg); err != nil {
			return "", 0, fmt.Errorf("HOST %q: want HOST, HOST:PORT or [ADDRESS]:PORT", arg)
		}
	}
	if host == "" {
		return "", 0, fmt.Errorf("HOST %q is empty", arg)
	}
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", 0, fmt.Errorf(
				"HOST %q is no address: a port behind one of IPv6 needs brackets, [::1]:18515", arg)
		}
	}
	if host == arg || own == "" && strings.HasSuffix(arg, "]") {
		return host, port, nil
	}
	n, err := strconv.ParseUint(own, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("HOST %q: port %q: want 1 to 65535", arg, own)
	}
	if given && int(n) != port {
		return "", 0, fmt.Errorf("HOST %q and --port %d name two ports", arg, port)
	}
	return host, int(n), nil
}
