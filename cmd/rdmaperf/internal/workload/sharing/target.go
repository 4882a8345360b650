package sharing

import (
	"context"
	"errors"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// target is a window at the far end, with a place for each user.
type target interface {
	pairs.Target // a user is a slot
	queuePairs() int
	registered() int
	clock() *rdma.Clock
	close() error
}

func clockOf(t target) (now func() int64, name string) {
	if c := t.clock(); c != nil {
		return c.Now, "the model's"
	}
	return func() int64 { return time.Now().UnixNano() }, "CLOCK_MONOTONIC"
}

// step is what lies between the places of two users, bytes.
func step(size int) int { return (size + 63) &^ 63 }

// native is a queue pair for each user.
type native struct {
	pair  *pairs.Devices
	bufs  [2]rdma.Buffer
	mrs   [2]rdma.MR
	users int
	size  int
	wr    [1]rdma.SendWR
	wcs   [64]rdma.WC
}

func openNative(ctx context.Context, r *engine.Run, users int) (t target, err error) {
	n := &native{users: users, size: r.Point.Size}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.pair, err = pairs.OpenDevices(ctx, r, users, 1); err != nil {
		return nil, err
	}
	for i := range n.bufs {
		if n.bufs[i], err = rdma.Alloc(users * step(n.size)); err != nil {
			return nil, err
		}
		if n.mrs[i], err = n.pair.Devs[i].RegMR(0, n.bufs[i], rdma.LocalWrite|rdma.RemoteWrite); err != nil {
			n.mrs[i] = nil
			return nil, err
		}
	}
	return n, nil
}

func (n *native) Source(user int) []byte { return n.bufs[0].Bytes()[user*step(n.size):][:n.size] }

func (n *native) Write(user int, at pairs.Place, size int) (bool, error) {
	wr := &n.wr[0]
	wr.ID, wr.Op, wr.Flags, wr.NumSGE = uint64(user), rdma.OpWrite, rdma.Signaled, 1
	wr.RemoteAddr, wr.RKey = n.mrs[1].Addr()+at.Off, n.mrs[1].RKey()
	wr.SGE[0] = rdma.SGE{Addr: n.mrs[0].Addr() + uint64(user*step(n.size)), Len: uint32(size), LKey: n.mrs[0].LKey()}
	_, err := n.pair.QPs[0][user].PostSend(n.wr[:])
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
	return k, err
}

func (n *native) Read(at pairs.Place, b []byte) error {
	copy(b, n.bufs[1].Bytes()[at.Off:])
	return nil
}

func (n *native) Drive() error {
	_, err := n.pair.CQs[1].Poll(n.wcs[:])
	return err
}

func (n *native) queuePairs() int    { return n.users }
func (n *native) registered() int    { return n.bufs[0].Len() + n.bufs[1].Len() }
func (n *native) clock() *rdma.Clock { return n.pair.Devs[0].Caps().Clock }

func (n *native) close() error {
	var errs []error
	if n.pair != nil {
		errs = append(errs, n.pair.Disconnect())
	}
	for i := range n.mrs {
		if n.mrs[i] != nil {
			errs = append(errs, n.mrs[i].Close())
		}
		errs = append(errs, n.bufs[i].Free())
	}
	if n.pair != nil {
		errs = append(errs, n.pair.Close())
	}
	return errors.Join(errs...)
}

// tier is a client of one node of LITE for each user.
type tier struct {
	pair    *pairs.Nodes
	home    *lite.Client // at the far end
	own     lite.Handle
	handle  lite.Handle
	clients []*lite.Client
	at      []uint64
	src     [][]byte
	size    int
	ops     [1]lite.Op
	done    [1]lite.Done
	next    int
	free    int // of the arenas, before the users came
}

func openTier(ctx context.Context, r *engine.Run, users int) (_ target, err error) {
	t := &tier{size: r.Point.Size}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	// Each user has a buffer for answers, too.
	if t.pair, err = pairs.OpenNodes(ctx, r,
		[2]int{users * step(t.size), users * (step(t.size) + 8<<10)}); err != nil {
		return nil, err
	}
	if t.home, err = t.pair.Nodes[0].Client(lite.ClientConfig{}); err != nil {
		return nil, err
	}
	t.free = t.left()
	if t.own, err = t.home.Malloc(lite.RegionConfig{Name: "window", Size: uint64(users * step(t.size)),
		Open: lite.PermWrite}); err != nil {
		return nil, err
	}
	for range users {
		c, err := t.pair.Nodes[1].Client(lite.ClientConfig{Depth: 1, Wait: lite.WaitPoll})
		if err != nil {
			return nil, err
		}
		b, err := c.Alloc(t.size)
		if err != nil {
			return nil, err
		}
		at, err := c.Offset(b)
		if err != nil {
			return nil, err
		}
		t.clients, t.at, t.src = append(t.clients, c), append(t.at, at), append(t.src, b)
	}
	t.handle, err = t.clients[0].Map("window", lite.PermWrite, "")
	return t, err
}

func (t *tier) left() int { return t.pair.Nodes[0].Left() + t.pair.Nodes[1].Left() }

func (t *tier) Source(user int) []byte { return t.src[user] }

func (t *tier) Write(user int, at pairs.Place, size int) (bool, error) {
	t.ops[0] = lite.Op{Kind: lite.OpWrite, Handle: t.handle, Off: at.Off, Local: t.at[user], Len: uint32(size),
		Slot: uint32(user)}
	_, err := t.clients[user].Post(t.ops[:])
	if err == rdma.ErrQueueFull {
		return false, nil
	}
	return err == nil, err
}

// Poll looks at the clients in turn until one of them has something: on a device with a
// clock of its own the next look would move that, and the user who is free waits.
func (t *tier) Poll(ended func(int)) (int, error) {
	for range t.clients {
		t.next = (t.next + 1) % len(t.clients)
		k, err := t.clients[t.next].Poll(t.done[:])
		if err != nil {
			return 0, err
		}
		if k == 0 {
			continue
		}
		if t.done[0].Status != rdma.StatusSuccess {
			return 0, &rdma.StatusError{WC: rdma.WC{Status: t.done[0].Status}}
		}
		ended(int(t.done[0].Slot))
		return 1, nil
	}
	return 0, nil
}

func (t *tier) Read(at pairs.Place, b []byte) error { return t.home.Read(t.own, at.Off, b) }
func (t *tier) Drive() error                        { return nil } // the node does

func (t *tier) queuePairs() int    { return t.pair.Nodes[1].Counts().Links }
func (t *tier) registered() int    { return t.free - t.left() }
func (t *tier) clock() *rdma.Clock { return t.pair.Devs[1].Caps().Clock }

func (t *tier) close() error {
	if t.pair == nil {
		return nil
	}
	return t.pair.Close()
}
