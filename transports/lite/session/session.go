// Package session implements transports.Session over LITE once, for the nodes of packages stack and daemonstack. [Node]
// and [User] are what it needs of either.
//
// A dialler joins the listener's cluster and calls its port 0 with a question that names its window. The answer has the
// port that both ends open for the session's sends, and the name of the listener's window, or why there is no session.
// Each end maps the other's window for reads, writes and atomics; a send is a one-way message to the port.
package session

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	batchMost     = 64 // operations that go to the node at once
	maxPriorities = 8  // that of the work requests of the waist
)

type receive struct {
	off  uint64
	len  uint32
	slot uint32
}

// session is two windows. It belongs to one goroutine.
type session struct {
	node    *Shared
	peer    int // node
	port    int
	release func()

	user       User
	byPriority [maxPriorities]User // made when needed; user is [0]
	users      []User              // those that exist
	name       string
	win        []byte
	base       uint64 // of win in the node's memory
	own, far   lite.Handle
	farLen     uint64
	kinds      transports.KindSet
	mostSend   uint32
	fence      bool // the device has it

	recvs      []receive // ring
	recvDepth  int
	head, tail uint32
	done       [32]lite.Done
	batch      [batchMost]lite.Op
	turn       bool
	idle       int
	gone       error // why the peer ended the session
	err        error
	closed     bool
}

func (s *Sessions) newSession(ctx context.Context, n *Shared, cfg transports.Config, peer int) (*session, error) {
	most, _ := RingFor(cfg.Window)
	x := &session{node: n, peer: peer, kinds: s.caps.Kinds, fence: s.fence, mostSend: uint32(most),
		recvs: make([]receive, 1<<bits.Len(uint(cfg.RecvDepth-1))), recvDepth: cfg.RecvDepth}
	if err := x.create(ctx, cfg, s.number()); err != nil {
		return nil, errors.Join(err, x.abandon())
	}
	return x, nil
}

func (x *session) create(ctx context.Context, cfg transports.Config, number int) (err error) {
	if x.user, err = x.node.User(ctx, cfg.SendDepth, cfg.RecvDepth); err != nil {
		return err
	}
	x.byPriority[0], x.users = x.user, append(x.users, x.user)
	if x.win, err = x.user.Alloc(cfg.Window); err != nil {
		return fmt.Errorf("window of %d bytes: %w", cfg.Window, err)
	}
	if x.base, err = x.user.Offset(x.win); err != nil {
		return err
	}
	x.name = fmt.Sprintf("window-%d-%d", x.user.ID(), number)
	x.own, err = x.user.Publish(lite.RegionConfig{Name: x.name, Open: windowPerm}, x.win)
	return err
}

// meet opens the port for the peer's sends, of one number at both ends, and maps the peer's window.
func (x *session) meet(port int, name string, size uint64) (err error) {
	if err = x.user.Open(port, int(x.mostSend)); err != nil {
		return err
	}
	x.port, x.farLen = port, size
	x.far, err = x.user.Map(name, wantedPerm(x.kinds), "")
	return err
}

// withPriority is the user for operations of a priority below maxPriorities.
func (x *session) withPriority(priority uint8) (User, error) {
	if u := x.byPriority[priority]; u != nil {
		return u, nil
	}
	u, err := x.user.WithPriority(priority)
	if err != nil {
		return nil, postError(err)
	}
	if u != x.user {
		x.users = append(x.users, u)
	}
	x.byPriority[priority] = u
	return u, nil
}

func (x *session) Local() []byte { return x.win }

func (x *session) RemoteLen() uint64 { return x.farLen }

// Post starts operations in order; consecutive one-sided ones of one priority go to the node together.
func (x *session) Post(ops []transports.Op) (n int, err error) {
	if x.err != nil {
		return 0, x.err
	}
	for n < len(ops) {
		o := &ops[n]
		k := 0
		for n+k < len(ops) && k < batchMost && ops[n+k].Priority == o.Priority {
			if err = x.convert(&ops[n+k], &x.batch[k]); err != nil {
				break
			}
			k++
		}
		if k == 0 {
			if err == errTwoSided {
				err = x.post(o)
			}
			if err != nil {
				return n, err
			}
			n++
			continue
		}
		u, err := x.withPriority(o.Priority)
		if err != nil {
			return n, err
		}
		k, err = u.Post(x.batch[:k])
		if n += k; err != nil {
			return n, postError(err)
		}
	}
	return n, nil
}

// check is what every operation must be; size is that of its local bytes.
func (x *session) check(o *transports.Op, size uint32) error {
	switch {
	case !x.kinds.Has(o.Kind) || o.Kind == transports.KindCall || o.Flags&transports.Fence != 0 && !x.fence:
		return rdma.ErrNotSupported
	case o.Flags&transports.Inline != 0 || o.Priority >= maxPriorities ||
		o.Local > uint64(len(x.win)) || uint64(size) > uint64(len(x.win))-o.Local:
		return rdma.ErrInvalid
	}
	return nil
}

var errTwoSided = errors.New("a send or a receive")

// convert makes a one-sided operation LITE's; errTwoSided for others.
func (x *session) convert(o *transports.Op, to *lite.Op) error {
	kind, atomic, ok := oneSided(o.Kind)
	if !ok {
		return errTwoSided
	}
	size := o.Len
	if atomic {
		if size != 0 && size != 8 {
			return rdma.ErrInvalid
		}
		size = 8
	}
	if err := x.check(o, size); err != nil {
		return err
	}
	if o.Remote > x.farLen || uint64(size) > x.farLen-o.Remote || atomic && o.Remote%8 != 0 {
		return rdma.ErrInvalid
	}
	*to = lite.Op{Handle: x.far, Off: o.Remote, Local: x.base + o.Local, Add: o.Add, Swap: o.Swap, Len: size,
		Slot: o.Slot, Kind: kind, Unsignaled: o.Flags&transports.Unsignaled != 0, Fence: o.Flags&transports.Fence != 0}
	return nil
}

func (x *session) post(o *transports.Op) error {
	if err := x.check(o, o.Len); err != nil {
		return err
	}
	switch o.Kind {
	case transports.KindRecv:
		if int(x.tail-x.head) >= x.recvDepth {
			return rdma.ErrQueueFull
		}
		i := x.tail & uint32(len(x.recvs)-1)
		if err := x.user.PostReceive(int(i), x.base+o.Local, o.Len); err != nil {
			return postError(err)
		}
		x.recvs[i] = receive{o.Local, o.Len, o.Slot}
		x.tail++
		return nil
	case transports.KindSend:
		if o.Len > x.mostSend {
			return rdma.ErrInvalid
		}
		u, err := x.withPriority(o.Priority)
		if err != nil {
			return err
		}
		return postError(u.PostMessage(x.peer, x.port, 0, x.base+o.Local, o.Len, o.Slot,
			o.Flags&transports.Unsignaled != 0, o.Flags&transports.Fence != 0))
	}
	return rdma.ErrNotSupported
}

func (x *session) PingPong([]transports.PingPongStep, []transports.Done) (int, error) {
	return 0, rdma.ErrNotSupported
}

// Wait is not there: Dial and Listen refuse event mode.
func (x *session) Wait(context.Context) error {
	if x.closed {
		return rdma.ErrClosed
	}
	return rdma.ErrState
}

// Close ends the session behind everything that was posted, and frees the window. Idempotent.
func (x *session) Close() error {
	if x.closed {
		return nil
	}
	if x.err == nil && x.gone == nil {
		x.user.Bye(x.peer)
	}
	return x.abandon()
}

func (x *session) abandon() (err error) {
	x.closed, x.err = true, rdma.ErrClosed
	for i := len(x.users) - 1; i > 0; i-- {
		err = errors.Join(err, x.users[i].Close())
	}
	if u := x.user; u != nil {
		if x.far != 0 {
			_ = u.Unmap(x.far) // the region is the peer's
		}
		freed := true
		if x.own != 0 {
			freed = u.FreeRegion(x.own) == nil
		}
		if x.win != nil && freed {
			_ = u.Free(x.win) // Alloc gave it
		}
		err = errors.Join(err, u.Close())
	}
	x.win = nil
	if x.release != nil {
		x.release()
	}
	return errors.Join(err, x.node.Done())
}
