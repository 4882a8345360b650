package verbs

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// sysfsPort writes a fake port; files are "gids/0" and the like.
func sysfsPort(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, "class/infiniband/rxe0/ports/1", name)
		noError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		noError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	return root
}

const (
	linkLocal = "fe80:0000:0000:0000:0ac0:ebff:fe4e:1234"
	mapped    = "0000:0000:0000:0000:0000:ffff:c0a8:0102"
	global6   = "2001:0db8:0000:0000:0000:0000:0000:0001"
	noGID     = "0000:0000:0000:0000:0000:0000:0000:0000"
)

func entry(index int, gid string, kind gidType, dev string) gidEntry {
	return gidEntry{Index: index, GID: netip.MustParseAddr(gid).As16(), Type: kind, NetDev: dev}
}

func TestATableIsReadInTheOrderOfItsIndices(t *testing.T) {
	root := sysfsPort(t, map[string]string{
		"link_layer": "Ethernet",
		"gids/0":     linkLocal, "gid_attrs/types/0": "IB/RoCE v1", "gid_attrs/ndevs/0": "eth0",
		"gids/1": linkLocal, "gid_attrs/types/1": "RoCE v2", "gid_attrs/ndevs/1": "eth0",
		"gids/2":  noGID,
		"gids/10": mapped, "gid_attrs/types/10": "RoCE v2", "gid_attrs/ndevs/10": "eth0.7",
		"gids/3": global6, "gid_attrs/types/3": "RoCE v2",
	})
	got, err := readGIDs(root, "rxe0", 1)
	want := []gidEntry{entry(0, linkLocal, gidRoCEv1, "eth0"), entry(1, linkLocal, gidRoCEv2, "eth0"),
		entry(3, global6, gidRoCEv2, ""), entry(10, mapped, gidRoCEv2, "eth0.7")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("table = %v, %v, want %v", got, err, want)
	}
}

func TestInfiniBandSharesItsTypeNameWithRoCEv1(t *testing.T) {
	root := sysfsPort(t, map[string]string{"link_layer": "InfiniBand", "gids/0": linkLocal,
		"gid_attrs/types/0": "IB/RoCE v1"})
	got, err := readGIDs(root, "rxe0", 1)
	if want := []gidEntry{entry(0, linkLocal, gidIB, "")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("table = %v, %v, want %v", got, err, want)
	}
}

// The kernel answers EINVAL for the attributes of a slot without a GID, and before 5.x for the GID itself.
func TestSlotsThatAnswerEINVALAreEmpty(t *testing.T) {
	for _, at := range []string{"gids/1", "gid_attrs/types/1"} {
		root := sysfsPort(t, map[string]string{"link_layer": "Ethernet", "gids/0": mapped,
			"gid_attrs/types/0": "RoCE v2", "gids/1": linkLocal, "gid_attrs/types/1": "RoCE v2"})
		fail := error(syscall.EINVAL)
		read := fileReader(func(name string) ([]byte, error) {
			if strings.HasSuffix(name, at) {
				return nil, &fs.PathError{Op: "read", Path: name, Err: fail}
			}
			return os.ReadFile(name)
		})
		got, err := read.gids(root, "rxe0", 1)
		if want := []gidEntry{entry(0, mapped, gidRoCEv2, "")}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: table = %v, %v, want %v", at, got, err, want)
		}
		fail = syscall.EIO
		if got, err := read.gids(root, "rxe0", 1); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: table = %v, %v, want EIO: only EINVAL means empty", at, got, err)
		}
	}
}

func TestATableThatCannotBeReadSaysWhich(t *testing.T) {
	root := sysfsPort(t, map[string]string{"link_layer": "Ethernet", "gids/0": "no gid at all"})
	for _, c := range []struct {
		dev  string
		port int
		want error
		text string
	}{{"rxe0", 1, rdma.ErrInvalid, "read gid 0 of rxe0 port 1"}, {"rxe0", 2, fs.ErrNotExist, "rxe0 port 2"},
		{"mlx5_0", 1, fs.ErrNotExist, "mlx5_0 port 1"}} {
		if _, err := readGIDs(root, c.dev, c.port); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v, want %v with %q", err, c.want, c.text)
		}
	}
}

func TestChoiceOfAGID(t *testing.T) {
	const local4 = "169.254.3.4"
	dual := []gidEntry{ // as a mlx5 port with an IPv4 and an IPv6 address lists them
		entry(0, "fe80::1", gidRoCEv1, "eth0"), entry(1, "fe80::1", gidRoCEv2, "eth0"),
		entry(2, "::ffff:10.0.0.1", gidRoCEv1, "eth0"), entry(3, "::ffff:10.0.0.1", gidRoCEv2, "eth0"),
		entry(4, "2001:db8::1", gidRoCEv1, "eth0"), entry(5, "2001:db8::1", gidRoCEv2, "eth0"),
		entry(6, "::ffff:10.0.7.1", gidRoCEv1, "eth0.7"), entry(7, "::ffff:10.0.7.1", gidRoCEv2, "eth0.7"),
	}
	for _, c := range []struct {
		what    string
		entries []gidEntry
		local   string // empty: the zero address
		want    int
	}{
		{"no address: IPv4, global", dual, "", 3},
		{"any IPv4 address", dual, "0.0.0.0", 3},
		{"any IPv6 address says nothing of the family", dual, "::", 3},
		{"the address itself", dual, "10.0.0.1", 3},
		{"the address of a VLAN", dual, "10.0.7.1", 7},
		{"the address itself, mapped", dual, "::ffff:10.0.7.1", 7},
		{"the IPv6 address itself", dual, "2001:db8::1", 5},
		{"a link-local address with its zone", dual, "fe80::1%eth0", 1},
		{"an IPv4 address of another interface", dual, "192.168.9.9", 3},
		{"an IPv6 address of another interface", dual, "2001:db8:9::9", 5},
		{"loopback", dual, "127.0.0.1", 3},
		{"IPv6 loopback", dual, "::1", 5},
		{"version 1 only", dual[:1], "10.0.0.1", 0},
		{"version before the address itself", []gidEntry{dual[2], dual[1]}, "10.0.0.1", 1},
		{"family before scope", []gidEntry{entry(0, "::ffff:"+local4, gidRoCEv2, ""),
			entry(1, "2001:db8::1", gidRoCEv2, "")}, "10.1.1.1", 0},
		{"global before link-local", []gidEntry{entry(0, "::ffff:"+local4, gidRoCEv2, ""),
			entry(1, "::ffff:10.0.0.1", gidRoCEv2, "")}, "10.1.1.1", 1},
		{"InfiniBand: the port's own", []gidEntry{entry(0, "fe80::2", gidIB, ""), entry(1, "fec0::2", gidIB, "")},
			"10.0.0.1", 0},
	} {
		var local netip.Addr
		if c.local != "" {
			local = netip.MustParseAddr(c.local)
		}
		got, err := chooseGID(c.entries, local)
		if err != nil || got.Index != c.want {
			t.Errorf("%s: %v, %v, want index %d", c.what, got, err, c.want)
		}
		// The order of the table is no reason.
		reversed := slices.Clone(c.entries)
		slices.Reverse(reversed)
		if again, err := chooseGID(reversed, local); err != nil || again != got {
			t.Errorf("%s, reversed: %v, %v, want %v", c.what, again, err, got)
		}
	}
}

func TestWithoutAGIDTheErrorSaysWhatToDo(t *testing.T) {
	_, err := chooseGID(nil, netip.MustParseAddr("10.0.0.1"))
	if !errors.Is(err, errNoGID) || err.Error() != "choose gid for 10.0.0.1: the port has no gid" ||
		!strings.Contains(rdma.Advice(err), "-i") {
		t.Errorf("empty table: %v", err)
	}
	table := []gidEntry{entry(0, "fe80::1", gidRoCEv2, "eth0"), entry(1, "::ffff:10.0.0.1", gidRoCEv2, "eth0")}
	if e, err := gidAt(table, 1); err != nil || e != table[1] {
		t.Errorf("index 1 = %v, %v", e, err)
	}
	_, err = gidAt(table, 9)
	const want = "use gid index 9: no such entry; the port has 0 fe80::1 (RoCE v2, eth0), 1 ::ffff:10.0.0.1 (RoCE " +
		"v2, eth0)"
	if !errors.Is(err, rdma.ErrInvalid) || err.Error() != want {
		t.Errorf("index 9:\n %v, want\n %s", err, want)
	}
	many := make([]gidEntry, 40)
	for i := range many {
		many[i] = entry(i, "fe80::1", gidRoCEv2, "")
	}
	if _, err = gidAt(many, 99); err == nil || len(err.Error()) > 300 || !strings.Contains(err.Error(), "and 32 more") {
		t.Errorf("a long table: %v", err)
	}
	if _, err = gidAt(nil, 0); err == nil || !strings.Contains(err.Error(), "the port has no gid") {
		t.Errorf("no table: %v", err)
	}
}
