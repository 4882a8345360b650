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

// secure does the handshake, until the deadline of ctx.
func (s *session) secure(ctx context.Context, cfg *Config) error {
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
	deadline, _ := ctx.Deadline()
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

// named is the server's name in the configuration: Config.Authority, or that in Creds.
func (c *Config) named() string {
	if c.Authority == "" && c.Creds != nil {
		return c.Creds.Info().ServerName
	}
	return c.Authority
}

func (c *Config) authority(conn net.Conn) string {
	if name := c.named(); name != "" {
		return name
	}
	return conn.RemoteAddr().String()
}
