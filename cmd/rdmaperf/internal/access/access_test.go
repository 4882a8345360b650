package access

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

func TestTokensComeFromAFileOrTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	os.WriteFile(file, []byte("  from the file\n"), 0o600)
	t.Setenv(tokenVariable, "from the environment")
	for _, c := range []struct{ file, want, wrong string }{
		{"", "from the environment", ""}, {file, "from the file", ""}, {file + "x", "", "no such file"},
	} {
		got, err := (&TokenFlags{c.file}).Read()
		if string(got) != c.want || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(),
			c.wrong) {
			t.Errorf("%q: %q, %v", c.file, got, err)
		}
	}
	t.Setenv(tokenVariable, "short")
	if _, err := (&TokenFlags{}).Read(); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("a short token: %v, want an error that does not tell it", err)
	}
	t.Setenv(tokenVariable, "")
	if got, err := (&TokenFlags{}).Read(); got != nil || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
}

func TestGuardFlagsAreRead(t *testing.T) {
	g := ServerFlags{allow: []string{"192.0.2.0/24", " ::1"}, maxMemory: "1G", maxThreads: 5}
	var s engine.Server
	if err := g.Apply(&s); err != nil || len(s.Allow) != 2 || s.Allow[1].Bits() != 128 || s.MaxMemory != 1<<30 ||
		s.MaxThreads != 5 || g.Open(&s) {
		t.Errorf("%+v, %v", s.Allow, err)
	}
	for _, g := range []ServerFlags{{allow: []string{"example.com"}, maxThreads: 1}, {maxMemory: "0", maxThreads: 1},
		{maxMemory: "x", maxThreads: 1}} {
		if err := g.Apply(new(engine.Server)); err == nil {
			t.Errorf("%+v is accepted", g)
		}
	}
}

func TestPublicAddressesAreKnown(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip)} }
	have := func(list ...string) func() ([]net.Addr, error) {
		return func() (all []net.Addr, err error) {
			for _, ip := range list {
				all = append(all, &net.IPNet{IP: net.ParseIP(ip)})
			}
			return all, nil
		}
	}
	for _, c := range []struct {
		at   string
		have []string
		want string
	}{
		{"127.0.0.1", nil, ""}, {"10.1.2.3", nil, ""}, {"203.0.113.5", nil, "203.0.113.5"},
		{"::", []string{"127.0.0.1", "fe80::1", "192.168.1.1", "fd00::1"}, ""},
		{"0.0.0.0", []string{"10.0.0.1", "203.0.113.5"}, "203.0.113.5"},
	} {
		if got := PublicAddress(at(c.at), have(c.have...)); got != c.want {
			t.Errorf("%s with %q: %q, want %q", c.at, c.have, got, c.want)
		}
	}
}
