package rpctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"time"
)

// ServerName is whom every Identity stands for.
const ServerName = "server.test"

// Identity is a self-signed certificate and its key, in PEM, for clients and servers. It is valid for a day.
type Identity struct{ Certificate, Key []byte }

// NewIdentity makes a new key.
func NewIdentity() (i Identity, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return i, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return i, err
	}
	// Clocks may differ by an hour.
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{ServerName}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return i, err
	}
	return Identity{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})}, nil
}

// Load is the identity for who has it, and the pool for who trusts it.
func (i *Identity) Load() (own tls.Certificate, pool *x509.CertPool, err error) {
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(i.Certificate)
	own, err = tls.X509KeyPair(i.Certificate, i.Key)
	return own, pool, err
}
