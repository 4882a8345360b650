package devices

import (
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/Mellanox/rdmamap"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

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
