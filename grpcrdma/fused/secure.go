package fused

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

// handshaker is a tls.Conn, or what wraps one.
type handshaker interface {
	HandshakeContext(context.Context) error
	ConnectionState() tls.ConnectionState
}

func greetingEnds(ctx context.Context, limit time.Duration) time.Time {
	deadline := time.Now().Add(limit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		return d
	}
	return deadline
}

// secure does the handshake, until deadline.
func (s *session) secure(ctx context.Context, deadline time.Time, cfg *Config) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	creds := cfg.Creds
	if h, ok := s.conn.(handshaker); ok && creds == nil {
		if err := h.HandshakeContext(ctx); err != nil {
			return err
		}
		s.auth = credentials.TLSInfo{State: h.ConnectionState(),
			CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
		s.use(s.conn)
		return nil
	}
	if creds == nil && !s.client { // as grpc-go: a server without credentials has nothing to say
		s.use(s.conn)
		return nil
	}
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	raw := s.conn
	if err := raw.SetDeadline(deadline); err != nil {
		return err
	}
	var conn net.Conn
	var err error
	if s.client {
		conn, s.auth, err = creds.ClientHandshake(ctx, cmp.Or(cfg.serverName, cfg.authority(raw)), raw)
	} else {
		conn, s.auth, err = creds.ServerHandshake(raw)
	}
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		return err
	}
	s.use(conn)
	return nil
}

func (s *session) peer() *peer.Peer {
	return &peer.Peer{Addr: s.conn.RemoteAddr(), LocalAddr: s.conn.LocalAddr(), AuthInfo: s.auth}
}

func (c *Config) agent() string {
	own := "grpc-go/" + grpc.Version
	if c.UserAgent == "" {
		return own
	}
	return c.UserAgent + " " + own
}

func (c *Config) authority(conn net.Conn) string {
	switch {
	case c.Authority != "":
		return c.Authority
	case c.Creds != nil && c.Creds.Info().ServerName != "":
		return c.Creds.Info().ServerName
	}
	return conn.RemoteAddr().String()
}
