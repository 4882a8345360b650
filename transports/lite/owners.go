package lite

import (
	"encoding/binary"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
