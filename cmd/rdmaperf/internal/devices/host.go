package devices

import (
	"cmp"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Mellanox/rdmamap"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

const netlinkTimeout = 2 * time.Second

// Host is where the facts come from.
type Host struct {
	// Root is the root of the file system; sys, proc and lib are read.
	Root fs.FS
	// Links lists devices through RDMA netlink.
	Links func() ([]netlink.RdmaLinkAttrs, error)
	// Names, Ports, CharDevices and ForNetDev are rdmamap's answers.
	Names       func() []string
	Ports       func(device string) []string
	CharDevices func(device string) []string
	ForNetDev   func(netdev string) (device string, err error)
	// Verbs lists the devices that kernel verbs can open; nil where nobody asks.
	Verbs func() ([]verbs.DeviceInfo, error)
	// NetDevs lists the network interfaces.
	NetDevs func() ([]net.Interface, error)
}

// Local is this machine.
func Local() Host {
	return Host{
		Root:        os.DirFS("/"),
		Links:       rdmaLinks,
		Names:       rdmamap.GetRdmaDeviceList,
		Ports:       rdmamap.GetPorts,
		CharDevices: rdmamap.GetRdmaCharDevices,
		ForNetDev:   rdmamap.GetRdmaDeviceForNetdevice,
		Verbs:       verbs.List,
		NetDevs:     net.Interfaces,
	}
}

// rdmaLinks has a handle of its own for its timeout.
func rdmaLinks() ([]netlink.RdmaLinkAttrs, error) {
	h, err := netlink.NewHandle(unix.NETLINK_RDMA)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if err := h.SetSocketTimeout(netlinkTimeout); err != nil {
		return nil, err
	}
	links, err := h.RdmaLinkList()
	attrs := make([]netlink.RdmaLinkAttrs, 0, len(links))
	for _, l := range links {
		attrs = append(attrs, l.Attrs)
	}
	return attrs, err
}

// addVerbs fills in what only verbs know; note says of which devices they know nothing.
func (h Host) addVerbs(devs []Device) (note string) {
	if h.Verbs == nil {
		return ""
	}
	infos, err := h.Verbs()
	if err != nil {
		note = "--transport verbs cannot be used: " + err.Error()
		if try := rdma.Advice(err); try != "" {
			note += "; try " + try
		}
		return note
	}
	var closed []string
	for i := range devs {
		d := &devs[i]
		k := slices.IndexFunc(infos, func(v verbs.DeviceInfo) bool { return v.Name == d.Name })
		if k < 0 {
			closed = append(closed, d.Name)
			continue
		}
		d.add(&infos[k])
	}
	if closed != nil {
		note = fmt.Sprintf("libibverbs has no provider for %q: --transport verbs cannot use it", closed)
	}
	return note
}

func (d *Device) add(v *verbs.DeviceInfo) {
	l := &v.Limits
	d.Limits = &Limits{QPs: l.QPs, QPWR: l.QPWR, SGE: l.SGE, CQs: l.CQs, CQE: l.CQE, MRs: l.MRs, MRSize: l.MRSize,
		SRQs: l.SRQs, SRQWR: l.SRQWR, RDAtom: l.RDAtom, InitRDAtom: l.InitRDAtom, Atomics: l.Atomics}
	d.Firmware = cmp.Or(d.Firmware, v.Firmware)
	for i := range d.Ports {
		for _, p := range v.Ports {
			if p.Number == d.Ports[i].Number {
				d.Ports[i].MTU, d.Ports[i].MaxMsg = p.MTU, p.MaxMsg
			}
		}
	}
}

func afterNumber(s string) string {
	if _, word, found := strings.Cut(s, ":"); found {
		return strings.TrimSpace(word)
	}
	return s
}

// parseGID shortens a GID as an IPv6 address; ok is false for an empty entry.
func parseGID(s string) (gid string, ok bool) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() {
		return "", false
	}
	return a.String(), true
}

// gidType corrects the kernel's word, which is the same for InfiniBand, RoCE v1 and iWARP (ib_gid_type in ib_verbs.h).
func gidType(raw, nodeType, linkLayer string) string {
	switch {
	case nodeType == "RNIC":
		return "iWARP"
	case raw != "IB/RoCE v1":
		return raw
	case linkLayer == "InfiniBand":
		return "IB"
	default:
		return "RoCE v1"
	}
}

// compareNames orders names with their numbers by value: mlx5_2 before mlx5_10.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		na, nb := leadingDigits(a), leadingDigits(b)
		if na == 0 || nb == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(na, nb)); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Octets around the payload of a packet. RoCE v2: preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap
// 12 (IBTA annex 17, IEEE 802.3). InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2 (IBTA 5.2).
const (
	aroundRoCE       = 82
	aroundInfiniBand = 26

	// leastMTU is taken where nobody says the MTU of a path.
	leastMTU = 1024

	// pcieShare of a PCIe link is payload: packets of 256 bytes have 24 around them (PCIe base specification 2.2).
	pcieShare = 256. / (256 + 24)
)

// Expected is what a healthy path through a port carries one way, bytes a second, by its link and slot; 0: not known,
// as of software devices and of iWARP.
func (d *Device) Expected(p *Port) float64 {
	text, unit, _ := strings.Cut(p.Rate, " ")
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.HasPrefix(unit, "Gb/sec") || d.Software || d.NodeType == "RNIC" {
		return 0
	}
	mtu, around := float64(max(p.MTU, leastMTU)), aroundRoCE
	if p.MTU > 0 {
		mtu = float64(p.MTU)
	}
	if p.LinkLayer == "InfiniBand" {
		around = aroundInfiniBand
	}
	expected := rate * 1e9 / 8 * mtu / (mtu + float64(around))
	if slot := d.slot(); slot > 0 {
		expected = min(expected, slot)
	}
	return expected
}

func (d *Device) slot() float64 {
	text, _, _ := strings.Cut(d.PCIeSpeed, " ") // "16.0 GT/s PCIe"
	speed, err := strconv.ParseFloat(text, 64)
	if err != nil || d.PCIeWidth == 0 {
		return 0
	}
	coding := 128. / 130
	if speed <= 5 {
		coding = 8. / 10
	}
	return speed * 1e9 / 8 * float64(d.PCIeWidth) * coding * pcieShare
}

// PCIe is the device's link in words, "" where it is not known.
func (d *Device) PCIe() string {
	if d.PCIeSpeed == "" || d.PCIeWidth == 0 {
		return ""
	}
	return fmt.Sprintf("%s x%d", d.PCIeSpeed, d.PCIeWidth)
}
