// Package access holds the flags that say how a client reaches a server, and which clients a server admits.
package access

import (
	"crypto/tls"
	"crypto/x509"
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

// PublicAddress is an address of this listener that the whole Internet can reach, or "". It knows no translators.
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

// TLSFlags are those of TLS on the control channel.
type TLSFlags struct {
	on         bool // client: with the system's authorities
	cert, key  string
	ca         string // client: whom to trust
	clientCA   string // server: whom clients must come from
	serverName string // client: instead of HOST
}

func (t *TLSFlags) registerServer(f *pflag.FlagSet) {
	f.StringVar(&t.cert, "tls-cert", "", "speak TLS on the control channel, with the certificates in this PEM file")
	f.StringVar(&t.key, "tls-key", "", "PEM file with the private key of --tls-cert")
	f.StringVar(&t.clientCA, "tls-client-ca", "", "serve only clients with a certificate of an authority in this PEM file")
}

func (t *TLSFlags) RegisterClient(f *pflag.FlagSet) {
	f.BoolVar(&t.on, "tls", false, "speak TLS on the control channel, and trust the system's authorities")
	f.StringVar(&t.ca, "tls-ca", "", "speak TLS, and trust the authorities in this PEM file")
	f.StringVar(&t.cert, "tls-cert", "", "certificate to show to a server that wants one, a PEM file")
	f.StringVar(&t.key, "tls-key", "", "PEM file with the private key of --tls-cert")
	f.StringVar(&t.serverName, "tls-server-name", "", "name that the server's certificate must have (default HOST)")
}

func (t *TLSFlags) pair() ([]tls.Certificate, error) {
	switch {
	case t.cert == "" && t.key == "":
		return nil, nil
	case t.key == "":
		return nil, cli.Usage("read --tls-cert", errors.New("a certificate without its key"), "--tls-key FILE")
	case t.cert == "":
		return nil, cli.Usage("read --tls-key", errors.New("a key without its certificate"), "--tls-cert FILE")
	}
	// Each by itself, so that the error names the right file; no error has any of a key.
	cert, err := os.ReadFile(t.cert)
	if err != nil {
		return nil, cli.Usage("read --tls-cert", err, "a PEM file")
	}
	key, err := os.ReadFile(t.key)
	if err != nil {
		return nil, cli.Usage("read --tls-key", err, "a PEM file")
	}
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, cli.Usage("read --tls-cert", fmt.Errorf("%s, %s: %w", t.cert, t.key, err),
			"two PEM files that belong together")
	}
	return []tls.Certificate{c}, nil
}

func authorities(flag, file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Usage("read "+flag, err, "a PEM file")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, cli.Usage("read "+flag, fmt.Errorf("%s has no certificate", file), "a PEM file")
	}
	return pool, nil
}

func (t *TLSFlags) server() (*tls.Config, error) {
	certs, err := t.pair()
	switch {
	case err != nil:
		return nil, err
	case certs == nil && t.clientCA != "":
		return nil, cli.Usage("read --tls-client-ca", errors.New("it is for a server with TLS"),
			"--tls-cert and --tls-key, too")
	case certs == nil:
		return nil, nil
	}
	c := &tls.Config{Certificates: certs, MinVersion: tls.VersionTLS13}
	if t.clientCA != "" {
		if c.ClientCAs, err = authorities("--tls-client-ca", t.clientCA); err != nil {
			return nil, err
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// Client is what a client speaks, nil for no TLS. The name is HOST where no other is given.
func (t *TLSFlags) Client(host string) (*tls.Config, error) {
	certs, err := t.pair()
	switch {
	case err != nil:
		return nil, err
	case !t.on && t.ca == "" && (certs != nil || t.serverName != ""):
		return nil, cli.Usage("read --tls", errors.New("--tls-cert, --tls-key and --tls-server-name are for TLS"),
			"--tls, or --tls-ca FILE, too")
	case !t.on && t.ca == "":
		return nil, nil
	case host == "":
		return nil, cli.Usage("read --tls",
			errors.New("without a HOST the server is a process of this run, which nobody can listen to"),
			"a HOST, or no --tls")
	}
	c := &tls.Config{Certificates: certs, MinVersion: tls.VersionTLS13, ServerName: t.serverName}
	if t.ca != "" {
		if c.RootCAs, err = authorities("--tls-ca", t.ca); err != nil {
			return nil, err
		}
	}
	return c, nil
}
