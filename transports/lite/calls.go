package lite

import (
	"sync"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
)

// callState is the life of a call's slot.
type callState uint32

const (
	callFree    callState = iota
	callWaiting           // sent; the answer goes into its buffer
	callDone              // the answer is there, or an error instead of it
	callZombie            // its deadline passed, but the answer may still be written
	callOrphan            // the same, and the slot is no longer its client's
	numCallStates
)

var callMoves = [numCallStates][numCallStates]bool{
	callFree:    {callWaiting: true},
	callWaiting: {callDone: true, callZombie: true, callOrphan: true, callFree: true}, // free: it was never sent
	callDone:    {callFree: true},
	callZombie:  {callFree: true, callOrphan: true},
	callOrphan:  {callFree: true},
}

// A slot travels as 12 bits of index and 12 of generation: a late answer is not taken for the next.
const (
	callBits   = 12
	maxCalls   = 1 << callBits
	callGenMax = 1<<callBits - 1
)

// call is one slot: a buffer that the peer writes its answer into.
type call struct {
	place uint32
	buf   uint64 // own arena
	room  uint32 // bytes of it
	owner *Client

	word atomic.Uint32 // generation << 8 | state
	to   atomic.Int32  // node that was asked, -1 for this one
	code int32         // set before callDone
	len  uint32        // set before callDone

	body     uint64 // own arena: a request too long for the stage, or 0
	bodyRoom int
}

// move goes along the table, once; false when the slot is in another state.
func (c *call) move(gen uint32, from, to callState) bool {
	if !callMoves[from][to] {
		panic("lite: a call goes from one state to another that does not follow")
	}
	return c.word.CompareAndSwap(gen<<8|uint32(from), gen<<8|uint32(to))
}

func (c *call) state() (gen uint32, s callState) {
	w := c.word.Load()
	return w >> 8, callState(w & 0xff)
}

type callTable struct {
	mu   sync.Mutex
	all  [maxCalls]atomic.Pointer[call]
	next int
}

func (t *callTable) add(n *Node, c *Client, room int) (*call, error) {
	room += wire.ReplyLen
	off, err := n.alloc(room)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for range maxCalls {
		i := t.next % maxCalls
		t.next++
		if t.all[i].Load() == nil {
			s := &call{place: uint32(i), buf: off, room: uint32(room), owner: c}
			t.all[i].Store(s)
			return s, nil
		}
	}
	n.free(off)
	return nil, ErrNoSpace
}

// remove frees a slot that nobody writes into.
func (t *callTable) remove(n *Node, s *call) {
	t.all[s.place].Store(nil)
	n.free(s.buf)
	if s.body != 0 {
		n.free(s.body)
	}
}

func (t *callTable) replied(n *Node, p *peer, slot uint32) {
	s := t.all[slot&(maxCalls-1)].Load()
	if s == nil || s.to.Load() != int32(p.id) {
		return // not a call to that peer
	}
	gen := slot >> callBits
	if t.late(n, s, gen) {
		return
	}
	h, err := wire.GetReply(n.bytes(s.buf, int(s.room)))
	if err != nil || h.Slot != slot {
		h = wire.Reply{Code: int32(ErrFail)}
	}
	t.finish(s, gen, h.Code, h.Len)
}

// late takes the answer to a call whose deadline passed, or its certain absence; false for one that is waited for.
func (t *callTable) late(n *Node, s *call, gen uint32) bool {
	for {
		g, state := s.state()
		switch {
		case g != gen || state != callZombie && state != callOrphan:
			return false
		case !s.move(gen, state, callFree): // it was made an orphan meanwhile
			continue
		case state == callOrphan:
			t.remove(n, s)
		}
		return true
	}
}

// finish ends a waiting call, once: the first of answer, death and deadline wins.
func (t *callTable) finish(s *call, gen uint32, code int32, n uint32) {
	if g, state := s.state(); g != gen || state != callWaiting {
		return
	}
	s.code, s.len = code, n
	if s.move(gen, callWaiting, callDone) {
		s.owner.wake()
	}
}

// local answers a call of this node to itself.
func (t *callTable) local(n *Node, slot uint32, code Code, b []byte) {
	s := t.all[slot&(maxCalls-1)].Load()
	if s == nil || s.to.Load() != -1 {
		return
	}
	gen := slot >> callBits
	if t.late(n, s, gen) {
		return
	}
	if g, state := s.state(); g != gen || state != callWaiting {
		return
	}
	t.finish(s, gen, int32(code), uint32(copy(n.bytes(s.buf, int(s.room))[wire.ReplyLen:], b)))
}

// failAll ends every call to p, whose queue pairs are closed; nil means all calls.
func (t *callTable) failAll(n *Node, p *peer, code int32) {
	for i := range t.all {
		s := t.all[i].Load()
		if s == nil || p != nil && s.to.Load() != int32(p.id) {
			continue
		}
		gen, _ := s.state()
		if !t.late(n, s, gen) {
			t.finish(s, gen, code, 0)
		}
	}
}
