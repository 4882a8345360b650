package engine_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// sign makes a certificate for an IP address or a name that ends at a time.
func (a *authority) sign(t *testing.T, name string, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature}
	if ip := net.ParseIP(name); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// measureOver connects to a server with a plan that it does not read in one go, and runs the first point of it.
func measureOver(t *testing.T, addr string, tr transports.Stack, secured *tls.Config) error {
	plan := enginetest.QuickPlan(slices.Repeat([]engine.Point{{Workload: latency.Name, Op: "send", Size: 64}}, 500)...)
	plan.Timeout, plan.TLS = 10*time.Second, secured
	_, err := enginetest.Try(t.Context(), addr, tr, plan)
	return err
}

// Who may measure over TLS does, and each way in which the two sides do not fit is one line that says what to try.
func TestTLSMismatchesAreTold(t *testing.T) {
	ours, other, soon := newAuthority(t), newAuthority(t), time.Now().Add(time.Hour)
	server := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	both := server(ours.sign(t, "127.0.0.1", soon))
	both.ClientAuth, both.ClientCAs = tls.RequireAndVerifyClientCert, ours.pool
	trusting := func(certs ...tls.Certificate) *tls.Config {
		return &tls.Config{RootCAs: ours.pool, Certificates: certs}
	}
	named := trusting()
	named.ServerName = "measure.example"
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		want, try      string
	}{
		{"neither", nil, nil, "", ""},
		{"both", server(ours.sign(t, "127.0.0.1", soon)), trusting(), "", ""},
		{"by a name", server(ours.sign(t, "measure.example", soon)), named, "", ""},
		{"a certificate each", both, trusting(ours.sign(t, "client", soon)), "", ""},
		{"a plain client", server(ours.sign(t, "127.0.0.1", soon)), nil, "this server speaks TLS, the client does not",
			"--tls-ca"},
		{"a plain server", nil, trusting(), "it does not speak TLS", "serve with --tls-cert"},
		{"an unknown authority", server(other.sign(t, "127.0.0.1", soon)), trusting(), "not trusted here", "--tls-ca"},
		{"too late", server(ours.sign(t, "127.0.0.1", time.Now().Add(-time.Hour))), trusting(),
			"expired or is not valid yet", "a new certificate"},
		{"another address", server(ours.sign(t, "127.0.0.2", soon)), trusting(), "is for another name",
			"--tls-server-name"},
		{"another name", server(ours.sign(t, "127.0.0.1", soon)), named, "is for another name", "--tls-server-name"},
		{"no certificate of the client", both, trusting(), "wants a certificate", "--tls-key"},
		{"a client of another authority", both, trusting(other.sign(t, "client", soon)),
			"refuses the client's certificate", "--tls-client-ca"},
		{"a client too late", both, trusting(ours.sign(t, "client", time.Now().Add(-time.Hour))),
			"refuses the client's certificate", "--tls-client-ca"},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table, TLS: c.server})
			err := measureOver(t, addr, tr, c.client)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (reports.Code(err) != reports.ExitPeer || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error()+reports.NewRunError(err).Hint, c.try) ||
				strings.Contains(err.Error(), "\n")):
				t.Errorf("%v, want one line with %q and %q, and exit code 5", err, c.want, c.try)
			}
		})
	}
}

// What goes over the control channel cannot be read on the way, and can without TLS.
func TestTLSHidesThePlan(t *testing.T) {
	a := newAuthority(t)
	for _, secured := range []bool{false, true} {
		s := &engine.Server{Workloads: enginetest.Table}
		var client *tls.Config
		if secured {
			s.TLS = &tls.Config{Certificates: []tls.Certificate{a.sign(t, "127.0.0.1", time.Now().Add(time.Hour))}}
			client = &tls.Config{RootCAs: a.pool}
		}
		addr, tr := enginetest.MemServer(t, s)
		l := listen(t)
		defer l.Close()
		var sent strings.Builder
		var both sync.WaitGroup
		both.Go(func() {
			near, err := l.Accept()
			if err != nil {
				return
			}
			defer near.Close()
			far, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer far.Close()
			var back strings.Builder
			both.Go(func() { // ends with far
				io.Copy(io.MultiWriter(near, &back), far)
				near.Close()
			})
			io.Copy(io.MultiWriter(far, &sent), near)
		})
		if err := measureOver(t, l.Addr().String(), tr, client); err != nil {
			t.Fatal(err)
		}
		both.Wait()
		if got := strings.Contains(sent.String(), engine.ControlMagic); got == secured {
			t.Errorf("with TLS %v: whoever listens reads the plan: %v", secured, got)
		}
	}
}

// Places of connections that never finish a handshake go to newcomers, and each ends with the greeting's time.
func TestUnfinishedHandshakesGiveWay(t *testing.T) {
	a := newAuthority(t)
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table,
		TLS: &tls.Config{Certificates: []tls.Certificate{a.sign(t, "127.0.0.1", time.Now().Add(time.Hour))}}})
	begun := time.Now()
	var last net.Conn
	for i := range 2 * engine.MaxRefusals {
		if last = dialled(t, addr); i%2 == 0 { // the beginning of a handshake of 512 octets
			last.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252})
		}
	}
	err := measureOver(t, addr, tr, &tls.Config{RootCAs: a.pool})
	if err != nil || time.Since(begun) > engine.FirstLineWait {
		t.Errorf("a good client: %v after %v", err, time.Since(begun))
	}
	last.SetReadDeadline(time.Now().Add(engine.FirstLineWait + 10*time.Second))
	if n, err := last.Read(make([]byte, 1)); n != 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("a handshake that nobody finishes: %v, want an end", err)
	}
}
