package tcp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/internal/sessiontest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestHeadersHaveTheseBytes(t *testing.T) {
	for _, c := range []struct {
		h    header
		want string
	}{
		{header{kind: wireSend, len: 5}, "01000000000000000000000500000000"},
		{header{kind: wireWrite, off: 1<<56 - 1, len: 1<<32 - 1}, "02ffffffffffffffffffffff00000000"},
		{header{kind: wireWriteImm, off: 0x1122334455, len: 1, tag: 0xdeadbeef},
			"0300001122334455" + "00000001deadbeef"},
		{header{kind: wireReadReq, off: 4096, len: 64, tag: 1}, "04000000000010000000004000000001"},
		{header{kind: wireReadResp, len: 64, tag: 1}, "05000000000000000000004000000001"},
	} {
		b := make([]byte, headerLen)
		c.h.put(b)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("put(%+v) = %s, want %s", c.h, got, c.want)
		}
		if got := parseHeader(b); got != c.h {
			t.Errorf("parse(put(%+v)) = %+v", c.h, got)
		}
	}
}

func ask(edit func(*greeting)) []byte {
	g := greeting{version: wireVersion, verdict: verdictAsk, window: 4096, readDepth: 16, hello: []byte("hi")}
	if edit != nil {
		edit(&g)
	}
	b, err := g.encode()
	if err != nil {
		panic(err)
	}
	return b[:]
}

func TestGreetingsThatBreakTheRulesAreRefused(t *testing.T) {
	poke := func(i int, v byte) []byte {
		b := ask(nil)
		b[i] = v
		return b
	}
	for _, c := range []struct {
		what string
		b    []byte
		text string // of the error; empty when the greeting is good
	}{
		{"a good one", ask(nil), ""},
		{"the largest window", ask(func(g *greeting) { g.window = 1<<56 - 1 }), ""},
		{"a refusal without figures",
			ask(func(g *greeting) { *g = greeting{version: wireVersion, verdict: verdictRefuse} }), ""},
		{"another protocol", []byte("GET / HTTP/1.1\r\nHost: localhost:18515\r\n\r\n"), "not a greeting"},
		{"another version", poke(4, 9), "version 9"},
		{"no window", ask(func(g *greeting) { g.window = 0 }), "window 0"},
		{"a window beyond the offsets", ask(func(g *greeting) { g.window = 1 << 56 }), "window 72057594037927936"},
		{"no read depth", ask(func(g *greeting) { g.readDepth = 0 }), "read depth 0"},
		{"a read depth beyond the limit", ask(func(g *greeting) { g.readDepth = maxReadDepth + 1 }), "read depth 257"},
		{"a hello longer than its field", poke(6, 17), "malformed"},
		{"a reserved byte", poke(7, 1), "malformed"},
		{"a reserved word", poke(23, 1), "malformed"},
	} {
		g, err := parseGreeting((*[greetingLen]byte)(c.b))
		if c.text == "" {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			} else if again, err := g.encode(); err != nil || !bytes.Equal(again[:], c.b[:greetingLen]) {
				t.Errorf("%s: encode(parse(%x)) = %x, %v", c.what, c.b, again, err)
			}
			continue
		}
		if !errors.Is(err, rdma.ErrProtocol) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: error %v, want %q and %v", c.what, err, c.text, rdma.ErrProtocol)
		}
	}
}

func FuzzGreeting(f *testing.F) {
	f.Add(ask(nil))
	f.Add(ask(func(g *greeting) { *g = greeting{version: wireVersion, verdict: verdictRefuse} }))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < greetingLen {
			return
		}
		g, err := parseGreeting((*[greetingLen]byte)(b))
		if err != nil {
			return
		}
		again, err := g.encode()
		if err != nil {
			t.Fatalf("encode(parse(%x)): %v", b, err)
		}
		back, err := parseGreeting(&again)
		if err != nil || back.window != g.window || back.readDepth != g.readDepth || !bytes.Equal(back.hello, g.hello) {
			t.Fatalf("parse(encode(%+v)) = %+v, %v", g, back, err)
		}
	})
}

func TestMain(m *testing.M) { leaktest.Main(m) }

func loopback(cfg Config) sessiontest.Open {
	return func(t testing.TB) (near, far transports.Transport, addr string) {
		return New(cfg), New(cfg), "127.0.0.1:0"
	}
}

func TestSessions(t *testing.T) { sessiontest.Run(t, loopback(Config{})) }

// A send buffer of the kernel's least size ends nearly every large send inside a
// piece; a receive buffer as small would add nothing but delayed ACKs.
func TestSessionsWithTinyBuffers(t *testing.T) {
	sessiontest.Run(t, loopback(Config{SendBuffer: 1, RecvBuffer: 64 << 10}))
}

func TestASendWaitsForItsReceive(t *testing.T) { sessiontest.RunLateReceive(t, loopback(Config{})) }
