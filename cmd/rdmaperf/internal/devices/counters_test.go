package devices

import (
	"io/fs"
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
			"Ip: Forwarding\nIp: 1\nTcp: RtoMin MaxConn InSegs RetransSegs InErrs\nTcp: 200 -1 9 17 0\nUdp: " +
				"InErrs\nUdp: 4"),
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
