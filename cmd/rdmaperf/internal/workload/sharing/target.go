package sharing

import (
	"context"
	"errors"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemonstack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// target is a window at the far end, with a place for each user.
type target struct {
	pairs.Target           // a user is a slot
	queuePairs, registered func() int
	clock                  *rdma.Clock // nil: the host's
	close                  func() error
}

func openNative(ctx context.Context, r *engine.Run, users int) (*target, error) {
	size := r.Point.Size
	n, _, err := pairs.OpenNative(ctx, r, users, users, size, 1, users*pairs.Step(size))
	if err != nil {
		return nil, err
	}
	end := func() error { _, err := n.Close(); return err }
	return &target{n, func() int { return users }, n.Registered, n.Devs[0].Caps().Clock, end}, nil
}

func openTier(ctx context.Context, r *engine.Run, users int) (*target, error) {
	size := r.Point.Size
	window := users * pairs.Step(size)
	// Each user has a buffer for answers, too.
	p, err := pairs.OpenNodes(ctx, r, [2]int{window, window + users*8<<10})
	if err != nil {
		return nil, err
	}
	left := func() int { return p.Nodes[0].Left() + p.Nodes[1].Left() }
	free := 0 // of the arenas, before the users come
	n, err := pairs.NewNamed(p, lite.ClientConfig{})
	if err == nil {
		free = left()
		err = n.Make("window", uint64(window))
	}
	if err == nil {
		err = n.Clients(users, users, size, lite.ClientConfig{Depth: 1, Wait: lite.WaitPoll})
	}
	if err == nil {
		err = n.Map("window")
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &target{n, func() int { return p.Nodes[1].Counts().Links }, func() int { return free - left() },
		p.Devs[1].Caps().Clock, p.Close}, nil
}

// processes is a client of one daemon for each user, with a mapping, rings and a socket of its own.
type processes struct {
	stack   *daemonstack.Stack
	daemons [2]*daemonstack.Process // the far one, and that of the users
	home    *daemon.Client
	own     lite.Handle
	clients []*daemon.Client
	handles []lite.Handle
	at      []uint64
	src     [][]byte
	size    int
	ops     [1]lite.Op
	done    [1]lite.Done
	next    int
}

func placeOf(size int) int { return 128<<10 + pairs.Step(size) }

func openProcesses(ctx context.Context, r *engine.Run, users int) (_ *target, err error) {
	p := &processes{stack: r.Stack.(*daemonstack.Stack), size: r.Point.Size}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	window := users * pairs.Step(p.size)
	if p.daemons[0], err = p.stack.Start(ctx, "", "", daemonstack.Need{Clients: 1, Place: placeOf(window),
		Arena: 64<<20 + window}); err != nil {
		return nil, err
	}
	if p.home, err = p.daemons[0].Dial(ctx, daemon.ClientConfig{}); err != nil {
		return nil, err
	}
	if p.daemons[1], err = p.stack.Start(ctx, ":0", p.home.Addr(),
		daemonstack.Need{Clients: users, Place: placeOf(p.size), Arena: 64<<20 + users*128<<10}); err != nil {
		return nil, err
	}
	if p.own, err = p.home.Malloc(lite.RegionConfig{Name: "window", Size: uint64(window),
		Open: lite.PermWrite}); err != nil {
		return nil, err
	}
	for range users {
		c, err := p.daemons[1].Dial(ctx, daemon.ClientConfig{})
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, c)
		b, err := c.Alloc(p.size)
		if err != nil {
			return nil, err
		}
		at, err := c.Offset(b)
		if err != nil {
			return nil, err
		}
		h, err := c.Map("window", lite.PermWrite, "")
		if err != nil {
			return nil, err
		}
		p.at, p.handles, p.src = append(p.at, at), append(p.handles, h), append(p.src, b)
	}
	return &target{p, p.stack.Links, p.registered, nil, p.close}, nil
}

func (p *processes) Source(user int) []byte { return p.src[user] }

func (p *processes) Write(user int, at pairs.Place, size int) (bool, error) {
	p.ops[0] = lite.Op{Kind: lite.OpWrite, Handle: p.handles[user], Off: at.Off, Local: p.at[user], Len: uint32(size),
		Slot: uint32(user)}
	_, err := p.clients[user].Post(p.ops[:])
	return pairs.Posted(err)
}

// Poll looks at the clients in turn. Who finds nothing waits as the stack says, so that a crossing is paid.
func (p *processes) Poll(ended func(int)) (int, error) {
	for range p.clients {
		p.next = (p.next + 1) % len(p.clients)
		k, err := p.clients[p.next].Poll(p.done[:])
		if err != nil {
			return 0, err
		}
		if k == 0 {
			continue
		}
		if p.done[0].Status != rdma.StatusSuccess {
			return 0, &rdma.StatusError{WC: rdma.WC{Status: p.done[0].Status}}
		}
		ended(int(p.done[0].Slot))
		return 1, nil
	}
	if c := p.clients[p.next]; c.Pending() > 0 {
		c.Sleep()
	}
	return 0, nil
}

func (p *processes) Read(at pairs.Place, b []byte) error { return p.home.Read(p.own, at.Off, b) }
func (p *processes) Drive() error                        { return nil } // the daemon does

func (p *processes) registered() int {
	n := p.home.Used()
	for _, c := range p.clients {
		n += c.Used()
	}
	return n
}

func (p *processes) close() error {
	var errs []error
	for _, c := range append(p.clients, p.home) {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	for i := len(p.daemons) - 1; i >= 0; i-- {
		if p.daemons[i] != nil {
			errs = append(errs, p.daemons[i].Close())
		}
	}
	return errors.Join(errs...)
}
