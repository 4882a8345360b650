package verbs

import (
	"net"
	"net/netip"
	"slices"
	"testing"
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
