package regions

import (
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
	most     int // bytes of a write
}

func openNative(ctx context.Context, r *engine.Run, o *options) (t target, cost made, clock *rdma.Clock, err error) {
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
	n.most = slices.Max(o.Sizes)
	if n.src, err = rdma.Alloc(depth * n.most); err != nil {
		return nil, cost, nil, err
	}
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

func (n *native) Source(slot int) []byte { return n.src.Bytes()[slot*n.most:][:n.most] }

func (n *native) Write(slot int, at pairs.Place, size int) (bool, error) {
	m := n.regions[at.Region]
	wr := &n.wr[0]
	wr.ID, wr.Op, wr.Flags, wr.NumSGE = uint64(slot), rdma.OpWrite, rdma.Signaled, 1
	wr.RemoteAddr, wr.RKey = m.Addr()+at.Off, m.RKey()
	wr.SGE[0] = rdma.SGE{Addr: n.src.Addr() + uint64(slot*n.most), Len: uint32(size), LKey: n.mr.LKey()}
	_, err := n.pair.QPs[0][0].PostSend(n.wr[:])
	if err == rdma.ErrQueueFull {
		return false, nil
	}
	return err == nil, err
}

func (n *native) Poll(ended func(int)) (int, error) {
	k, err := n.pair.CQs[0].Poll(n.wcs[:])
	for i := range n.wcs[:k] {
		if n.wcs[i].Status != rdma.StatusSuccess {
			return k, &rdma.StatusError{WC: n.wcs[i]}
		}
		ended(int(n.wcs[i].ID))
	}
	if err != nil {
		return k, err
	}
	return k, n.Drive()
}

func (n *native) Read(at pairs.Place, b []byte) error {
	copy(b, n.mem.Bytes()[at.Region*n.each+int(at.Off):])
	return nil
}

func (n *native) Drive() error {
	_, err := n.pair.CQs[1].Poll(n.wcs[:])
	return err
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
