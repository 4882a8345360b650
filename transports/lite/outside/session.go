package outside

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
	"github.com/rdmaperf/rdmaperf/transports/lite/setup"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// idlePolls empty Polls pass between two looks at the clock, and aliveLook between two
	// at whether the peer's window is there: a question over the socket. Arbitrary.
	idlePolls = 1 << 10
	aliveLook = 100 * time.Millisecond
	// slack are places more for what is not signaled: a daemon takes and ends what is posted a
	// little later than a queue pair, and who posts without signals does not wait for that.
	slack = 16
	// closeGrace bounds the end of what is on its way when a session is closed. Arbitrary.
	closeGrace = 2 * time.Second
)

// session is two windows, each in the place of a client of its daemon. It belongs to one
// goroutine.
type session struct {
	stack   *Stack
	node    *shared
	client  *daemon.Client
	peer    int // node
	port    int // -1: not met
	release func()

	name     string
	win      []byte
	buf      rdma.Buffer // the window as memory of others
	base     uint64      // of win in the place
	own, far lite.Handle
	farLen   uint64
	kinds    transports.KindSet
	mostSend int
	fence    bool // the device has it

	depth    int
	sends    int
	slots    []uint32 // of posted receives, by their number
	free     []uint32 // numbers of receives that are not posted
	posted   []uint32 // in their order, a ring
	head     uint32
	tail     uint32
	hold     [32]lite.Done
	batch    [batchMost]lite.Op
	idle     int
	looked   time.Time
	turn     bool
	bye      bool
	why      error // with bye
	err      error
	closed   bool
	prepared bool
}

// batchMost is how many operations are handed on at once.
const batchMost = 32

func (s *Stack) newSession(ctx context.Context, d *shared, cfg transports.Config, peer int) (*session, error) {
	x := &session{stack: s, node: d, peer: peer, port: -1, kinds: s.Caps().Kinds, mostSend: longest(cfg.Window), depth: cfg.SendDepth,
		fence: s.caps.Features.Has(rdma.FeatFence), slots: make([]uint32, cfg.RecvDepth), posted: make([]uint32, 256)}
	for i := range cfg.RecvDepth {
		x.free = append(x.free, uint32(i))
	}
	if err := x.create(ctx, cfg); err != nil {
		return nil, errors.Join(err, x.abandon())
	}
	return x, nil
}

func (x *session) create(ctx context.Context, cfg transports.Config) (err error) {
	if x.client, err = x.node.Dial(ctx, daemon.ClientConfig{MaxReply: setup.MaxLine, Timeout: blockTime}); err != nil {
		return err
	}
	if x.win, err = x.client.Alloc(cfg.Window); err != nil {
		return fmt.Errorf("window of %d bytes: %w: the first session of a daemon says how large they are", cfg.Window, err)
	}
	if x.base, err = x.client.Offset(x.win); err != nil {
		return err
	}
	if x.buf, err = rdma.Foreign(x.win); err != nil {
		return err
	}
	x.name = fmt.Sprintf("window-%d-%d", x.client.ID(), x.stack.number())
	x.own, err = x.client.Publish(lite.RegionConfig{Name: x.name, Open: setup.Open}, x.win)
	return err
}

// meet opens the port for the peer's sends, whose number is the same at both ends, and maps
// the peer's window.
func (x *session) meet(port int, name string, size uint64) (err error) {
	if err = x.client.Open(port, x.mostSend); err != nil {
		return err
	}
	x.port = port
	x.farLen = size
	x.far, err = x.client.Map(name, setup.Want(x.kinds), "")
	return err
}

// Local is the own window; nil after Close.
func (x *session) Local() []byte { return x.win }

// RemoteLen is the size of the peer's window in bytes.
func (x *session) RemoteLen() uint64 { return x.farLen }

// Post starts operations in order; one-sided ones side by side are shown to the daemon
// together.
func (x *session) Post(ops []transports.Op) (n int, err error) {
	if x.err != nil {
		return 0, x.err
	}
	for n < len(ops) {
		k := 0
		for n+k < len(ops) && k < batchMost && x.room(&ops[n+k], k) && x.oneSided(&ops[n+k], &x.batch[k]) == nil {
			k++
		}
		if k > 0 {
			k, err = x.client.Post(x.batch[:k])
			x.sends += k
			if n += k; err != nil {
				return n, x.told(err)
			}
			continue
		}
		if err = x.post(&ops[n]); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// room tells whether there is a place for one more operation behind k others.
func (x *session) room(o *transports.Op, k int) bool {
	most := x.depth
	if o.Flags&transports.Unsignaled != 0 {
		most += slack
	}
	return x.sends+k < most
}

// check is what every operation must be; size is that of its local bytes.
func (x *session) check(o *transports.Op, size uint32) error {
	switch {
	case !x.kinds.Has(o.Kind) || o.Kind == transports.KindCall || o.Flags&transports.Fence != 0 && !x.fence:
		return rdma.ErrNotSupported
	case o.Flags&transports.Inline != 0 || o.Local > uint64(len(x.win)) || uint64(size) > uint64(len(x.win))-o.Local:
		return rdma.ErrInvalid
	}
	return nil
}

// oneSided is an operation as the daemon's client takes it.
func (x *session) oneSided(o *transports.Op, to *lite.Op) error {
	kind, atomic, ok := setup.OneSided(o.Kind)
	if !ok {
		return rdma.ErrNotSupported
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
	*to = lite.Op{Kind: kind, Handle: x.far, Off: o.Remote, Local: x.base + o.Local, Add: o.Add, Swap: o.Swap, Len: size, Slot: o.Slot,
		Unsignaled: o.Flags&transports.Unsignaled != 0, Fence: o.Flags&transports.Fence != 0}
	return nil
}

// post is one operation that no batch takes, or that fails.
func (x *session) post(o *transports.Op) error {
	if _, _, ok := setup.OneSided(o.Kind); ok {
		if err := x.oneSided(o, &x.batch[0]); err != nil {
			return err
		}
		return rdma.ErrQueueFull
	}
	if err := x.check(o, o.Len); err != nil {
		return err
	}
	switch o.Kind {
	case transports.KindRecv:
		if len(x.free) == 0 {
			return rdma.ErrQueueFull
		}
		i := x.free[len(x.free)-1]
		if err := x.client.PostReceive(x.port, x.base+o.Local, int(o.Len), int(i)); err != nil {
			return x.told(err)
		}
		x.free = x.free[:len(x.free)-1]
		x.slots[i] = o.Slot
		x.posted[x.tail%uint32(len(x.posted))] = i
		x.tail++
		return nil
	case transports.KindSend:
		switch {
		case int(o.Len) > x.mostSend:
			return rdma.ErrInvalid
		case !x.room(o, 0):
			return rdma.ErrQueueFull
		}
		if !x.prepared {
			if err := x.client.Prepare(x.peer, x.port); err != nil {
				return x.told(err)
			}
			x.prepared = true
		}
		err := x.client.PostMessage(x.peer, x.port, 0, x.base+o.Local, o.Len, o.Slot, o.Flags&transports.Unsignaled != 0)
		if err == nil {
			x.sends++
		}
		return x.told(err)
	}
	return rdma.ErrNotSupported
}

// told is an error of a post as the waist names it.
func (x *session) told(err error) error {
	if err == lite.ErrClosed {
		return fmt.Errorf("%w: the daemon is gone", rdma.ErrUnreachable)
	}
	return setup.Told(err)
}

// Poll moves finished operations into dst. Package outside says when it sleeps.
func (x *session) Poll(dst []transports.Done) (n int, err error) {
	if x.err != nil {
		return 0, x.err
	}
	// By turns, so that with room for one neither keeps the other from coming.
	if x.turn = !x.turn; x.turn {
		n = x.arrived(dst, x.ended(dst, 0))
	} else {
		n = x.ended(dst, x.arrived(dst, 0))
	}
	if n > 0 || len(dst) == 0 {
		x.idle = 0
		return n, nil
	}
	if x.bye {
		return x.flush(dst)
	}
	if x.stack.cfg.Cross && x.client.Waiting() {
		x.client.Sleep()
	}
	if x.idle++; x.idle%idlePolls == 0 || x.stack.cfg.Cross {
		if now := time.Now(); now.Sub(x.looked) > aliveLook {
			x.looked = now
			if _, err := x.client.Size(x.far); err != nil {
				x.bye, x.why = true, err
			}
		}
	}
	return 0, nil
}

// ended takes own operations.
func (x *session) ended(dst []transports.Done, n int) int {
	for n < len(dst) && x.client.Waiting() {
		before := x.client.Pending()
		k, _ := x.client.Poll(x.hold[:min(len(x.hold), len(dst)-n)]) // it never fails
		x.sends -= before - x.client.Pending()
		for i := range x.hold[:k] {
			dst[n] = setup.Done(&x.hold[i])
			n++
		}
		if k == 0 {
			break
		}
	}
	return n
}

// arrived takes messages, which lie in their receives.
func (x *session) arrived(dst []transports.Done, n int) int {
	for n < len(dst) && x.head != x.tail {
		m, err := x.client.Recv()
		if err != nil {
			if err == lite.ErrClosed {
				x.bye, x.why = true, err
			}
			break
		}
		i := uint32(m.Receive())
		if x.head == x.tail || x.posted[x.head%uint32(len(x.posted))] != i {
			x.bye, x.why = true, rdma.ErrProtocol // no daemon of ours: receives are taken in their order
			break
		}
		x.head++
		x.free = append(x.free, i)
		dst[n] = transports.Done{Slot: x.slots[i], Len: uint32(len(m.Payload)), Kind: transports.KindRecv}
		n++
	}
	return n
}

// flush ends what is outstanding when the peer is gone; the next Poll has the error.
func (x *session) flush(dst []transports.Done) (n int, err error) {
	for n < len(dst) && x.head != x.tail {
		i := x.posted[x.head%uint32(len(x.posted))]
		x.head++
		dst[n] = transports.Done{Slot: x.slots[i], Kind: transports.KindRecv, Status: rdma.StatusWRFlushErr}
		n++
	}
	if n == 0 && x.client.Waiting() {
		return 0, nil // its daemon says how they ended
	}
	if n == 0 {
		x.err = fmt.Errorf("session with node %d: %w: %w", x.peer, rdma.ErrUnreachable, x.why)
		return 0, x.err
	}
	return n, nil
}

// PingPong is not there.
func (x *session) PingPong([]transports.PingPongStep, []transports.Done) (int, error) {
	return 0, rdma.ErrNotSupported
}

// Wait is not there: the set-up refuses Events.
func (x *session) Wait(context.Context) error {
	if x.closed {
		return rdma.ErrClosed
	}
	return rdma.ErrState
}

// Close lets what was posted end, and frees the window, by which the peer notices. Idempotent.
func (x *session) Close() error {
	if x.closed {
		return nil
	}
	if x.err == nil && !x.bye {
		for end := time.Now().Add(closeGrace); x.client.Waiting() && time.Now().Before(end); {
			if k, _ := x.client.Poll(x.hold[:]); k == 0 {
				x.client.Sleep()
			}
		}
	}
	return x.abandon()
}

// abandon frees what there is.
func (x *session) abandon() (err error) {
	x.closed, x.err = true, rdma.ErrClosed
	if c := x.client; c != nil {
		if x.far != 0 {
			_ = c.Unmap(x.far) // the region is the peer's
		}
		if x.own != 0 {
			_ = c.FreeRegion(x.own) // else it ends with the client
		}
		if x.buf.Len() > 0 {
			err = x.buf.Free()
		}
		err = errors.Join(err, c.Close())
	}
	x.win = nil
	if x.release != nil {
		x.release()
	}
	return errors.Join(err, x.node.done())
}
