package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

const retryEvery = 50 * time.Millisecond

// dialUntil dials again while the port refuses, for at most limit: client and server are often started together. Who
// refused once and says nothing in the last try has refused.
func dialUntil(ctx context.Context, limit time.Duration, addr string,
	dial func(ctx context.Context, network, addr string) (net.Conn, error)) (net.Conn, error) {
	dctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var refused error
	for {
		conn, err := dial(dctx, "tcp", addr)
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			refused = err
			select {
			case <-time.After(retryEvery):
				if dctx.Err() == nil {
					continue
				}
			case <-dctx.Done():
			}
		}
		if ctx.Err() != nil {
			return nil, Interrupted()
		}
		// The dialer's own clock may be ahead of dctx, so that the error decides.
		if refused != nil && late(err) {
			err = refused
		}
		return nil, PeerError("connect "+addr, dialCause(err),
			"rdmaperf serve on the other host, --port, or a longer --timeout")
	}
}

func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

func dialCause(err error) error {
	if late(err) {
		return errSilent
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if sys, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			return sys.Err
		}
		return op.Err
	}
	return err
}

// TLS on the control channel alone (RFC 8446). A side without TLS that meets one with it gets an error in its own
// language.

// tlsRecord is the first octet of a TLS handshake (RFC 8446 §5.1), with which no line of the control protocol begins.
const tlsRecord = 22

var (
	errClientPlain = errors.New("this server speaks TLS, the client does not")
	errServerPlain = fmt.Errorf("%w: the client speaks TLS, this server does not", ErrLine)
)

const (
	drainFor = time.Second // for a refused peer to read why
	drainMax = MaxLine + 4096
)

// drain lets a peer read what was said: a connection that is closed with something unread is reset.
func drain(conn net.Conn) {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite()
	}
	conn.SetReadDeadline(time.Now().Add(drainFor))
	io.CopyN(io.Discard, conn, drainMax)
}

// secure makes the server's side of TLS of a connection, or gives it back as it is.
func (s *Server) secure(ctx context.Context, conn net.Conn) (net.Conn, error) {
	if s.TLS == nil {
		return conn, nil
	}
	limit, cancel := context.WithTimeout(ctx, FirstLineWait)
	defer cancel()
	c := tls.Server(conn, s.TLS)
	err := c.HandshakeContext(limit)
	if err == nil {
		return c, nil
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && record.RecordHeader[0] == '{' {
		err = errClientPlain
		(&Control{Conn: conn}).Send(ReplyWait, &Message{Magic: ControlMagic, Version: ControlVersion, Type: MsgError,
			Error: toPeer(PeerError("greet", err, "--tls-ca FILE, or --tls"))})
	}
	if limit.Err() == nil {
		drain(conn)
	}
	return nil, err
}

// secure makes the client's side of TLS of a connection to addr, which it owns then.
func (p *Plan) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	if p.TLS == nil {
		return conn, nil
	}
	cfg := p.TLS.Clone()
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			conn.Close()
			return nil, err
		}
		cfg.ServerName, _, _ = strings.Cut(host, "%") // no certificate has a zone
	}
	limit, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	c := tls.Client(conn, cfg)
	if err := c.HandshakeContext(limit); err != nil {
		conn.Close()
		if ctx.Err() != nil {
			return nil, Interrupted()
		}
		return nil, tlsError("greet server "+conn.RemoteAddr().String(), err)
	}
	return c, nil
}

func tlsError(operation string, err error) error {
	var (
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		name      x509.HostnameError
	)
	switch {
	case errors.As(err, &record):
		return PeerError(operation, errors.New("it does not speak TLS"),
			"run without --tls, or serve with --tls-cert and --tls-key")
	case errors.As(err, &authority):
		return PeerError(operation, errors.New("its certificate is signed by an authority that is not trusted here"),
			"--tls-ca with the file of that authority")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return PeerError(operation, fmt.Errorf("its certificate has expired or is not valid yet: %s", invalid.Detail),
			"a new certificate, or the clock of this machine")
	case errors.As(err, &name):
		return PeerError(operation, fmt.Errorf("its certificate is for another name: %s",
			short(strings.TrimPrefix(name.Error(), "x509: "))), "HOST as the certificate has it, or --tls-server-name")
	case refusedCertificate(operation, err) != nil:
		return refusedCertificate(operation, err)
	case errors.Is(err, context.DeadlineExceeded):
		return PeerError(operation, fmt.Errorf("%w to TLS in time", errSilent),
			"rdmaperf serve on that port, or a longer --timeout")
	}
	return PeerError(operation, fmt.Errorf("TLS: %s", short(lossCause(err).Error())), "the server's log")
}

// refusedCertificate is what a server said of this side's certificate (RFC 8446 §6.2), which may come after the
// handshake; nil where err is something else.
func refusedCertificate(operation string, err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return nil
	}
	said := op.Err.Error()
	switch {
	case strings.Contains(said, "certificate required"):
		return PeerError(operation, errors.New("it wants a certificate of the client"), "--tls-cert and --tls-key")
	case strings.Contains(said, "certificate"): // bad, expired, unknown, of an unknown authority
		return PeerError(operation, fmt.Errorf("it refuses the client's certificate (%s)",
			strings.TrimPrefix(said, "tls: ")), "a certificate of an authority in the server's --tls-client-ca")
	}
	return nil
}
