// Package access holds the flags that say how a client reaches a server, and which clients a server admits.
package access

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// tokenVariable has the shared token where no --token-file is given.
const tokenVariable = "RDMAPERF_TOKEN"

// TokenFlags is what server and client both must know.
type TokenFlags struct{ file string }

func (t *TokenFlags) Register(f *pflag.FlagSet) {
	f.StringVar(&t.file, "token-file", "",
		"file with the token that server and clients share; also "+tokenVariable+" in the environment")
}

// shortestToken keeps tokens from being guessed. Arbitrary.
const shortestToken = 8

// Read returns the token, nil for none. No error has any of it.
func (t *TokenFlags) Read() ([]byte, error) {
	text, from := os.Getenv(tokenVariable), tokenVariable
	if t.file != "" {
		b, err := os.ReadFile(t.file)
		if err != nil {
			return nil, cli.Usage("read --token-file", err, "a file with a line of text")
		}
		text, from = string(b), t.file
	}
	if text == "" && t.file == "" {
		return nil, nil
	}
	if text = strings.TrimSpace(text); len(text) < shortestToken {
		return nil, cli.Usage("read --token-file", fmt.Errorf("%s has a token of %d characters, want %d or more", from,
			len(text), shortestToken), "openssl rand -hex 16")
	}
	return []byte(text), nil
}

// ServerFlags say who may come to a server, and what all clients together may cost.
type ServerFlags struct {
	allow      []string
	Token      TokenFlags
	maxMemory  string
	maxThreads int
	TLS        TLSFlags
}

func (g *ServerFlags) Register(f *pflag.FlagSet) {
	f.StringSliceVar(&g.allow, "allow", nil,
		"comma list of addresses and networks that may come, such as 192.0.2.0/24,::1 (default all)")
	g.Token.Register(f)
	g.TLS.registerServer(f)
	f.StringVar(&g.maxMemory, "max-memory", "",
		"memory for the windows, queues and threads of all clients together (default --max-window)")
	cli.Ranged(f, &g.maxThreads, "max-threads", engine.DefaultMaxThreads, 1, 1<<20, "threads of all clients together")
}

// Apply puts the bounds into a server.
func (g *ServerFlags) Apply(s *engine.Server) (err error) {
	for _, a := range g.allow {
		p, err := netip.ParsePrefix(strings.TrimSpace(a))
		if err != nil {
			addr, e := netip.ParseAddr(strings.TrimSpace(a))
			if e != nil {
				return cli.Usage("read --allow", fmt.Errorf("%q: want an address or a network such as 192.0.2.0/24", a),
					"rdmaperf serve --help")
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		s.Allow = append(s.Allow, p)
	}
	if s.Token, err = g.Token.Read(); err != nil {
		return err
	}
	if s.TLS, err = g.TLS.server(); err != nil {
		return err
	}
	if g.maxMemory != "" {
		if s.MaxMemory, err = reports.ParseSize(g.maxMemory); err == nil && s.MaxMemory < 1 {
			err = errors.New("want a size above 0")
		}
		if err != nil {
			return cli.Usage("read --max-memory", err, "4G")
		}
	}
	s.MaxThreads = g.maxThreads
	return nil
}

// Open tells whether anybody who reaches the server may use it.
func (g *ServerFlags) Open(s *engine.Server) bool {
	return len(s.Allow) == 0 && len(s.Token) == 0 && (s.TLS == nil || s.TLS.ClientCAs == nil)
}

// PublicAddress is an address of this listener that the whole Internet can reach, or "".
// An address behind a translator is not told apart from a private one.
func PublicAddress(at net.Addr, interfaces func() ([]net.Addr, error)) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok {
		return ""
	}
	all := []net.Addr{&net.IPNet{IP: tcp.IP}}
	if tcp.IP.IsUnspecified() {
		var err error
		if all, err = interfaces(); err != nil {
			return ""
		}
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && !n.IP.IsPrivate() {
			return n.IP.String()
		}
	}
	return ""
}

// DefaultPort is perftest's.
const DefaultPort = 18515
