package devices

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Lack is something without which RDMA does not work here, or works slowly.
type Lack struct {
	What     string
	Command  string // that mends it on a host; "": none
	Manifest string // the lines of a pod's manifest that do; "": none
}

// leastMemlock is what the windows of a run of a few queue pairs need, bytes.
const leastMemlock = 256 << 20

// Lacks are those of a host whose devices are known. Kernel verbs need all of them; software stacks need none.
func (h Host) Lacks(r *Report, e *reports.Environment) (all []Lack) {
	add := func(what, command, manifest string) { all = append(all, Lack{what, command, manifest}) }
	if len(r.Devices) == 0 {
		add("no RDMA device: "+r.Reason, append(r.Hints, "")[0], "resources: {limits: {rdma/hca: 1}}")
	}
	active := false
	for _, d := range r.Devices {
		if len(d.CharDevices) == 0 || !slices.ContainsFunc(d.CharDevices, h.exists) {
			add(fmt.Sprintf("%s has no device file in /dev/infiniband", d.Name), "modprobe ib_uverbs, or docker run "+
				"--device=/dev/infiniband", "resources: {limits: {rdma/hca: 1}}")
		}
		for _, p := range d.Ports {
			name := fmt.Sprintf("port %d of %s", p.Number, d.Name)
			netdev := append(d.NetDevs, "INTERFACE")[0]
			switch {
			case p.State != "ACTIVE":
				add(fmt.Sprintf("%s is %s", name, p.State), "ip link set "+netdev+" up", "")
			case len(p.GIDs) == 0:
				add(name+" has no GID", "ip address add ADDRESS/24 dev "+netdev,
					"hostNetwork: true, or a network of its own for the pod (Multus)")
			default:
				active = true
			}
		}
	}
	if len(r.Devices) > 0 && !h.exists("/dev/infiniband/rdma_cm") {
		add("rdma_cm has no device file, which iWARP devices and -R need", "modprobe rdma_ucm", "")
	}
	if len(r.Devices) > 0 && !active {
		add("no port can be used", "", "")
	}
	if m := e.MemlockBytes; m != nil && *m >= 0 && *m < leastMemlock {
		add(fmt.Sprintf("the limit of locked memory is %s, so that little can be registered", reports.FormatSize(*m)),
			"ulimit -l unlimited; for good: '* - memlock unlimited' in /etc/security/limits.conf",
			"securityContext: {capabilities: {add: [IPC_LOCK]}}")
	}
	slow := slices.DeleteFunc(slices.Clone(e.Governors), func(g string) bool { return g == "performance" })
	if len(slow) > 0 {
		add("the CPU governor is "+strings.Join(slow, ", ")+", which makes latencies longer",
			"cpupower frequency-set -g performance", "")
	}
	return all
}

func (h Host) exists(name string) bool {
	_, err := fs.Stat(h.Root, strings.TrimPrefix(path.Clean(name), "/"))
	return !errors.Is(err, fs.ErrNotExist)
}

// Taken is the GID that a connection to a peer takes, and why; false for a port without. As the verbs provider, it
// prefers RoCE v2, then the family of the peer, then global, then the lowest index; InfiniBand takes the first.
func (p *Port) Taken(peer netip.Addr) (index int, why string, ok bool) {
	if len(p.GIDs) == 0 {
		return 0, "", false
	}
	want4 := !peer.IsValid() || peer.Unmap().Is4()
	rank := func(g *GID) []int {
		a, _ := netip.ParseAddr(g.GID) // a GID is an address
		a = a.Unmap()
		return []int{yes(g.Type != "RoCE v2"), yes(a.Is4() != want4), yes(a.IsLinkLocalUnicast()), g.Index}
	}
	if p.LinkLayer == "InfiniBand" {
		rank = func(g *GID) []int { return []int{g.Index} }
	}
	best := slices.MinFunc(p.GIDs, func(a, b GID) int { return slices.Compare(rank(&a), rank(&b)) })
	r := rank(&best)
	if len(r) == 1 {
		return best.Index, "the first", true
	}
	reasons := []string{best.Type}
	if r[1] == 0 {
		reasons = append(reasons, "family of the peer")
	} else {
		reasons = append(reasons, "no GID has the family of the peer: no path")
	}
	if r[2] == 0 {
		reasons = append(reasons, "global")
	} else {
		reasons = append(reasons, "link-local, for want of a global one")
	}
	return best.Index, strings.Join(reasons, ", "), true
}

func yes(is bool) int {
	if is {
		return 1
	}
	return 0
}

// WriteDoctor prints what is lacking, each with what mends it, and the GIDs with the one that is taken.
func WriteDoctor(w io.Writer, r *Report, lacks []Lack, peer netip.Addr) error {
	var b strings.Builder
	if len(lacks) == 0 {
		b.WriteString("Nothing is lacking.\n")
	}
	for _, l := range lacks {
		fmt.Fprintln(&b, view.Printable(l.What))
		if l.Command != "" {
			fmt.Fprintln(&b, "  on a host: ", view.Printable(l.Command))
		}
		if l.Manifest != "" {
			fmt.Fprintln(&b, "  in a pod:  ", l.Manifest)
		}
	}
	for i := range r.Devices {
		for k := range r.Devices[i].Ports {
			p := &r.Devices[i].Ports[k]
			taken, why, ok := p.Taken(peer)
			if !ok || r.Devices[i].NodeType == "RNIC" { // iWARP goes by addresses
				continue
			}
			fmt.Fprintf(&b, "\nGIDs of %s port %d:\n", r.Devices[i].Name, p.Number)
			for _, g := range p.GIDs {
				mark := ""
				if g.Index == taken {
					mark = "  <- taken: " + why
				}
				fmt.Fprintf(&b, "  %3d  %-39s  %-8s  %s%s\n", g.Index, g.GID, g.Type, view.Printable(g.NetDev), mark)
			}
		}
	}
	if len(r.Devices) == 0 {
		b.WriteString("\nWithout a device, these work: --transport iwarp, tcp and what rdmaperf devices lists.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

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
