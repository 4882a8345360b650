package regions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// named is regions of LITE, at a node that the other one writes to.
type named struct {
	pair    *pairs.Nodes // the first has the regions
	clients [2]*lite.Client
	owned   []lite.Handle // of the first
	handles []lite.Handle // of the second
	src     []byte
	most    int // bytes of a write
	at      uint64
	ops     [1]lite.Op
	done    [depth]lite.Done
}

func openNamed(ctx context.Context, r *engine.Run, o *options) (t target, cost made, clock *rdma.Clock,
	err error) {
	n := &named{most: slices.Max(o.Sizes)}
	defer func() {
		if err != nil {
			_, e := n.end()
			err = errors.Join(err, e)
		}
	}()
	each := o.Total / int64(o.Regions)
	if n.pair, err = pairs.OpenNodes(ctx, r, [2]int{int(o.Total) + 64*o.Regions, depth * n.most}); err != nil {
		return nil, cost, nil, err
	}
	for i, node := range n.pair.Nodes {
		if n.clients[i], err = node.Client(lite.ClientConfig{Depth: depth, Wait: lite.WaitPoll}); err != nil {
			return nil, cost, nil, err
		}
	}
	begin := time.Now()
	for i := range o.Regions {
		h, err := n.clients[0].Malloc(lite.RegionConfig{Name: fmt.Sprint("r", i), Size: uint64(each),
			Open: lite.PermWrite | lite.PermRead})
		if err != nil {
			return nil, cost, nil, err
		}
		if n.owned = append(n.owned, h); i%256 == 0 && ctx.Err() != nil {
			return nil, cost, nil, ctx.Err()
		}
	}
	cost.make = time.Since(begin) / time.Duration(o.Regions)
	begin = time.Now()
	for i := range o.Regions {
		h, err := n.clients[1].Map(fmt.Sprint("r", i), lite.PermWrite|lite.PermRead, "")
		if err != nil {
			return nil, cost, nil, err
		}
		if n.handles = append(n.handles, h); i%256 == 0 && ctx.Err() != nil {
			return nil, cost, nil, ctx.Err()
		}
	}
	cost.mapped = time.Since(begin) / time.Duration(o.Regions)
	if n.src, err = n.clients[1].Alloc(depth * n.most); err != nil {
		return nil, cost, nil, err
	}
	n.at, err = n.clients[1].Offset(n.src)
	return n, cost, n.pair.Devs[1].Caps().Clock, err
}

func (n *named) Source(slot int) []byte { return n.src[slot*n.most:][:n.most] }

func (n *named) Write(slot int, at pairs.Place, size int) (bool, error) {
	n.ops[0] = lite.Op{Kind: lite.OpWrite, Handle: n.handles[at.Region], Off: at.Off, Local: n.at + uint64(slot*n.most),
		Len: uint32(size), Slot: uint32(slot)}
	_, err := n.clients[1].Post(n.ops[:])
	if err == rdma.ErrQueueFull {
		return false, nil
	}
	return err == nil, err
}

func (n *named) Poll(ended func(int)) (int, error) {
	k, err := n.clients[1].Poll(n.done[:])
	for i := range n.done[:k] {
		if n.done[i].Status != rdma.StatusSuccess {
			return k, &rdma.StatusError{WC: rdma.WC{Status: n.done[i].Status}}
		}
		ended(int(n.done[i].Slot))
	}
	if err != nil {
		return k, err
	}
	return k, n.Drive()
}

func (n *named) Read(at pairs.Place, b []byte) error {
	return n.clients[0].Read(n.owned[at.Region], at.Off, b)
}

// Drive keeps the polling goroutine of the far node asleep, too.
func (n *named) Drive() error {
	n.pair.Nodes[0].Progress()
	return nil
}

func (n *named) end() (each time.Duration, err error) {
	var errs []error
	// Each is a call to every node that has it; enough of them say what one costs.
	some := n.owned[:min(len(n.owned), 64)]
	begin := time.Now()
	for _, h := range some {
		errs = append(errs, n.clients[0].FreeRegion(h))
	}
	if len(some) > 0 {
		each = time.Since(begin) / time.Duration(len(some))
	}
	if n.pair != nil {
		errs = append(errs, n.pair.Close())
	}
	return each, errors.Join(errs...)
}
