package devices

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// file makes one sysfs attribute.
func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }

func link(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

// port adds one port's attributes to a tree.
func port(tree fstest.MapFS, dir, state, phys, rate, layer string) {
	tree[dir+"/state"], tree[dir+"/phys_state"] = file(state), file(phys)
	tree[dir+"/rate"], tree[dir+"/link_layer"] = file(rate), file(layer)
}

// gid adds one GID table entry; attributes left empty do not exist.
func gid(tree fstest.MapFS, dir, index, gid, kind, netdev string) {
	tree[dir+"/gids/"+index] = file(gid)
	if kind != "" {
		tree[dir+"/gid_attrs/types/"+index] = file(kind)
	}
	if netdev != "" {
		tree[dir+"/gid_attrs/ndevs/"+index] = file(netdev)
	}
}

const noGID = "0000:0000:0000:0000:0000:0000:0000:0000"

// lab is a machine with an adapter in InfiniBand mode, a RoCE adapter, and siw and rxe on the RoCE adapter's interface.
func lab() Host {
	const class = "sys/class/infiniband/"
	tree := fstest.MapFS{}

	ib := "sys/devices/pci0000:00/0000:05:00.0/infiniband/mlx5_2"
	tree[class+"mlx5_2"] = link("../../devices/pci0000:00/0000:05:00.0/infiniband/mlx5_2")
	tree[ib+"/node_type"], tree[ib+"/fw_ver"] = file("1: CA"), file("20.41.1000")
	tree[ib+"/node_guid"], tree[ib+"/sys_image_guid"] = file("506b:4b03:00cc:92b8"), file("506b:4b03:00cc:92b8")
	tree[ib+"/device"] = link("../../../0000:05:00.0")
	tree["sys/devices/pci0000:00/0000:05:00.0/driver"] = link("../../../bus/pci/drivers/mlx5_core")
	port(tree, ib+"/ports/1", "4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)", "InfiniBand")
	tree[ib+"/ports/1/lid"] = file("0x4")
	gid(tree, ib+"/ports/1", "0", "fe80:0000:0000:0000:506b:4b03:00cc:92b8", "IB/RoCE v1", "")

	roce := "sys/devices/pci0000:00/0000:06:00.0/infiniband/mlx5_10"
	tree[class+"mlx5_10"] = link("../../devices/pci0000:00/0000:06:00.0/infiniband/mlx5_10")
	tree[roce+"/node_type"] = file("1: CA")
	tree[roce+"/device"] = link("../../../0000:06:00.0")
	tree["sys/devices/pci0000:00/0000:06:00.0/driver"] = link("../../../bus/pci/drivers/mlx5_core")
	tree["sys/devices/pci0000:00/0000:06:00.0/net/enp6s0/mtu"] = file("1500")
	port(tree, roce+"/ports/1", "1: DOWN", "3: Disabled", "40 Gb/sec (4X QDR)", "Ethernet")
	gid(tree, roce+"/ports/1", "0", "fe80:0000:0000:0000:0ac0:ebff:fe4e:1234", "IB/RoCE v1", "enp6s0")
	gid(tree, roce+"/ports/1", "1", "fe80:0000:0000:0000:0ac0:ebff:fe4e:1234", "RoCE v2", "enp6s0")
	gid(tree, roce+"/ports/1", "10", "0000:0000:0000:0000:0000:ffff:c0a8:0102", "RoCE v2", "enp6s0")
	gid(tree, roce+"/ports/1", "2", noGID, "", "")
	gid(tree, roce+"/ports/1", "3", "not a gid", "", "")

	siw := "sys/devices/virtual/infiniband/siw0"
	tree[class+"siw0"] = link("../../devices/virtual/infiniband/siw0")
	tree[siw+"/node_type"] = file("4: RNIC")
	port(tree, siw+"/ports/1", "4: ACTIVE", "5: LinkUp", "2.5 Gb/sec (1X SDR)", "Ethernet")
	gid(tree, siw+"/ports/1", "0", "0ac0:eb4e:1234:0000:0000:0000:0000:0000", "IB/RoCE v1", "")

	tree["sys/class/net/enp6s0/mtu"], tree["sys/class/net/siwdev/mtu"] = file("9000"), file("1500")

	rxe := "sys/devices/virtual/infiniband/rxe0"
	tree[class+"rxe0"] = link("../../devices/virtual/infiniband/rxe0")
	tree[rxe+"/node_type"], tree[rxe+"/parent"] = file("1: CA"), file("enp6s0")
	port(tree, rxe+"/ports/1", "4: ACTIVE", "5: LinkUp", "2.5 Gb/sec (1X SDR)", "Ethernet")

	return Host{
		Root: tree,
		Links: func() ([]netlink.RdmaLinkAttrs, error) {
			return []netlink.RdmaLinkAttrs{
				{Name: "mlx5_10", FirmwareVersion: "16.35.2000", NodeGuid: "08:c0:eb:ff:fe:4e:12:34", NumPorts: 1},
				{Name: "hidden0", NumPorts: 2},
			}, nil
		},
		Verbs: func() ([]verbs.DeviceInfo, error) {
			return []verbs.DeviceInfo{
				{Name: "mlx5_2", Firmware: "ignored", Limits: verbs.Limits{QPs: 262144, QPWR: 32768, SGE: 30,
					CQs: 16777216, CQE: 4194303, MRs: 16777216,
					MRSize: 1 << 63, SRQs: 8388608, SRQWR: 32767, RDAtom: 16, InitRDAtom: 16, Atomics: true},
					Ports: []verbs.PortInfo{{Number: 1, Active: true, LinkLayer: "InfiniBand", MTU: 4096,
						MaxMsg: 1 << 30}}},
				{Name: "siw0", Firmware: "7", Limits: verbs.Limits{QPs: 1 << 16, RDAtom: 128},
					Ports: []verbs.PortInfo{{Number: 1, MTU: 1024, MaxMsg: 1<<32 - 1}, {Number: 7, MTU: 256}}},
			}, nil
		},
		Names: func() []string { return []string{"mlx5_10", "mlx5_2", "rxe0", "siw0"} },
		Ports: func(string) []string { return []string{"1"} },
		CharDevices: func(d string) []string {
			return []string{"/dev/infiniband/uverbs-" + d, "/dev/infiniband/rdma_cm"}
		},
		ForNetDev: func(n string) (string, error) {
			switch n {
			case "ib0":
				return "mlx5_2", nil // by node GUID
			case "siwdev":
				return "siw0", nil
			case "enp6s0":
				return "mlx5_2", nil // wrong on purpose: sysfs already said whose it is
			case "gone0":
				return "", nil // rdmamap's answer when no IPoIB parent matches
			}
			return "", errors.New("rdma device not found for netdev " + n)
		},
		NetDevs: func() ([]net.Interface, error) {
			return []net.Interface{
				{Name: "lo", Flags: net.FlagUp | net.FlagLoopback},
				{Name: "enp6s0", Flags: net.FlagUp}, {Name: "ib0", Flags: net.FlagUp}, {Name: "siwdev"}, {Name: "eth9"},
				{Name: "gone0"},
			}, nil
		},
	}
}

func TestCollectJoinsItsSources(t *testing.T) {
	h := lab()
	h.Ports = func(d string) []string {
		if d == "hidden0" {
			return nil
		}
		return []string{"1"}
	}
	r := Collect(h, nil)
	chars := func(d string) []string { return []string{"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs-" + d} }
	active := Port{Number: 1, State: "ACTIVE", PhysState: "LinkUp", Rate: "2.5 Gb/sec (1X SDR)", LinkLayer: "Ethernet",
		GIDs: []GID{}}
	siwPort := active
	siwPort.MTU, siwPort.MaxMsg = 1024, 1<<32-1
	siwPort.GIDs = []GID{{Index: 0, GID: "ac0:eb4e:1234::", Type: "iWARP"}}
	want := []Device{
		{Name: "hidden0", CharDevices: chars("hidden0"), Ports: []Port{{Number: 1, GIDs: []GID{}},
			{Number: 2, GIDs: []GID{}}}},
		{Name: "mlx5_2", NodeType: "CA", Driver: "mlx5_core", Firmware: "20.41.1000", NodeGUID: "506b:4b03:00cc:92b8",
			SysImageGUID: "506b:4b03:00cc:92b8", CharDevices: chars("mlx5_2"), NetDevs: []string{"ib0"},
			Limits: &Limits{QPs: 262144, QPWR: 32768, SGE: 30, CQs: 16777216, CQE: 4194303, MRs: 16777216,
				MRSize: 1 << 63,
				SRQs:   8388608, SRQWR: 32767, RDAtom: 16, InitRDAtom: 16, Atomics: true},
			Ports: []Port{{Number: 1, State: "ACTIVE", PhysState: "LinkUp", Rate: "200 Gb/sec (4X HDR)",
				LinkLayer: "InfiniBand", LID: "0x4", MTU: 4096, MaxMsg: 1 << 30,
				GIDs: []GID{{Index: 0, GID: "fe80::506b:4b03:cc:92b8", Type: "IB"}}}}},
		{Name: "mlx5_10", NodeType: "CA", Driver: "mlx5_core", Firmware: "16.35.2000",
			NodeGUID:    "08:c0:eb:ff:fe:4e:12:34",
			CharDevices: chars("mlx5_10"), NetDevs: []string{"enp6s0"}, NetDevMTU: map[string]int{"enp6s0": 9000},
			Ports: []Port{{Number: 1, State: "DOWN", PhysState: "Disabled", Rate: "40 Gb/sec (4X QDR)",
				LinkLayer: "Ethernet",
				GIDs: []GID{
					{Index: 0, GID: "fe80::ac0:ebff:fe4e:1234", Type: "RoCE v1", NetDev: "enp6s0"},
					{Index: 1, GID: "fe80::ac0:ebff:fe4e:1234", Type: "RoCE v2", NetDev: "enp6s0"},
					{Index: 10, GID: "::ffff:192.168.1.2", Type: "RoCE v2", NetDev: "enp6s0"},
				}}}},
		{Name: "rxe0", NodeType: "CA", Driver: "rdma_rxe", Software: true, CharDevices: chars("rxe0"),
			NetDevs: []string{"enp6s0"}, NetDevMTU: map[string]int{"enp6s0": 9000}, Ports: []Port{active}},
		{Name: "siw0", NodeType: "RNIC", Driver: "siw", Software: true, Firmware: "7", CharDevices: chars("siw0"),
			NetDevs: []string{"siwdev"}, NetDevMTU: map[string]int{"siwdev": 1500},
			Limits: &Limits{QPs: 1 << 16, RDAtom: 128}, Ports: []Port{siwPort}},
	}
	if d := cmp.Diff(want, r.Devices); d != "" {
		t.Errorf("devices (-want +got):\n%s", d)
	}
	if len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "hidden0") ||
		r.Notes[1] != `libibverbs has no provider for ["hidden0" "mlx5_10" "rxe0"]: --transport verbs cannot use it` {
		t.Errorf("notes = %q, want one about hidden0, and one about what verbs cannot open", r.Notes)
	}
	if r.Reason != "" || r.Hints != nil {
		t.Errorf("reason %q, hints %q beside devices", r.Reason, r.Hints)
	}
}

func TestDevicesWithoutNetlinkCarryANote(t *testing.T) {
	h := lab()
	h.Links = func() ([]netlink.RdmaLinkAttrs, error) { return nil, unix.EPERM }
	h.Verbs = nil
	r := Collect(h, nil)
	if len(r.Devices) != 4 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "operation not permitted") {
		t.Errorf("%d devices, notes %q, want 4 and the netlink error", len(r.Devices), r.Notes)
	}
}

// Without an interface of its own named by a GID, the interfaces of the PCI function count.
func TestNetDevOfThePCIFunction(t *testing.T) {
	h := lab()
	for name := range h.Root.(fstest.MapFS) {
		if strings.Contains(name, "mlx5_10/ports/1/gid") {
			delete(h.Root.(fstest.MapFS), name)
		}
	}
	r := Collect(h, nil)
	for _, d := range r.Devices {
		if d.Name == "mlx5_10" {
			if !cmp.Equal(d.NetDevs, []string{"enp6s0"}) {
				t.Errorf("netdevs = %q, want enp6s0", d.NetDevs)
			}
			return
		}
	}
	t.Error("mlx5_10 is missing")
}

// siw's GID is the MAC of its interface; rdmamap does not know that.
func TestNetDevOfSoftIWARPHasItsMAC(t *testing.T) {
	h := lab()
	h.ForNetDev = func(string) (string, error) { return "", errors.New("not found") }
	netdevs, _ := h.NetDevs()
	mac := net.HardwareAddr{0x0a, 0xc0, 0xeb, 0x4e, 0x12, 0x34} // of gid ac0:eb4e:1234::
	h.NetDevs = func() ([]net.Interface, error) {
		return append(netdevs, net.Interface{Name: "veth7", HardwareAddr: mac}), nil
	}
	r := Collect(h, nil)
	for _, d := range r.Devices {
		want := map[string]string{"siw0": "veth7", "mlx5_10": "enp6s0", "rxe0": "enp6s0"}[d.Name]
		if got := strings.Join(d.NetDevs, " "); got != want {
			t.Errorf("%s: netdevs %q, want %q", d.Name, got, want)
		}
	}
}

// bare is a machine without devices.
func bare(tree fstest.MapFS, linkErr error) Host {
	none := func(string) []string { return nil }
	return Host{Root: tree, Names: func() []string { return nil }, Ports: none, CharDevices: none,
		Links:     func() ([]netlink.RdmaLinkAttrs, error) { return nil, linkErr },
		ForNetDev: func(string) (string, error) { return "", errors.New("not found") },
		NetDevs: func() ([]net.Interface, error) {
			return []net.Interface{
				{Name: "lo", Flags: net.FlagUp | net.FlagLoopback},
				{Name: "down0", HardwareAddr: make([]byte, 6)},
				{Name: "tun0", Flags: net.FlagUp},
				{Name: "wan7", Flags: net.FlagUp, HardwareAddr: make([]byte, 6)},
			}, nil
		}}
}

func TestAnEmptyListHasItsReason(t *testing.T) {
	class := &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	release := file("6.9.1")
	for _, c := range []struct {
		name   string
		tree   fstest.MapFS
		err    error
		reason string
		hints  []string
		absent string
	}{
		{"no core", fstest.MapFS{}, unix.EPROTONOSUPPORT, "not loaded",
			[]string{"modprobe rdma_rxe && rdma link add rxe0 type rxe netdev wan7", "modprobe siw", "mlx5_ib"},
			"ships neither"},
		{"core without devices", fstest.MapFS{classDir: class}, nil,
			"no device is registered in this network namespace", []string{"rdma_rxe"}, ""},
		{"core, netlink fails", fstest.MapFS{classDir: class}, unix.EPERM, "operation not permitted",
			[]string{"siw"}, ""},
		{"netlink without sysfs", fstest.MapFS{}, nil, "lists no device", []string{"siw"}, ""},
		{"only siw shipped", fstest.MapFS{"proc/sys/kernel/osrelease": release,
			"lib/modules/6.9.1/modules.dep": file("kernel/drivers/infiniband/sw/siw/siw.ko.zst: kernel/net/x.ko")},
			unix.EPROTONOSUPPORT, "not loaded", []string{"modprobe siw"}, "rdma_rxe"},
		{"rxe built in", fstest.MapFS{"proc/sys/kernel/osrelease": release,
			"lib/modules/6.9.1/modules.builtin": file("kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko")},
			unix.EPROTONOSUPPORT, "not loaded", []string{"modprobe rdma_rxe"}, "siw"},
		{"neither shipped", fstest.MapFS{"proc/sys/kernel/osrelease": release,
			"lib/modules/6.9.1/modules.dep": file("kernel/fs/ext4/ext4.ko:")},
			unix.EPROTONOSUPPORT, "not loaded", []string{"ships neither", "linux-modules-extra-6.9.1"}, "modprobe siw"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Collect(bare(c.tree, c.err), []Soft{{"iwarp", "user-space iWARP"}})
			if !strings.Contains(r.Reason, c.reason) {
				t.Errorf("reason = %q, want %q in it", r.Reason, c.reason)
			}
			hints := strings.Join(r.Hints, "\n")
			for _, h := range c.hints {
				if !strings.Contains(hints, h) {
					t.Errorf("hints = %q, want %q in them", r.Hints, h)
				}
			}
			if c.absent != "" && strings.Contains(hints, c.absent) {
				t.Errorf("hints = %q, want no %q", r.Hints, c.absent)
			}
			var text bytes.Buffer
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"no RDMA devices here: " + r.Reason, "iwarp", "user-space iWARP"} {
				if !strings.Contains(text.String(), want) {
					t.Errorf("text lacks %q:\n%s", want, &text)
				}
			}
		})
	}
}

func TestJSONOfAnEmptyListIsAnArrayWithAReason(t *testing.T) {
	r := Collect(bare(fstest.MapFS{}, unix.EPROTONOSUPPORT), []Soft{{"tcp", "plain TCP"}})
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if list, ok := doc["devices"].([]any); !ok || len(list) != 0 {
		t.Errorf("devices = %v, want an empty array", doc["devices"])
	}
	if s, _ := doc["reason"].(string); s == "" {
		t.Error("reason is empty")
	}
	if strings.Contains(b.String(), `\u0026`) {
		t.Error("the commands are HTML-escaped")
	}
}

// soft is a machine whose only device is rxe.
func soft() Host {
	h := bare(fstest.MapFS{}, nil)
	tree := h.Root.(fstest.MapFS)
	const rxe = "sys/devices/virtual/infiniband/rxe0"
	tree["sys/class/infiniband/rxe0"] = link("../../devices/virtual/infiniband/rxe0")
	tree[rxe+"/node_type"], tree[rxe+"/parent"] = file("1: CA"), file("eth0")
	tree["sys/class/net/eth0/mtu"] = file("1500")
	port(tree, rxe+"/ports/1", "4: ACTIVE", "5: LinkUp", "2.5 Gb/sec (1X SDR)", "Ethernet")
	gid(tree, rxe+"/ports/1", "0", "fe80:0000:0000:0000:5054:00ff:fe12:3456", "RoCE v2", "eth0")
	gid(tree, rxe+"/ports/1", "1", "0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2", "eth0")
	h.Verbs = func() ([]verbs.DeviceInfo, error) {
		return []verbs.DeviceInfo{{Name: "rxe0", Limits: verbs.Limits{QPs: 1048560, QPWR: 1048576, SGE: 32,
			CQs: 1048576, CQE: 32767, MRs: 524287,
			SRQs: 917503, SRQWR: 1048576, RDAtom: 128, InitRDAtom: 128, Atomics: true},
			Ports: []verbs.PortInfo{{Number: 1, Active: true, MTU: 1024, MaxMsg: 8 << 20}}}}, nil
	}
	return h
}

// twoPorts is a machine with one adapter of two ports, InfiniBand and down, and no libibverbs.
func twoPorts() Host {
	h := bare(fstest.MapFS{}, nil)
	tree := h.Root.(fstest.MapFS)
	const mlx = "sys/devices/pci0000:00/0000:05:00.0/infiniband/mlx4_0"
	tree["sys/class/infiniband/mlx4_0"] = link("../../devices/pci0000:00/0000:05:00.0/infiniband/mlx4_0")
	tree[mlx+"/node_type"], tree[mlx+"/fw_ver"] = file("1: CA"), file("2.42.5000")
	port(tree, mlx+"/ports/1", "4: ACTIVE", "5: LinkUp", "56 Gb/sec (4X FDR)", "InfiniBand")
	gid(tree, mlx+"/ports/1", "0", "fe80:0000:0000:0000:0002:c903:0000:0001", "IB/RoCE v1", "")
	port(tree, mlx+"/ports/2", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)", "InfiniBand")
	h.Verbs = func() ([]verbs.DeviceInfo, error) {
		return nil, &rdma.AdviceError{Err: errors.New("load libibverbs.so.1: no such file"), Try: "installing it"}
	}
	return h
}

func TestTextForPeople(t *testing.T) {
	for _, c := range []struct {
		file string
		host Host
		best string
	}{
		{"lab.txt", lab(), "verbs:mlx5_2"}, {"soft.txt", soft(), "verbs:rxe0"},
		{"twoports.txt", twoPorts(), "iwarp"}, {"none.txt", bare(fstest.MapFS{}, unix.EPROTONOSUPPORT), "iwarp"},
	} {
		r := Collect(c.host, []Soft{{"iwarp", "user-space iWARP"}})
		r.Default = c.best
		checkGolden(t, &r, c.file)
	}
}

func checkGolden(t *testing.T, r *Report, name string) {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// The live sources must answer on any machine: with devices, or with a reason.
func TestLocalHostAnswers(t *testing.T) {
	r := Collect(Local(), nil)
	if (len(r.Devices) == 0) != (r.Reason != "") {
		t.Errorf("%d devices and reason %q", len(r.Devices), r.Reason)
	}
}

func TestCompareNamesOrdersNumbersByValue(t *testing.T) {
	sorted := []string{"", "1", "2", "10", "mlx5_2", "mlx5_02", "mlx5_10", "mlx5_10a", "rxe0"}
	for i, a := range sorted {
		for j, b := range sorted {
			got := compareNames(a, b)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("compareNames(%q, %q) = %d", a, b, got)
			}
		}
	}
}

func FuzzParseGID(f *testing.F) {
	f.Add(noGID)
	f.Add("fe80:0000:0000:0000:506b:4b03:00cc:92b8")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		gid, ok := parseGID(s)
		if !ok {
			return
		}
		if again, ok := parseGID(gid); !ok || again != gid {
			t.Errorf("parseGID(%q) = %q, which reads back as %q, %v", s, gid, again, ok)
		}
	})
}
