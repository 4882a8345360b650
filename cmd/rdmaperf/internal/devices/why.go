package devices

import (
	"fmt"
	"io/fs"
	"net"
	"path"
	"strings"
)

func (h Host) why(linkErr error) (reason string, hints []string) {
	_, statErr := fs.Stat(h.Root, classDir)
	switch {
	case statErr == nil && linkErr == nil:
		reason = "the kernel's RDMA core is loaded, but no device is registered in this network namespace"
	case statErr == nil:
		reason = fmt.Sprintf("/%s is empty and RDMA netlink answers %q", classDir, linkErr)
	case linkErr == nil:
		reason = fmt.Sprintf("the kernel's RDMA core answers but lists no device, and there is no /%s", classDir)
	default:
		reason = fmt.Sprintf("the kernel's RDMA core is not loaded: there is no /%s, and RDMA netlink answers %q",
			classDir, linkErr)
	}
	netdev := h.anyNetDev()
	release := h.read("proc/sys/kernel", "osrelease")
	shipped, known := h.modules(release)
	for _, m := range []struct{ module, kind, what string }{
		{"rdma_rxe", "rxe", "RoCE v2 in software"},
		{"siw", "siw", "iWARP in software"},
	} {
		if !known || shipped[m.module] {
			hints = append(hints, fmt.Sprintf("%s, as root: modprobe %s && rdma link add %s0 type %s netdev %s", m.what,
				m.module, m.kind, m.kind, netdev))
		}
	}
	if known && len(hints) == 0 {
		hints = append(hints, fmt.Sprintf("kernel %s ships neither rdma_rxe nor siw: install its extra modules "+
			"(Ubuntu: linux-modules-extra-%s) or boot a distribution kernel", release, release))
	}
	return reason, append(hints,
		"an adapter: load its driver, such as modprobe mlx5_ib, irdma, bnxt_re or efa; lspci shows what is fitted")
}

// modules are those of the kernel, built in or loadable; known is false without the lists, as in a container.
func (h Host) modules(release string) (shipped map[string]bool, known bool) {
	shipped = map[string]bool{}
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		text := h.read(path.Join("lib/modules", release), list)
		for line := range strings.Lines(text) {
			file, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			name, _, _ := strings.Cut(path.Base(file), ".ko")
			shipped[strings.ReplaceAll(name, "-", "_")] = true
		}
		known = known || text != ""
	}
	return shipped, known
}

func (h Host) anyNetDev() string {
	netdevs, err := h.NetDevs()
	if err != nil {
		return "eth0"
	}
	for _, n := range netdevs {
		if n.Flags&net.FlagUp != 0 && n.Flags&net.FlagLoopback == 0 && len(n.HardwareAddr) == 6 {
			return n.Name
		}
	}
	return "eth0"
}
