package devices

import (
	"bytes"
	"io/fs"
	"math"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/reports"
)

// counted is a machine with an adapter of two ports and a soft device.
func counted() (Host, fstest.MapFS) {
	const dev = "sys/devices/pci0000:00/0000:05:00.0/infiniband/mlx5_0"
	tree := fstest.MapFS{
		"sys/class/infiniband/mlx5_0": link(
			"../../devices/pci0000:00/0000:05:00.0/infiniband/mlx5_0"),
		dev + "/hw_counters/icrc_errors":                          file("7"),
		dev + "/hw_counters/lifespan":                             file("10"),
		dev + "/ports/1/counters/port_xmit_data":                  file("18446744073709551615"),
		dev + "/ports/1/counters/port_rcv_data":                   file("100"),
		dev + "/ports/1/counters/VL15_dropped":                    file("N/A (no PMA)"),
		dev + "/ports/1/counters/unreadable":                      &fstest.MapFile{Mode: fs.ModeDir}, // any read fails
		dev + "/ports/1/hw_counters/out_of_sequence":              file("3"),
		dev + "/ports/1/hw_counters/lifespan":                     file("10"),
		dev + "/ports/2/counters/port_rcv_data":                   file("5"),
		dev + "/ports/odd/counters/port_rcv_data":                 file("5"),
		"sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts": file("12"),
		"sys/class/infiniband/bare0/ports/1/state":                file("4: ACTIVE"),
	}
	return Host{Root: tree}, tree
}

func TestCountersOfADevice(t *testing.T) {
	h, _ := counted()
	whole := reports.DeviceCounters{Device: "mlx5_0", Counters: map[string]int64{"icrc_errors": 7}}
	one := reports.DeviceCounters{Device: "mlx5_0", Port: 1, Counters: map[string]int64{"port_xmit_data": -1,
		"port_rcv_data": 100, "out_of_sequence": 3}}
	two := reports.DeviceCounters{Device: "mlx5_0", Port: 2, Counters: map[string]int64{"port_rcv_data": 5}}
	for _, c := range []struct {
		device string
		port   int
		want   []reports.DeviceCounters
	}{
		{"mlx5_0", 0, []reports.DeviceCounters{whole, one, two}},
		{"mlx5_0", 2, []reports.DeviceCounters{whole, two}},
		{"mlx5_0", 3, []reports.DeviceCounters{whole}},
		{"rxe0", 1, []reports.DeviceCounters{{Device: "rxe0", Port: 1, Counters: map[string]int64{"sent_pkts": 12}}}},
		{"bare0", 0, nil}, // siw before it counted anything
		{"gone0", 1, nil},
		{"", 0, nil},
		{"..", 0, nil},
		{"../infiniband/rxe0", 0, nil},
	} {
		if diff := cmp.Diff(c.want, h.Counters(c.device, c.port)); diff != "" {
			t.Errorf("%q port %d (-want +got):\n%s", c.device, c.port, diff)
		}
	}
}

// A counter that passes 2^64 moves forward; one that was reset moves back.
func TestCountersMove(t *testing.T) {
	h, tree := counted()
	before := h.Counters("mlx5_0", 1)
	const port = "sys/devices/pci0000:00/0000:05:00.0/infiniband/mlx5_0/ports/1/"
	tree[port+"counters/port_xmit_data"] = file("4")
	tree[port+"counters/port_rcv_data"] = file("60")
	tree[port+"counters/new"] = file("60")
	delete(tree, port+"hw_counters/out_of_sequence")
	want := []reports.DeviceCounters{{Device: "mlx5_0", Counters: map[string]int64{"icrc_errors": 0}},
		{Device: "mlx5_0", Port: 1, Counters: map[string]int64{"port_xmit_data": 5, "port_rcv_data": -40}}}
	if diff := cmp.Diff(want, reports.CounterChanges(before, h.Counters("mlx5_0", 1))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestTCPCounters(t *testing.T) {
	h := Host{Root: fstest.MapFS{
		"proc/net/snmp": file(
			"Ip: Forwarding\nIp: 1\nTcp: RtoMin MaxConn InSegs RetransSegs InErrs\nTcp: 200 -1 9 17 0\nUdp: InErrs\nUdp: 4"),
		"proc/net/netstat": file("TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 1 6\nIpExt: InNoRoutes\nIpExt: 3"),
	}}
	want := []reports.DeviceCounters{{Device: TCPDevice, Counters: map[string]int64{"RetransSegs": 17, "InErrs": 0,
		"TCPTimeouts": 6}}}
	if diff := cmp.Diff(want, h.TCPCounters()); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	if got := (Host{Root: fstest.MapFS{}}).TCPCounters(); got != nil {
		t.Errorf("without /proc: %+v", got)
	}
}

// Whatever is there, names and values are paired and nothing is made up.
func FuzzNetCounters(f *testing.F) {
	f.Add("Tcp: A B\nTcp: 1 2\n", "Tcp")
	f.Add("Tcp: A\nTcp: 1 2 3\nTcp: B\nTcp:\n", "Tcp")
	f.Add("Tcp:", "Tcp")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, text, protocol string) {
		for name := range parseNetCounters(text, protocol) {
			if name == "" {
				t.Error("a counter without a name")
			}
		}
	})
}

func TestTheGIDIsTakenByTypeFamilyAndScope(t *testing.T) {
	p := Port{LinkLayer: "Ethernet", GIDs: []GID{
		{Index: 0, GID: "fe80::1", Type: "RoCE v1"}, {Index: 1, GID: "fe80::1", Type: "RoCE v2"},
		{Index: 2, GID: "::ffff:10.0.0.1", Type: "RoCE v1"}, {Index: 3, GID: "::ffff:10.0.0.1", Type: "RoCE v2"},
		{Index: 5, GID: "2001:db8::1", Type: "RoCE v2"}}}
	for peer, want := range map[string]struct {
		index int
		why   string
	}{
		"":            {3, "RoCE v2, family of the peer, global"},
		"10.0.0.2":    {3, "RoCE v2, family of the peer, global"},
		"2001:db8::2": {5, "RoCE v2, family of the peer, global"},
	} {
		at, _ := netip.ParseAddr(peer) // "" is any
		if index, why, ok := p.Taken(at); !ok || index != want.index || why != want.why {
			t.Errorf("to %q: %d, %q, want %+v", peer, index, why, want)
		}
	}
	p.GIDs = p.GIDs[:2]
	if index, why, _ := p.Taken(netip.MustParseAddr("10.0.0.2")); index != 1 || !strings.Contains(why, "no path") ||
		!strings.Contains(why, "link-local") {
		t.Errorf("%d, %q", index, why)
	}
	if _, _, ok := (&Port{}).Taken(netip.Addr{}); ok {
		t.Error("a port without GIDs has one")
	}
}

func TestEachLackHasWhatMendsIt(t *testing.T) {
	small := int64(64 << 10)
	h := lab()
	r := Collect(h, nil)
	lacks := h.Lacks(&r, &reports.Environment{MemlockBytes: &small, Governors: []string{"powersave"}})
	var b bytes.Buffer
	if err := WriteDoctor(&b, &r, lacks, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the limit of locked memory is 64K", "ulimit -l unlimited", "add: [IPC_LOCK]",
		"the CPU governor is powersave", "modprobe rdma_ucm", "GIDs of ", "<- taken: "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	unlimited := int64(-1)
	for _, l := range h.Lacks(&r, &reports.Environment{MemlockBytes: &unlimited, Governors: []string{"performance"}}) {
		if strings.Contains(l.What, "memory") || strings.Contains(l.What, "governor") {
			t.Errorf("%+v", l)
		}
	}
}

func TestAPathIsExpectedToCarryTheLeastOfItsLinkAndItsSlot(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Device
		p    Port
		want float64 // GB/s
	}{
		{"RoCE of 100 Gb/s", Device{}, Port{Rate: "100 Gb/sec (4X EDR)", MTU: 4096}, 12.255},
		{"RoCE with small packets", Device{}, Port{Rate: "100 Gb/sec (4X EDR)", MTU: 1024}, 11.573},
		{"no MTU is a small one", Device{}, Port{Rate: "100 Gb/sec (4X EDR)"}, 11.573},
		{"InfiniBand", Device{}, Port{Rate: "200 Gb/sec (4X HDR)", MTU: 4096, LinkLayer: "InfiniBand"}, 24.842},
		{"a fast slot", Device{PCIeSpeed: "16.0 GT/s PCIe", PCIeWidth: 16}, Port{Rate: "100 Gb/sec", MTU: 4096}, 12.255},
		{"a slot of half the lanes", Device{PCIeSpeed: "8.0 GT/s PCIe", PCIeWidth: 8}, Port{Rate: "100 Gb/sec", MTU: 4096},
			7.202},
		{"an old slot", Device{PCIeSpeed: "5.0 GT/s PCIe", PCIeWidth: 8}, Port{Rate: "100 Gb/sec", MTU: 4096}, 3.657},
		{"software", Device{Software: true}, Port{Rate: "100 Gb/sec", MTU: 4096}, 0},
		{"iWARP", Device{NodeType: "RNIC"}, Port{Rate: "100 Gb/sec", MTU: 4096}, 0},
		{"nothing", Device{}, Port{}, 0},
	} {
		if got := c.d.Expected(&c.p) / 1e9; math.Abs(got-c.want) > 0.001 {
			t.Errorf("%s: %.3f GB/s, want %.3f", c.name, got, c.want)
		}
	}
}
