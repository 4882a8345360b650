package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// authority signs the certificates of one run.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	pem  []byte
}

// validFor is long enough for any run, and too short to be of use to somebody else.
const validFor = 24 * time.Hour

func newAuthority() (*authority, error) {
	tmpl := template("rdmaperf conformance")
	tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, true, x509.KeyUsageCertSign
	self, err := certify(tmpl, nil)
	if err != nil {
		return nil, err
	}
	der := self.Certificate[0]
	a := &authority{key: self.PrivateKey.(*ecdsa.PrivateKey), pool: x509.NewCertPool(),
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	a.pool.AddCert(a.cert)
	return a, nil
}

// template is a certificate that clocks which differ by an hour still take.
func template(name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validFor)}
}

// certify makes a key, and a certificate of it that the authority signs; nil: the key itself.
func certify(tmpl *x509.Certificate, by *authority) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key of %s: %w", tmpl.Subject.CommonName, err)
	}
	if by == nil {
		by = &authority{cert: tmpl, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, by.cert, &key.PublicKey, by.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate of %s: %w", tmpl.Subject.CommonName, err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func (a *authority) issue(name string) (tls.Certificate, error) {
	tmpl := template(name)
	tmpl.DNSNames = []string{name}
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return certify(tmpl, a)
}

// client is a client's certificate and key in PEM.
func (a *authority) client() (chain, secret []byte, err error) {
	c, err := a.issue("client.test")
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("write a client's key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// trust is what a client believes who trusts the authority of the run.
func (p *Peer) trust() (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(p.CA) {
		return nil, errors.New("the server's authority is no certificate")
	}
	return &tls.Config{RootCAs: pool, ServerName: "server.test"}, nil
}

// identity is the client's own certificate.
func (p *Peer) identity() (tls.Certificate, error) { return tls.X509KeyPair(p.Chain, p.Secret) }
