package grpcrdma

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"
)

func TestConnIsANetConn(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
			cfg.Ring = 4 * minRing // so that Write has to wait, too
			e := newPair(t, p, cfg, cfg)
			c1, c2 := e.conn()
			return c1, c2, func() { c1.Close(); c2.Close() }, nil
		})
	})
}
