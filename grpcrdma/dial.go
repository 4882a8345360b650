package grpcrdma

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// busyWait bounds how long a dialler without a deadline retries a listener whose backlog is
	// full, as long as a request waits in a backlog of iWARP.
	busyWait = 10 * time.Second
	// firstPause and longestPause are between retries: doubled each time, and half of it random,
	// so that diallers that were refused together do not retry together. The first is about what a
	// listener takes for ten connections.
	firstPause   = 5 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// DialContext connects to a Listener at addr, "host:port", which may begin with "rdma:///". ctx
// bounds it as it bounds [rdma.QP].Connect, and does not govern the connection. A listener whose
// backlog is full is asked again until ctx ends, or for 10 s if it has no deadline: devices refuse
// there, where a kernel lets the dialler of TCP wait. Errors are
// *net.OpError with the device's cause: rdma.ErrUnreachable, rdma.ErrRejected with what
// the listener has against it, and rdma.ErrProtocol for a peer of another kind.
func (n *Net) DialContext(ctx context.Context, addr string) (net.Conn, error) {
	addr = host(addr)
	c, err := n.dialAgain(ctx, addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "rdma", Addr: Addr(addr), Err: err}
	}
	return c, nil
}

func (n *Net) dialAgain(ctx context.Context, addr string) (*Conn, error) {
	if _, ok := ctx.Deadline(); !ok {
		bounded, cancel := context.WithTimeout(ctx, busyWait)
		defer cancel()
		ctx = bounded
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		c, err := n.dial(ctx, addr)
		var no *rdma.RejectError
		if err == nil || !errors.As(err, &no) {
			return c, err
		}
		if why := refusalReason(no.PrivateData); why != "" {
			return nil, fmt.Errorf("%w: %s", err, why)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-n.ctx.Done():
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("%w, again and again: its backlog is full, or it takes no connections of this kind",
				err)
		}
	}
}

// refusalMagic begins the private data of a refusal; the rest is its reason, in words.
const refusalMagic = "rpf-no:"

// refusal is the reason of a rejection, as private data. A rejection without it is the device's.
func refusal(why error, room int) []byte {
	b := []byte(refusalMagic + why.Error())
	return b[:min(len(b), room)]
}

func refusalReason(private []byte) string {
	// Devices may pad private data with zeros (InfiniBand CM has a fixed size).
	why, ok := strings.CutPrefix(strings.TrimRight(string(private), "\x00"), refusalMagic)
	if !ok {
		return ""
	}
	return strconv.QuoteToGraphic(why) // it is the peer's text
}

func (n *Net) dial(ctx context.Context, addr string) (*Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	return n.join(func(c *Conn) error {
		c.local, c.remote = Addr(fmt.Sprintf("%s qp %d", n.dev.Name(), c.qp.Num())), Addr(addr)
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
	})
}
