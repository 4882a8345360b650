package stackspec

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

func verbsPort(number int, active bool) verbs.PortInfo {
	return verbs.PortInfo{Number: number, Active: active, LinkLayer: "Ethernet", MTU: 1024, MaxMsg: 1 << 30}
}

// machine has an adapter without a cable, one whose second port is up, and both soft devices.
var machine = []verbs.DeviceInfo{
	{Name: "mlx5_0", Transport: "InfiniBand", Ports: []verbs.PortInfo{verbsPort(1, false)}},
	{Name: "mlx4_0", Transport: "InfiniBand", Ports: []verbs.PortInfo{verbsPort(1, false), verbsPort(2, true)}},
	{Name: "rxe0", Transport: "InfiniBand", Ports: []verbs.PortInfo{verbsPort(1, true)}},
	{Name: "siw0", Transport: iwarpTransport, Ports: []verbs.PortInfo{verbsPort(1, true)}},
}

func withDevices(t *testing.T, devices []verbs.DeviceInfo, err error) {
	t.Helper()
	before := Devices
	Devices = func() ([]verbs.DeviceInfo, error) { return devices, err }
	t.Cleanup(func() { Devices = before })
}

var errNoVerbs = &rdma.AdviceError{Err: rdma.ErrNoDevice, Try: "iwarp"}

func TestWithoutATransportTheBestProviderIsTaken(t *testing.T) {
	down := machine[:1]
	for _, c := range []struct {
		what    string
		devices []verbs.DeviceInfo
		err     error
		want    string
	}{
		{"no device", nil, errNoVerbs, "iwarp"},
		{"an empty list", nil, nil, "iwarp"},
		{"a device whose port is down", down, nil, "iwarp"},
		{"the first ACTIVE one", machine, nil, "verbs:mlx4_0"},
		{"a soft one", machine[2:3], nil, "verbs:rxe0"},
		{"an iWARP one", machine[3:], nil, "verbs:siw0"},
	} {
		withDevices(t, c.devices, c.err)
		if got := Best(); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestDeviceFlagsFillInVerbsLayers(t *testing.T) {
	withDevices(t, nil, errNoVerbs)
	for _, c := range []struct {
		transport string
		v         VerbsFlags
		want      string
		text      string // of a usage error
	}{
		{"verbs", VerbsFlags{device: "rxe0", gid: 1}, "verbs(gid=1):rxe0", ""},
		{"verbs", VerbsFlags{device: "rxe0", port: 2, gid: 0, cm: false}, "verbs(port=2,gid=0):rxe0", ""},
		{"tcp,verbs,sched+verbs", VerbsFlags{device: "rxe0", gid: -1}, "tcp,verbs:rxe0,sched+verbs:rxe0", ""},
		{"verbs:rxe0,verbs", VerbsFlags{device: "siw0", gid: -1}, "verbs:rxe0,verbs:siw0", ""},
		{"verbs(port=1),verbs", VerbsFlags{port: 2, gid: -1}, "verbs(port=1),verbs(port=2)", ""},
		{"verbs(cm),iwarp", VerbsFlags{gid: -1, cm: true}, "verbs(cm),iwarp", ""},
		{"verbs,tcp", VerbsFlags{device: "mlx5_0", gid: 3, cm: true}, "verbs(cm):mlx5_0,tcp", ""},
		{"verbs(cm)", VerbsFlags{gid: 3}, "verbs(cm)", ""},
		{"iwarp", VerbsFlags{gid: -1, cm: true}, "iwarp", ""},
		{"iwarp", VerbsFlags{gid: 3}, "", "-x 3 is for kernel verbs, and --transport iwarp has none"},
		{"iwarp,tcp", VerbsFlags{device: "rxe0", gid: -1}, "",
			"-d rxe0 is for kernel verbs, and --transport iwarp,tcp has none"},
		{"verbs:rxe0", VerbsFlags{device: "siw0", gid: -1}, "", "-d siw0: --transport verbs:rxe0 says otherwise"},
		{"verbs(gid=1)", VerbsFlags{gid: 2}, "", "-x 2: --transport verbs(gid=1) says otherwise"},
		{"verbs,tcp,iwarp,grpc(tcp)", VerbsFlags{gid: -1, tos: 104},
			"verbs(tos=104),tcp(tos=104),iwarp(tos=104),grpc(tcp)", ""},
		{"tcp(tos=8),sched+iwarp", VerbsFlags{gid: -1, tos: 104}, "tcp(tos=8),sched+iwarp(tos=104)", ""},
		{"verbs:mlx5_0,tcp", VerbsFlags{gid: -1, mtu: 1024, timeout: 18, retry: 7, sl: 3},
			"verbs(mtu=1024,timeout=18,retry=7,sl=3):mlx5_0,tcp", ""},
		{"verbs(sl=1)", VerbsFlags{gid: -1, sl: 3}, "", "-S 3: --transport verbs(sl=1) says otherwise"},
		{"mem", VerbsFlags{gid: -1, tos: 1}, "", "nothing of --transport mem marks packets"},
		{"verbs", VerbsFlags{device: "a:b", gid: -1}, "", "a bad device name"},
	} {
		stacks, err := c.v.Apply(Split(c.transport, ','))
		switch got := strings.Join(stacks, ","); {
		case c.text == "":
			if err != nil || got != c.want {
				t.Errorf("--transport %q %+v: %s, %v, want %s", c.transport, c.v, got, err, c.want)
			}
		case reports.Code(err) != reports.ExitUsage || !strings.Contains(cli.ErrorLine(err), c.text):
			t.Errorf("--transport %q %+v: %s, %v, want a usage error with %q", c.transport, c.v, got, err, c.text)
		}
	}
}

func TestChoiceOfADevice(t *testing.T) {
	withDevices(t, machine, nil)
	for _, c := range []struct {
		spec string
		wish bool
		want string
		code int
		text string
	}{
		{"verbs", false, "verbs:mlx4_0", 0, ""},
		{"sched+verbs", false, "sched+verbs:mlx4_0", 0, ""},
		{"verbs:rxe0", false, "verbs:rxe0", 0, ""},
		{"verbs(gid=1,mtu=512):rxe0", false, "verbs(gid=1,mtu=512):rxe0", 0, ""},
		{"verbs(port=1)", false, "verbs(port=1):rxe0", 0, ""},
		{"verbs(port=2)", false, "verbs(port=2):mlx4_0", 0, ""},
		{"verbs:siw0", false, "verbs(cm):siw0", 0, ""},
		{"verbs(cm):siw0", false, "verbs(cm):siw0", 0, ""},
		{"iwarp", false, "iwarp", 0, ""},
		{"nonsense((", false, "nonsense((", 0, ""},
		{"verbs:mlx5_9", true, "verbs:mlx4_0", 0, ""},
		{"verbs:mlx5_0", true, "verbs:mlx4_0", 0, ""},
		{"verbs(cm):rxe0", true, "verbs(cm):rxe0", 0, ""},
		{"verbs:mlx5_9", false, "", 77,
			`open transport "verbs:mlx5_9": no device mlx5_9: this machine has mlx5_0, mlx4_0, rxe0, siw0; try -d`},
		{"verbs:mlx5_0", false, "", 77, `open transport "verbs:mlx5_0": mlx5_0 has no ACTIVE port; try ip link set up`},
		{"verbs(port=1):mlx4_0", false, "", 77, "port 1 of mlx4_0 is not ACTIVE; try ip link set up"},
		{"verbs(port=3):rxe0", false, "", 2, "rxe0 has no port 3: it has 1; try -i"},
		{"verbs(port=3)", false, "", 77, "port 3 is not ACTIVE on any of mlx5_0, mlx4_0, rxe0, siw0"},
		{"verbs(gid=0):siw0", false, "", 2, "siw0 is iWARP, which has no gid"},
		{"verbs:siw0", true, "verbs:mlx4_0", 0, ""},
		{"verbs(cm):siw0", true, "verbs(cm):siw0", 0, ""},
		{"sched+verbs:mlx5_9", false, "", 77, "verbs: no device mlx5_9"},
		{"verbs(colour=red)", false, "", 2, "cm, port=N, gid=N, mtu=BYTES"},
		{"verbs(cm=1)", false, "", 2, "it has no value"},
	} {
		got, err := ChooseDevice(c.spec, c.wish)
		if reports.Code(err) != c.code || got != c.want || err != nil && !strings.Contains(cli.ErrorLine(err), c.text) {
			t.Errorf("%s (wish %v): %q, exit %d, %v, want %q, exit %d, %q", c.spec, c.wish, got, reports.Code(err), err,
				c.want, c.code, c.text)
		}
	}
	withDevices(t, machine[3:], nil)
	if _, err := ChooseDevice("verbs:mlx5_0", true); reports.Code(err) != reports.ExitPeer ||
		!strings.Contains(cli.ErrorLine(err), "all RDMA devices here are iWARP") {
		t.Errorf("a server with iWARP only: %v", err)
	}
	withDevices(t, machine[:1], nil)
	if _, err := ChooseDevice("verbs", false); reports.Code(err) != reports.ExitNotRun ||
		!strings.Contains(cli.ErrorLine(err), "no port is ACTIVE on any of mlx5_0; try ip link") {
		t.Errorf("all ports down: %v", err)
	}
	withDevices(t, nil, errors.New("no library"))
	if got, err := ChooseDevice("verbs:rxe0", false); got != "verbs:rxe0" || err != nil {
		t.Errorf("without a list: %q, %v; opening it says why", got, err)
	}
}

// The list of devices belongs to another test's machine: it must not be changed.
func TestAServerTakesItsOwnDevice(t *testing.T) {
	withDevices(t, machine, nil)
	for _, c := range []struct {
		v    VerbsFlags
		spec string
		wish bool
		want string
	}{
		{VerbsFlags{gid: -1}, "verbs:rxe0", true, "verbs:rxe0"},
		{VerbsFlags{gid: -1}, "verbs:eth_rdma7", true, "verbs:mlx4_0"},
		{VerbsFlags{gid: -1}, "verbs(gid=1):rxe0", false, "verbs(gid=1):rxe0"},
		{VerbsFlags{device: "rxe0", gid: 2}, "sched+verbs:mlx5_0", true, "sched+verbs(gid=2):rxe0"},
		{VerbsFlags{device: "rxe0", port: 1, gid: 2}, "verbs(cm):mlx5_0", true, "verbs(cm,port=1):rxe0"},
		{VerbsFlags{device: "rxe0", gid: -1}, "iwarp", true, "iwarp"},
	} {
		if got, err := c.v.Here(c.spec, c.wish); err != nil || got != c.want {
			t.Errorf("%+v, %s: %q, %v, want %q", c.v, c.spec, got, err, c.want)
		}
	}
	v := VerbsFlags{device: "siw0", gid: -1}
	if _, err := v.Here("verbs:mlx5_0", true); reports.Code(err) != reports.ExitPeer ||
		!strings.Contains(cli.ErrorLine(err),
			"peer on another fabric: this server's device siw0 is iWARP, the client's is not; try -d") {
		t.Errorf("a client without iWARP: %v", err)
	}
	if got, err := v.Here("verbs(cm):siw3", true); err != nil || got != "verbs(cm):siw0" {
		t.Errorf("a client with iWARP: %q, %v", got, err)
	}
	v = VerbsFlags{gid: -1}
	if got, err := v.Here("verbs:siw0", false); err != nil || got != "verbs(cm):siw0" {
		t.Errorf("a child of this machine's client: %q, %v", got, err)
	}
	v = VerbsFlags{device: "rxe7", gid: -1}
	if _, err := v.Here("verbs:rxe0", true); reports.Code(err) != reports.ExitNotRun {
		t.Errorf("a device that the server's own flag names wrongly: %v", err)
	}
}

func TestThePeerGetsNoIndicesOfOurs(t *testing.T) {
	for spec, want := range map[string]string{
		"verbs(port=2,gid=3,mtu=1024):rxe0": "verbs(mtu=1024):rxe0",
		"sched(strict)+verbs(cm):siw0":      "sched(strict)+verbs(cm):siw0",
		"iwarp(crc)":                        "iwarp(crc)",
	} {
		if got := ForPeer(spec); got != want {
			t.Errorf("forPeer(%s) = %s, want %s", spec, got, want)
		}
	}
}
