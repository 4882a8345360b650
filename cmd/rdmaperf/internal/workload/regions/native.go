package regions

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// native is a registration for each region.
type native struct {
	pair     *pairs.Devices
	src, mem rdma.Buffer
	mr       rdma.MR
	regions  []rdma.MR
	wr       [1]rdma.SendWR
	wcs      [depth]rdma.WC
	each     int
}

func openNative(ctx context.Context, r *engine.OwnRun, o *options) (t target, cost made, clock *rdma.Clock, err error) {
	n := &native{each: int(o.Total) / o.Regions}
	defer func() {
		if err != nil {
			_, e := n.end()
			err = errors.Join(err, e)
		}
	}()
	if n.pair, err = pairs.OpenDevices(ctx, r, 1, depth); err != nil {
		return nil, cost, nil, err
	}
	most := slices.Max(o.Sizes)
	if n.src, err = rdma.Alloc(most); err != nil {
		return nil, cost, nil, err
	}
	pattern(n.src.Bytes())
	if n.mr, err = n.pair.Devs[0].RegMR(0, n.src, rdma.LocalWrite); err != nil {
		return nil, cost, nil, err
	}
	if n.mem, err = rdma.Alloc(int(o.Total)); err != nil {
		return nil, cost, nil, err
	}
	begin := time.Now()
	for i := range o.Regions {
		part, err := n.mem.Slice(i*n.each, n.each)
		if err != nil {
			return nil, cost, nil, err
		}
		mr, err := n.pair.Devs[1].RegMR(0, part, rdma.LocalWrite|rdma.RemoteWrite)
		if err != nil {
			return nil, cost, nil, err
		}
		n.regions = append(n.regions, mr)
	}
	cost.make = time.Since(begin) / time.Duration(o.Regions)
	return n, cost, n.pair.Devs[0].Caps().Clock, nil
}

func (n *native) write(region int, off uint64, size int, slot uint32) (bool, error) {
	m := n.regions[region]
	wr := &n.wr[0]
	wr.ID, wr.Op, wr.Flags, wr.NumSGE = uint64(slot), rdma.OpWrite, rdma.Signaled, 1
	wr.RemoteAddr, wr.RKey = m.Addr()+off, m.RKey()
	wr.SGE[0] = rdma.SGE{Addr: n.src.Addr(), Len: uint32(size), LKey: n.mr.LKey()}
	_, err := n.pair.QPs[0][0].PostSend(n.wr[:])
	if err == rdma.ErrQueueFull {
		return false, nil
	}
	return err == nil, err
}

func (n *native) poll() (int, error) {
	k, err := n.pair.CQs[0].Poll(n.wcs[:])
	for i := range n.wcs[:k] {
		if n.wcs[i].Status != rdma.StatusSuccess {
			return k, &rdma.StatusError{WC: n.wcs[i]}
		}
	}
	return k, err
}

func (n *native) check(region int, off uint64, size int) error {
	at := region*n.each + int(off)
	// A completion may be local: the bytes may be on their way.
	for end := time.Now().Add(10 * time.Second); !bytes.Equal(n.mem.Bytes()[at:at+size], n.src.Bytes()[:size]); {
		if _, err := n.pair.CQs[1].Poll(n.wcs[:]); err != nil {
			return err
		}
		if time.Now().After(end) {
			return corrupt(region, off)
		}
	}
	return nil
}

func (n *native) end() (each time.Duration, err error) {
	var errs []error
	if n.pair != nil {
		errs = append(errs, n.pair.Disconnect())
	}
	begin := time.Now()
	for _, m := range n.regions {
		errs = append(errs, m.Close())
	}
	if len(n.regions) > 0 {
		each = time.Since(begin) / time.Duration(len(n.regions))
	}
	if n.mr != nil {
		errs = append(errs, n.mr.Close())
	}
	errs = append(errs, n.mem.Free(), n.src.Free())
	if n.pair != nil {
		errs = append(errs, n.pair.Close())
	}
	return each, errors.Join(errs...)
}
