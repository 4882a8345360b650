package lite

import (
	"context"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type member struct {
	ID   int
	Addr string
}

type membersRequest struct{ Addr string }

type membersAnswer struct{ Members []member }

// join connects to the manager, which assigns a number, and to every node that joined before.
func (n *Node) join(ctx context.Context) error {
	n.id = -1
	if n.manager != nil {
		n.id = 0
	}
	n.wg.Go(n.pollLoop)
	n.wg.Go(n.acceptLoop)
	n.wg.Go(n.beatLoop)
	if n.manager != nil {
		return nil
	}
	if err := n.dial(ctx, n.cfg.Manager, -1); err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok {
		n.ctlMu.Lock()
		most := n.ctl.cfg.Timeout
		n.ctl.cfg.Timeout = min(most, max(time.Until(end), n.cfg.Beat))
		n.ctlMu.Unlock()
		defer func() {
			n.ctlMu.Lock()
			n.ctl.cfg.Timeout = most
			n.ctlMu.Unlock()
		}()
	}
	var a membersAnswer
	if err := n.ctl.control(0, opMembers, membersRequest{n.lis.Addr()}, &a); err != nil {
		return err
	}
	for _, m := range a.Members {
		if m.ID == 0 || m.ID == n.id {
			continue
		}
		if err := n.dialMember(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// dialMember dials a member, unless it leaves meanwhile.
func (n *Node) dialMember(ctx context.Context, m member) error {
	end := time.Now().Add(n.cfg.Timeout)
	for {
		err := n.dial(ctx, m.Addr, m.ID)
		if err == nil {
			return nil
		}
		var now membersAnswer
		if err := n.ctl.control(0, opMembers, membersRequest{n.lis.Addr()}, &now); err != nil {
			return err
		}
		switch {
		case !slices.Contains(now.Members, m):
			return nil
		case time.Now().After(end) || ctx.Err() != nil:
			return &rdma.OpError{Op: "connect to node", Object: m.Addr, Err: err}
		}
		time.Sleep(n.cfg.Beat)
	}
}

// Await waits until count nodes are members, this one included.
func (n *Node) Await(ctx context.Context, count int) error {
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for len(n.Members()) < count {
		select {
		case <-t.C:
		case <-ctx.Done():
			return opError("await", "members", ctx.Err())
		case <-n.ctx.Done():
			return opError("await", "members", ErrClosed)
		}
	}
	return nil
}
