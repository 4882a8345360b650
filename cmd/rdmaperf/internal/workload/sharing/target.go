package sharing

import (
	"context"
	"errors"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/transports/lite"
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
	end := func() error {
		_, err := n.Close()
		return err
	}
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
