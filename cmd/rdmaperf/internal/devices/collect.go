package devices

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
)

// classDir is where the RDMA core shows its devices (Documentation/ABI/stable/sysfs-class-infiniband).
const classDir = "sys/class/infiniband"

// Collect reads everything about the host's devices; soft is passed through. What cannot be read stays empty, and an
// empty list has its reason.
func Collect(h Host, soft []Soft) Report {
	r := Report{Devices: []Device{}, Soft: soft}
	links, linkErr := h.Links()
	sysNames := append(h.Names(), dirNames(h.Root, classDir)...)
	names := map[string]bool{}
	for _, n := range sysNames {
		names[n] = true
	}
	for _, l := range links {
		if !names[l.Name] {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is known to RDMA netlink but not to /%s: is /sys mounted here?",
				l.Name, classDir))
		}
		names[l.Name] = true
	}
	if linkErr != nil && len(names) > 0 {
		r.Notes = append(r.Notes, "RDMA netlink: "+linkErr.Error())
	}
	for _, name := range slices.SortedFunc(maps.Keys(names), compareNames) {
		r.Devices = append(r.Devices, h.device(name, links))
	}
	if len(r.Devices) == 0 {
		r.Reason, r.Hints = h.why(linkErr)
		return r
	}
	h.mapNetDevs(r.Devices)
	if note := h.addVerbs(r.Devices); note != "" {
		r.Notes = append(r.Notes, note)
	}
	return r
}

// device reads one device: sysfs first, netlink where sysfs says nothing.
func (h Host) device(name string, links []netlink.RdmaLinkAttrs) Device {
	dir := path.Join(classDir, name)
	d := Device{
		Name:         name,
		NodeType:     afterNumber(h.read(dir, "node_type")),
		Firmware:     h.read(dir, "fw_ver"),
		NodeGUID:     h.read(dir, "node_guid"),
		SysImageGUID: h.read(dir, "sys_image_guid"),
		Driver:       path.Base(h.readLink(dir, "device/driver")),
		Software:     strings.Contains(h.readLink(dir, ""), "/virtual/"),
		CharDevices:  h.CharDevices(name),
		PCIeSpeed:    h.read(path.Join(dir, "device"), "current_link_speed"),
		Ports:        []Port{},
	}
	d.PCIeWidth, _ = strconv.Atoi(h.read(path.Join(dir, "device"), "current_link_width")) // 0: no slot
	if d.Driver == "." {
		d.Driver = h.softDriver(dir, &d)
	}
	ports := append(h.Ports(name), dirNames(h.Root, path.Join(dir, "ports"))...)
	for _, l := range links {
		if l.Name != name {
			continue
		}
		d.Firmware = cmp.Or(d.Firmware, l.FirmwareVersion)
		d.NodeGUID = cmp.Or(d.NodeGUID, l.NodeGuid)
		d.SysImageGUID = cmp.Or(d.SysImageGUID, l.SysImageGuid)
		if len(ports) == 0 {
			for p := range l.NumPorts {
				ports = append(ports, strconv.Itoa(int(p)+1)) // ports count from 1 on everything but a switch
			}
		}
	}
	slices.Sort(d.CharDevices)
	slices.SortFunc(ports, compareNames)
	for _, p := range slices.Compact(ports) {
		if number, err := strconv.Atoi(p); err == nil {
			d.Ports = append(d.Ports, h.port(dir, number, d.NodeType))
		}
	}
	return d
}

func (h Host) port(deviceDir string, number int, nodeType string) Port {
	dir := path.Join(deviceDir, "ports", strconv.Itoa(number))
	p := Port{
		Number:    number,
		State:     afterNumber(h.read(dir, "state")),
		PhysState: afterNumber(h.read(dir, "phys_state")),
		Rate:      h.read(dir, "rate"),
		LinkLayer: h.read(dir, "link_layer"),
		GIDs:      []GID{},
	}
	if p.LinkLayer == "InfiniBand" {
		p.LID = h.read(dir, "lid")
	}
	entries := dirNames(h.Root, path.Join(dir, "gids"))
	slices.SortFunc(entries, compareNames)
	for _, e := range entries {
		index, err := strconv.Atoi(e)
		gid, ok := parseGID(h.read(dir, "gids/"+e))
		if err != nil || !ok {
			continue
		}
		p.GIDs = append(p.GIDs, GID{
			Index: index, GID: gid,
			Type:   gidType(h.read(dir, "gid_attrs/types/"+e), nodeType, p.LinkLayer),
			NetDev: h.read(dir, "gid_attrs/ndevs/"+e),
		})
	}
	return p
}

// mapNetDevs finds the interfaces behind each device, in steps from the most to the least certain.
func (h Host) mapNetDevs(devs []Device) {
	claimed := map[string]bool{}
	claim := func(d *Device, netdev string) {
		claimed[netdev] = true
		if !slices.Contains(d.NetDevs, netdev) {
			d.NetDevs = append(d.NetDevs, netdev)
		}
	}
	for i := range devs {
		d, dir := &devs[i], path.Join(classDir, devs[i].Name)
		for _, p := range d.Ports {
			for _, g := range p.GIDs {
				if g.NetDev != "" {
					claim(d, g.NetDev)
				}
			}
		}
		if parent := h.read(dir, "parent"); parent != "" { // rxe's lower interface
			claim(d, parent)
		}
		if len(d.NetDevs) == 0 { // the interfaces of the same PCI function
			for _, n := range dirNames(h.Root, path.Join(dir, "device/net")) {
				claim(d, n)
			}
		}
	}
	defer func() {
		for i := range devs {
			slices.SortFunc(devs[i].NetDevs, compareNames)
			devs[i].NetDevMTU = h.mtus(devs[i].NetDevs)
		}
	}()
	netdevs, err := h.NetDevs()
	if err != nil {
		return // the rest is a guess that needs the list
	}
	for i := range devs {
		for _, n := range netdevs {
			if len(devs[i].NetDevs) == 0 && devs[i].hasMAC(n.HardwareAddr) {
				claim(&devs[i], n.Name)
			}
		}
	}
	for _, n := range netdevs {
		if claimed[n.Name] || n.Flags&net.FlagLoopback != 0 { // rdmamap knows no loopback
			continue
		}
		name, err := h.ForNetDev(n.Name)
		if err != nil {
			continue
		}
		for i := range devs {
			if devs[i].Name == name {
				claim(&devs[i], n.Name)
			}
		}
	}
}

// hasMAC tells whether an iWARP device is on the interface with this address, with which its GIDs start (siw_query_gid
// in siw_verbs.c).
func (d *Device) hasMAC(mac net.HardwareAddr) bool {
	if d.NodeType != "RNIC" || len(mac) != 6 {
		return false
	}
	for _, p := range d.Ports {
		for _, g := range p.GIDs {
			if a, err := netip.ParseAddr(g.GID); err == nil && slices.Equal(a.AsSlice()[:6], mac) {
				return true
			}
		}
	}
	return false
}

func (h Host) mtus(netdevs []string) map[string]int {
	var mtus map[string]int
	for _, n := range netdevs {
		if mtu, err := strconv.Atoi(h.read(path.Join("sys/class/net", n), "mtu")); err == nil {
			if mtus == nil {
				mtus = map[string]int{}
			}
			mtus[n] = mtu
		}
	}
	return mtus
}

// softDriver is the module of a device without a bus: siw makes RNICs, and rxe says its interface.
func (h Host) softDriver(dir string, d *Device) string {
	switch {
	case h.read(dir, "parent") != "":
		d.Software = true // older kernels put rxe below the adapter's bus
		return "rdma_rxe"
	case d.Software && d.NodeType == "RNIC":
		return "siw"
	}
	return ""
}

// read is empty for what cannot be read: unused GID entries answer reads with EINVAL.
func (h Host) read(dir, name string) string {
	b, err := fs.ReadFile(h.Root, path.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (h Host) readLink(dir, name string) string {
	target, _ := fs.ReadLink(h.Root, path.Join(dir, name))
	return target
}

func dirNames(root fs.FS, dir string) []string {
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
