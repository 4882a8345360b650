package direct

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/internal/sessiontest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func private(edit func(b []byte)) []byte {
	g := greeting{rkey: 7, addr: 4096, len: 8192, hello: []byte("hi")}
	b, err := g.encode()
	if err != nil {
		panic(err)
	}
	if edit != nil {
		edit(b)
	}
	return b
}

func TestPrivateDataThatBreaksTheRulesIsRefused(t *testing.T) {
	for _, c := range []struct {
		what string
		b    []byte
		text string // of the error; empty when it is good
	}{
		{"a good one", private(nil), ""},
		{"padding behind it", append(private(nil), make([]byte, 12)...), ""},
		{"nothing", nil, "not of this transport"},
		{"one byte less", private(nil)[:greetingLen-1], "not of this transport"},
		{"another protocol", private(func(b []byte) { b[0] = 0 }), "not of this transport"},
		{"another version", private(func(b []byte) { b[4] = 3 }), "peer speaks version 3, this side 1"},
		{"a hello longer than its field", private(func(b []byte) { b[5] = 17 }), "malformed"},
		{"a reserved byte", private(func(b []byte) { b[7] = 1 }), "malformed"},
		{"no window", private(func(b []byte) { clear(b[20:28]) }), "malformed"},
		{"a window that wraps", private(func(b []byte) { b[12], b[20] = 0xff, 0xff }), "malformed"},
	} {
		g, err := parseGreeting(c.b)
		if c.text != "" {
			if !errors.Is(err, rdma.ErrProtocol) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: error %v, want %q and %v", c.what, err, c.text, rdma.ErrProtocol)
			}
			continue
		}
		if err != nil || g.rkey != 7 || g.addr != 4096 || g.len != 8192 || string(g.hello) != "hi" {
			t.Errorf("%s: %+v, %v", c.what, g, err)
		}
	}
	if n := len(private(nil)); n != greetingLen || n > 56 {
		t.Errorf("%d bytes of private data, want %d, which rdma_cm carries", n, greetingLen)
	}
}

func FuzzGreeting(f *testing.F) {
	f.Add(private(nil))
	f.Add(private(func(b []byte) { b[5] = 0 }))
	f.Add(append(private(nil), 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := parseGreeting(b)
		if err != nil {
			return
		}
		if g.addr+g.len < g.addr || g.len == 0 {
			t.Fatalf("parse(%x) accepted the window %#x+%#x", b, g.addr, g.len)
		}
		again, err := g.encode()
		if err != nil {
			t.Fatalf("encode(parse(%x)): %v", b, err)
		}
		if n := 28 + len(g.hello); !bytes.Equal(again[:n], b[:n]) {
			t.Fatalf("encode(parse(%x)) = %x", b, again)
		}
	})
}

func TestAnIDComesApartAsItWasMade(t *testing.T) {
	for _, c := range []struct {
		kind              transports.Kind
		slot              uint32
		cover, unsignaled uint64
	}{
		{transports.KindSend, 0, 1, 0},
		{transports.KindCmpSwap, 1<<32 - 1, maxDepth, unsignaledBit},
		{transports.KindRecv, 5, 0, 0},
		{transports.KindRead, 1 << 31, 1 << 23, unsignaledBit},
	} {
		id := makeID(c.kind, c.slot) | c.cover<<coverShift | c.unsignaled
		if idKind(id) != c.kind || idSlot(id) != c.slot || idCover(id) != int(c.cover) ||
			id&unsignaledBit != c.unsignaled {
			t.Errorf("%+v: %#x = kind %v, slot %d, cover %d", c, id, idKind(id), idSlot(id), idCover(id))
		}
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

func inMemory(cfg memdev.Config) sessiontest.Open {
	return func(t testing.TB) (near, far transports.Transport, addr string) {
		a, b := hosts(t, cfg)
		return New(a), New(b), "far:0"
	}
}

func TestSessions(t *testing.T) { sessiontest.Run(t, inMemory(memdev.Config{})) }
func TestASendWaitsForItsReceive(t *testing.T) {
	sessiontest.RunLateReceive(t, inMemory(memdev.Config{}))
}

// The same claims hold over a device with a socket below it and local completion.
func TestSessionsOverIWARP(t *testing.T) {
	sessiontest.Run(t, func(t testing.TB) (near, far transports.Transport, addr string) {
		return New(must(iwarp.Open(iwarp.Config{}))(t)), New(must(iwarp.Open(iwarp.Config{}))(t)), "127.0.0.1:0"
	})
}

// Reads that take time let fences and the read depth have something to hold.
func TestSessionsWithSlowReads(t *testing.T) {
	sessiontest.Run(t, inMemory(memdev.Config{ReadDelay: 50 * time.Microsecond}))
}
