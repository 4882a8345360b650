package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
)

// TLSFlags are those of TLS on the control channel: a certificate of this side with its
// key, and the authorities that sign the other's.
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
	f.StringVar(&t.clientCA, "tls-client-ca", "",
		"serve only clients with a certificate of an authority in this PEM file")
}

func (t *TLSFlags) RegisterClient(f *pflag.FlagSet) {
	f.BoolVar(&t.on, "tls", false, "speak TLS on the control channel, and trust the system's authorities")
	f.StringVar(&t.ca, "tls-ca", "", "speak TLS, and trust the authorities in this PEM file")
	f.StringVar(&t.cert, "tls-cert", "", "certificate to show to a server that wants one, a PEM file")
	f.StringVar(&t.key, "tls-key", "", "PEM file with the private key of --tls-cert")
	f.StringVar(&t.serverName, "tls-server-name", "", "name that the server's certificate must have (default HOST)")
}

// pair reads a certificate with its key; none where there is neither.
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

// authorities reads a file of certificates.
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

// server is what a server speaks, nil for no TLS.
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
