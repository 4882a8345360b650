package devices

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

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
