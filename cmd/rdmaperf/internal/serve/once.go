package serve

import (
	"net"
	"sync"
)

// firstClient calls left when its first connection is closed.
type firstClient struct {
	net.Listener
	once sync.Once
	left func()
}

func (f *firstClient) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err == nil {
		f.once.Do(func() { c = &firstConn{Conn: c, left: f.left} })
	}
	return c, err
}

type firstConn struct {
	net.Conn
	once sync.Once
	left func()
}

func (c *firstConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.left)
	return err
}
