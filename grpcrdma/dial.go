package grpcrdma

import (
	"context"
	"fmt"
	"net"
)

// DialContext connects to a Listener at addr, "host:port". ctx bounds it as it
// bounds [rdma.QP].Connect, and does not govern the connection. Errors are
// *net.OpError with the device's cause: rdma.ErrUnreachable, rdma.ErrRejected,
// and rdma.ErrProtocol for a peer of another kind.
func (n *Net) DialContext(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.dial(ctx, addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "rdma", Addr: Addr(addr), Err: err}
	}
	return c, nil
}

func (n *Net) dial(ctx context.Context, addr string) (*Conn, error) {
	if err := n.reserve(); err != nil {
		return nil, err
	}
	defer n.unreserve()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	c, err := n.newConn()
	if err != nil {
		return nil, err
	}
	c.local, c.remote = Addr(fmt.Sprintf("%s qp %d", n.dev.Name(), c.qp.Num())), Addr(addr)
	if err := c.connect(ctx, addr); err != nil {
		c.release()
		return nil, err
	}
	if err := n.enter(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) connect(ctx context.Context, addr string) error {
	got, err := c.qp.Connect(ctx, addr, c.param())
	if err != nil {
		return err
	}
	g, err := parseGreeting(got.PrivateData)
	if err != nil {
		return err
	}
	c.meet(g)
	// The initiator sends first, whatever the application does: without the
	// peer-to-peer model the passive side holds everything back until then (RFC
	// 5044 §7.1.2). A credit of nothing does it.
	c.returnCredit(true)
	return nil
}
