package verbs

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestThePortsInterfaceIsFoundByNameOrMAC(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 7}
	iwarp := gidEntry{GID: [16]byte{2, 0, 0, 0, 0, 7}}
	for _, c := range []struct {
		what string
		gids []gidEntry
		want bool
	}{
		{"by name", []gidEntry{entry(0, "fe80::1", gidRoCEv2, "other"), entry(1, "fe80::1", gidRoCEv2, "eth0")}, true},
		{"another name, although the MAC fits", []gidEntry{{GID: iwarp.GID, NetDev: "eth1"}}, false},
		{"by MAC", []gidEntry{iwarp}, true},
		{"another MAC", []gidEntry{{GID: [16]byte{2, 0, 0, 0, 0, 8}}}, false},
		{"none", nil, false},
	} {
		if got := behind(c.gids, "eth0", mac); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	if behind([]gidEntry{{}}, "lo", nil) {
		t.Error("an interface without a MAC matches zeros")
	}
}

// The loopback interface is the one that every machine has.
func TestAddressesOfAnInterface(t *testing.T) {
	got := deviceAddrs([]gidEntry{entry(0, "fe80::1", gidRoCEv2, "lo")})
	if !slices.Contains(got, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("addresses of lo: %v", got)
	}
	_, prefix, _ := net.ParseCIDR("fe80::5/64")
	prefix.IP = net.ParseIP("fe80::5")
	if got := hostAddrs([]net.Addr{prefix, &net.UnixAddr{Name: "x"}}, "eth0"); !slices.Equal(got,
		[]netip.Addr{netip.MustParseAddr("fe80::5%eth0")}) {
		t.Errorf("link-local: %v", got)
	}
}

func TestWhereRdmaCMListens(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")}
	for _, c := range []struct {
		addr string
		own  []netip.Addr
		want string
	}{
		{"10.0.0.1:7174", own, "10.0.0.1:7174"},
		{"[2001:db8::1]:0", own, "[2001:db8::1]:0"},
		{"127.0.0.1:0", own, "10.0.0.1:0"},
		{"192.168.1.1:5", own, "10.0.0.1:5"},
		{"[::1]:5", own, "[2001:db8::1]:5"},
		{"[::1]:5", own[:1], "10.0.0.1:5"},
		{"0.0.0.0:5", own, "0.0.0.0:5"},
		{"[::]:5", own, "[::]:5"},
		{":5", own, ":5"},
		{"127.0.0.1:0", nil, "127.0.0.1:0"},
		{"host.example:5", own, "host.example:5"},
		{"nonsense", own, "nonsense"},
	} {
		if got := bindAddr(c.addr, c.own); got != c.want {
			t.Errorf("bindAddr(%s, %v) = %s, want %s", c.addr, c.own, got, c.want)
		}
	}
}

func TestPagingIsDeclaredForEveryOperation(t *testing.T) {
	base := rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead)
	atomic := base | rdma.Ops(rdma.OpFetchAdd, rdma.OpCmpSwap)
	const all = odpSend | odpRecv | odpWrite | odpRead
	for _, c := range []struct {
		name    string
		general uint64
		rc      uint32
		ops     rdma.OpSet
		feat    rdma.Features
		want    bool
	}{
		{"all of rxe", 1, 0xff, atomic, rdma.FeatSRQ, true},
		{"what is used", 1, all, base, 0, true},
		{"nothing in general", 0, 0xff, atomic, rdma.FeatSRQ, false},
		{"implicit alone", 2, 0xff, base, 0, false},
		{"no send", 1, all &^ odpSend, base, 0, false},
		{"no receive", 1, all &^ odpRecv, base, 0, false},
		{"no write", 1, all &^ odpWrite, base, 0, false},
		{"no read", 1, all &^ odpRead, base, 0, false},
		{"no atomics", 1, all | odpSRQRecv, atomic, rdma.FeatSRQ, false},
		{"no shared receive queue", 1, all | odpAtomic, atomic, rdma.FeatSRQ, false},
		{"datagrams alone", 1, 0, base, 0, false},
	} {
		if got := mayFault(c.general, c.rc, rdma.Caps{Ops: c.ops, Features: c.feat}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestSoftwareDevicesPlaceAsTheKernelCopies(t *testing.T) {
	for _, c := range []struct {
		arch, release, flags string
		want                 bool
	}{
		{"amd64", "6.1.0-56-amd64\n", "fpu rep_good nopl", true},
		{"amd64", "6.1.0-56-amd64\n", "fpu erms", true},
		{"amd64", "6.1.0-56-amd64\n", "fpu nopl", false},
		{"amd64", "6.3.9", "rep_good", true},
		{"amd64", "6.4.0", "rep_good erms", false},
		{"amd64", "6.12.117+deb12-amd64", "rep_good erms", false},
		{"amd64", "6.12.117+deb12-amd64", "rep_good erms fsrm", true},
		{"amd64", "6.12.117+deb12-amd64", "rep_good erms nofsrm", false},
		{"amd64", "7.0.1", "fsrm", true},
		{"amd64", "odd", "fsrm", false},
		{"arm64", "6.1.0", "rep_good", false},
	} {
		info := "processor\t: 0\nflags\t\t: " + c.flags + "\nbugs\t\t:\n"
		if got := copiesUpwards(c.arch, c.release, info); got != c.want {
			t.Errorf("%s, %q, %q: %v", c.arch, c.release, c.flags, got)
		}
	}
}
