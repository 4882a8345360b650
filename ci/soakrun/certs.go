package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certs are files in PEM: an authority, and a certificate with its key for the server with
// TLS and for its clients. hello is how a genuine client of it begins.
type certs struct {
	dir   string
	ca    string
	hello []byte
}

// of is the options that show a name's certificate.
func (c certs) of(name string) []string {
	at := filepath.Join(c.dir, name)
	return []string{"--tls-cert", at + ".pem", "--tls-key", at + ".key"}
}

// certify makes them for two days.
func certify(dir string) (c certs, err error) {
	c = certs{dir: dir, ca: filepath.Join(dir, "ca.pem")}
	authority := certificate("authority")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	key, err := c.write("ca", authority, authority, nil)
	for _, name := range []string{"server", "client"} {
		if err == nil {
			_, err = c.write(name, certificate(name), authority, key)
		}
	}
	return c, errors.Join(err, c.greet())
}

func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

// write makes a key, and a certificate for it that by signs; nil: it signs itself.
func (c certs) write(name string, of, issuer *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, issuer, &key.PublicKey, by)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	at := filepath.Join(c.dir, name)
	return key, errors.Join(
		os.WriteFile(at+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(at+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// greet takes down what a client of TLS says first.
func (c *certs) greet() error {
	near, far := net.Pipe()
	defer far.Close()
	go func() { // ends with the pipe
		tls.Client(near, &tls.Config{ServerName: "127.0.0.1", InsecureSkipVerify: true,
			MinVersion: tls.VersionTLS13}).Handshake()
		near.Close()
	}()
	far.SetDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 16<<10) // one record (RFC 8446, section 5.1)
	n, err := far.Read(buf)
	c.hello = buf[:n]
	return err
}
