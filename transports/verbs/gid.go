package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type gidType uint8

const (
	gidIB     gidType = iota // InfiniBand, and iWARP, whose GIDs address nothing
	gidRoCEv1                // Ethertype 0x8915: one broadcast domain
	gidRoCEv2                // UDP port 4791: routable
)

var gidTypeNames = [...]string{"IB", "RoCE v1", "RoCE v2"}

// String is the type in the words of rdma-core.
func (t gidType) String() string {
	if int(t) < len(gidTypeNames) {
		return gidTypeNames[t]
	}
	return "gid type?"
}

type gidEntry struct {
	Index  int
	GID    [16]byte
	Type   gidType
	NetDev string // empty on InfiniBand and on kernels before 4.5
}

func (e *gidEntry) addr() netip.Addr { return netip.AddrFrom16(e.GID).Unmap() }

// String reads "1 ::ffff:10.0.0.1 (RoCE v2, eth0)".
func (e *gidEntry) String() string {
	s := fmt.Sprintf("%d %s (%s", e.Index, netip.AddrFrom16(e.GID), e.Type)
	if e.NetDev != "" {
		s += ", " + e.NetDev
	}
	return s + ")"
}

// maxGIDs bounds the slots looked at. Adapters have up to 256; the index of a GID in the kernel is wider.
const maxGIDs = 4096

// readGIDs reads the GID table of a port from sysfs ("/sys"), in the order of the indices, without the empty slots
// (Documentation/ABI/stable/sysfs-class-infiniband). An absent device or port is fs.ErrNotExist.
func readGIDs(sysfsRoot, device string, port int) ([]gidEntry, error) {
	return fileReader(os.ReadFile).gids(sysfsRoot, device, port)
}

// fileReader reads files of sysfs, or in tests plays it: a file that answers EINVAL cannot be made elsewhere.
type fileReader func(string) ([]byte, error)

func (read fileReader) gids(sysfsRoot, device string, port int) ([]gidEntry, error) {
	dir := filepath.Join(sysfsRoot, "class/infiniband", device, "ports", strconv.Itoa(port))
	slots, err := os.ReadDir(filepath.Join(dir, "gids"))
	if err != nil {
		return nil, &rdma.OpError{Op: opReadGIDs, Object: device + " port " + strconv.Itoa(port), Err: err}
	}
	link, _ := read(filepath.Join(dir, "link_layer")) // absent before 2.6.37: InfiniBand
	ethernet := strings.TrimSpace(string(link)) == "Ethernet"
	var table []gidEntry
	for _, slot := range slots[:min(len(slots), maxGIDs)] {
		e, used, err := read.gid(dir, slot.Name(), ethernet)
		if err != nil {
			return nil, &rdma.OpError{Op: "read gid", Object: slot.Name() + " of " + device + " port " +
				strconv.Itoa(port), Err: err}
		}
		if used {
			table = append(table, e)
		}
	}
	// Directories list 10 before 2.
	slices.SortFunc(table, func(a, b gidEntry) int { return cmp.Compare(a.Index, b.Index) })
	return table, nil
}

func (read fileReader) gid(dir, name string, ethernet bool) (e gidEntry, used bool, err error) {
	if e.Index, err = strconv.Atoi(name); err != nil || e.Index < 0 {
		return e, false, fmt.Errorf("a slot has a number: %w", rdma.ErrInvalid)
	}
	text, err := read(filepath.Join(dir, "gids", name))
	if err != nil {
		return e, false, emptySlot(err)
	}
	gid, err := netip.ParseAddr(strings.TrimSpace(string(text)))
	if err != nil || !gid.Is6() || gid.Zone() != "" {
		return e, false, fmt.Errorf("%.64q is no gid: %w", text, rdma.ErrInvalid)
	}
	e.GID = gid.As16()
	if gid.IsUnspecified() {
		return e, false, nil
	}
	kind, err := read(filepath.Join(dir, "gid_attrs/types", name))
	switch {
	case errors.Is(err, fs.ErrNotExist): // before 4.5: no RoCE v2
	case err != nil:
		return e, false, emptySlot(err)
	case strings.TrimSpace(string(kind)) == "RoCE v2":
		e.Type = gidRoCEv2
	}
	if e.Type == gidIB && ethernet { // sysfs has one name for both: "IB/RoCE v1"
		e.Type = gidRoCEv1
	}
	dev, err := read(filepath.Join(dir, "gid_attrs/ndevs", name))
	if err == nil {
		e.NetDev = strings.TrimSpace(string(dev))
	}
	return e, true, nil
}

// GIDIndex is the entry of a port's GID table that is taken for a peer reached by the local address. An absent
// device or port is fs.ErrNotExist.
func GIDIndex(device string, port int, local netip.Addr) (int, error) {
	table, err := readGIDs(sysRoot, device, port)
	if err != nil {
		return 0, err
	}
	e, err := chooseGID(table, local)
	return e.Index, err
}

func emptySlot(err error) error {
	if errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

var errNoGID = errors.New("the port has no gid")

// chooseGID picks the source address of a connection whose peer is reached, or listened for, at local; the zero and the
// unspecified address stand for any. InfiniBand takes its first entry: LIDs address the packets. RoCE takes v2 before
// v1, since v1 ends at the first router, then the entry that is local itself, the family of local (IPv4 if that is
// open), global before link-local scope, and the lowest index. Both ends that follow the same TCP connection so end up
// with the same version and family; a mix of either cannot talk (IBTA annex A17).
func chooseGID(entries []gidEntry, local netip.Addr) (gidEntry, error) {
	local = local.Unmap().WithZone("")
	object := "for any address"
	if local.IsValid() && !local.IsUnspecified() {
		object = "for " + local.String()
	}
	if len(entries) == 0 {
		return gidEntry{}, &rdma.OpError{Op: "choose gid", Object: object, Err: &rdma.AdviceError{Err: errNoGID,
			Try: "ip link set up and an address for its network interface, or another port with -i"}}
	}
	best := slices.MinFunc(entries, func(a, b gidEntry) int {
		return slices.Compare(gidRank(&a, local), gidRank(&b, local))
	})
	return best, nil
}

func gidRank(e *gidEntry, local netip.Addr) []int {
	if e.Type == gidIB {
		return []int{1, e.Index}
	}
	addr := e.addr()
	want4 := !local.IsValid() || local.IsUnspecified() || local.Is4()
	return []int{
		pick(e.Type == gidRoCEv2, 0, 2),
		pick(addr == local, 0, 1),
		pick(addr.Is4() == want4, 0, 1),
		pick(addr.IsLinkLocalUnicast(), 1, 0),
		e.Index,
	}
}

func pick[T any](cond bool, yes, no T) T {
	if cond {
		return yes
	}
	return no
}

func gidAt(entries []gidEntry, index int) (gidEntry, error) {
	for _, e := range entries {
		if e.Index == index {
			return e, nil
		}
	}
	there := "the port has no gid"
	if len(entries) > 0 {
		names := make([]string, len(entries))
		for i := range entries {
			names[i] = entries[i].String()
		}
		there = "the port has " + list(names)
	}
	return gidEntry{}, &rdma.OpError{Op: opUseGID, Object: strconv.Itoa(index), Err: &rdma.AdviceError{
		Err: &kindError{rdma.ErrInvalid, errors.New("no such entry; " + there)},
		Try: "-x with one that exists, or without -x"}}
}
