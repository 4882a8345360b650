package lite

import (
	"encoding/binary"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A lock is 64 bytes at its home node. Taking a free one is one round trip: two requests in one list draw the ticket
// and read the served one. Heartbeats carry the owner, see owners.
const (
	lockNext    = 0
	lockServing = 8
	lockOwner   = 16 // (node + 1) << 32 | low bits of the ticket
	lockLen     = 64
)

// Lock is a ticket lock in the cluster as one client uses it. When its owner's node fails, it is free again after
// Config.DeadAfter and a heartbeat, or twice that where the owner failed within a heartbeat of taking it.
type Lock struct {
	c      *Client
	h      Handle
	mem    uint64 // own arena: what was served, and the ticket
	ticket uint64
	held   bool
	region uint64
	home   int
}

type lockRequest struct {
	Region, Ticket uint64
	Give           bool // the requester's deadline passed
}

// NewLock makes a lock at a node and opens it; rdma.ErrNotSupported on a device without atomics.
func (c *Client) NewLock(name string, home int) (*Lock, error) {
	return c.lockAt(c.Malloc(RegionConfig{Name: name, Size: lockLen, Nodes: []int{home},
		Open: PermRead | PermWrite | PermAtomic}))
}

// OpenLock finds a lock by name.
func (c *Client) OpenLock(name string) (*Lock, error) {
	return c.lockAt(c.Map(name, PermRead|PermWrite|PermAtomic, ""))
}

func (c *Client) lockAt(h Handle, err error) (*Lock, error) {
	if err != nil {
		return nil, err
	}
	if !c.node.caps.Ops.Has(rdma.OpFetchAdd) || !c.node.caps.Ops.Has(rdma.OpCmpSwap) {
		return nil, &rdma.MissingError{Gaps: []string{"operation fetch_add", "operation cmp_swap"}}
	}
	e, err := c.node.handles.look(h, PermRead|PermWrite|PermAtomic, 0, lockLen)
	if err != nil {
		return nil, err
	}
	mem, err := c.node.alloc(16)
	if err != nil {
		return nil, err
	}
	return &Lock{c: c, h: h, mem: mem, region: e.region, home: e.pieces[0].Node}, nil
}

// Close frees the lock's memory at this client; a held lock is unlocked.
func (l *Lock) Close() error {
	var err error
	if l.held {
		err = l.Unlock()
	}
	if l.mem != 0 {
		l.c.node.free(l.mem)
		l.mem = 0
	}
	return err
}

// Lock waits for the lock, at most for the client's timeout: ErrTimeout then, and the turn is passed on.
func (l *Lock) Lock() error {
	if l.held {
		return ErrFail // a second one of the same owner would wait for itself
	}
	c := l.c
	served := Op{Kind: OpRead, Handle: l.h, Off: lockServing, Local: l.mem, Len: 8}
	draw := Op{Kind: OpFetchAdd, Handle: l.h, Off: lockNext, Local: l.mem + 8, Len: 8, Add: 1, Unsignaled: true}
	if err := c.runPair(draw, served); err != nil {
		return err
	}
	serving := binary.NativeEndian.Uint64(c.node.bytes(l.mem, 8))
	l.ticket = binary.NativeEndian.Uint64(c.node.bytes(l.mem+8, 8))
	if serving != l.ticket {
		if err := c.ask(l.home, opTurn, lockRequest{Region: l.region, Ticket: l.ticket}, nil); err != nil {
			// The home may have given the turn meanwhile: it takes it back.
			_ = c.ask(l.home, opPass, lockRequest{Region: l.region, Ticket: l.ticket, Give: true}, nil)
			return err
		}
	}
	l.held = true
	c.node.owners.hold(l, uint64(c.node.id+1)<<32|l.ticket&0xffffffff)
	return nil
}

// Unlock passes the lock on. ErrLockLost: it is not held, or was taken away because this node was thought dead.
func (l *Lock) Unlock() error {
	if !l.held {
		return ErrLockLost
	}
	c := l.c
	l.held = false
	c.node.owners.drop(l)
	pass := Op{Kind: OpCmpSwap, Handle: l.h, Off: lockServing, Local: l.mem + 8, Len: 8, Add: l.ticket,
		Swap: l.ticket + 1, Unsignaled: true}
	next := Op{Kind: OpRead, Handle: l.h, Off: lockNext, Local: l.mem, Len: 8}
	if err := c.runPair(pass, next); err != nil {
		return err
	}
	switch {
	case binary.NativeEndian.Uint64(c.node.bytes(l.mem+8, 8)) != l.ticket:
		return ErrLockLost
	case binary.NativeEndian.Uint64(c.node.bytes(l.mem, 8)) == l.ticket+1:
		return nil // nobody waits
	}
	return c.ask(l.home, opPass, lockRequest{Region: l.region, Ticket: l.ticket + 1}, nil)
}

// runPair runs two operations, as one list where they go to another node, and reports the first failure.
func (c *Client) runPair(a, b Op) error {
	c.pair = [2]Op{a, b}
	n := 0
	var failed error
	for w := (waiter{}); n < len(c.pair); {
		k, err := c.Post(c.pair[n:])
		n += k
		if err == nil {
			continue
		}
		// The caller's own operations: only it can poll them.
		full := int(c.tail-c.head)+len(c.pair)-n > c.cfg.Depth
		if err != rdma.ErrQueueFull || full {
			failed = err
			break
		}
		if !w.waitPolling(c) {
			failed = ErrTimeout
			break
		}
	}
	// The newest first, as only that comes off the ring.
	for ; n > 0; n-- {
		if err := c.waitNewest(false); err == ErrTimeout {
			return err
		} else if err != nil {
			failed = err
		}
	}
	return failed
}

// owners are the locks that clients of a node hold. Each heartbeat writes every owner to its home: taking a lock costs
// no request for that, and a word that arrives late is overwritten.
type owners struct {
	mu   sync.Mutex
	held map[*Lock]uint64 // to the word at its home
	new  map[*Lock]uint64 // of these, those that were not written yet
	c    *Client          // of the beat
	at   uint64           // own arena: the words under way
	done [ownersAtOnce]Done
}

const (
	ownersAtOnce = 64   // words of one heartbeat
	ownerTries   = 1000 // to find room in a queue pair that others fill
)

func (o *owners) hold(l *Lock, word uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held == nil {
		o.held, o.new = map[*Lock]uint64{}, map[*Lock]uint64{}
	}
	o.held[l], o.new[l] = word, word
}

func (o *owners) drop(l *Lock) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.held, l)
	delete(o.new, l)
}

// refresh writes words of held locks, new ones first: a home takes a lock whose owner it never saw for one of a lost
// node. It runs in the heartbeat and never waits.
func (o *owners) refresh(n *Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.held) == 0 || !o.open(n) {
		return
	}
	for k := 1; k > 0; {
		k, _ = o.c.Poll(o.done[:]) // one that failed is written again
	}
	if o.c.head != o.c.tail {
		return
	}
	told := o.write(n, o.new, 0)
	o.write(n, o.held, told)
}

// write writes words of some locks, of which the heartbeat has written that many; o.mu is held.
func (o *owners) write(n *Node, some map[*Lock]uint64, told int) int {
	for l, word := range some { // in another order each time
		if told == ownersAtOnce {
			break
		}
		mem := o.at + uint64(told)*8
		binary.NativeEndian.PutUint64(n.bytes(mem, 8), word)
		op := Op{Kind: OpWrite, Handle: l.h, Off: lockOwner, Local: mem, Len: 8}
		for try := 0; try < ownerTries; try++ {
			if err := o.c.post(&op); err == nil {
				told++
				delete(o.new, l)
				break
			} else if err != rdma.ErrQueueFull {
				break // the home is lost, or the region
			}
			o.c.pollLinks(1 << l.home)
		}
	}
	return told
}

// open makes the client of the beat when the first lock is held; o.mu is held.
func (o *owners) open(n *Node) bool {
	if o.c != nil {
		return true
	}
	at, err := n.alloc(ownersAtOnce * 8)
	if err != nil {
		return false
	}
	c, err := n.newClient(ClientConfig{Depth: ownersAtOnce, MaxReply: 1, Priority: 1})
	if err != nil {
		n.free(at)
		return false
	}
	o.c, o.at = c, at
	return true
}
