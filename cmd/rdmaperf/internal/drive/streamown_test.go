package drive

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// all has every pass looked at, and every message compared.
func all(sh *engine.Shape) { sh.Verify, sh.VerifyAll = true, true }

// Where numbers are compared a slot is a message's own until its operation ended; of writes none
// goes beyond the pass, and the next one waits until the target looked at it.
func TestAMessageOwnsItsSlot(t *testing.T) {
	for _, c := range []struct {
		name, op      string
		out           int
		posted, asked int64
		asks, acked   uint64
		k, want       int
		look          bool // is asked for
	}{
		{"any", "send", 0, 0, 0, 0, 0, 6, 6, false}, {"those left", "send", 5, 0, 0, 0, 0, 6, 3, false}, {"none", "read", 8, 0, 0, 0, 0, 6, 0, false},
		{"the first pass", "write", 0, 0, 0, 0, 0, 6, 6, false}, {"its end", "write", 0, 5, 0, 0, 0, 6, 3, false}, {"the first of all", "write", 0, 0, 0, 0, 0, 8, 8, false},
		{"behind it", "write", 0, 8, 0, 0, 0, 6, 0, true}, {"behind the third", "write", 0, 24, 16, 0, 0, 6, 0, true}, {"asked for", "write", 0, 8, 8, 5, 4, 6, 0, false}, {"looked at", "write", 0, 8, 8, 5, 5, 6, 6, false}, {"looked at before", "write", 0, 8, 8, 0, 0, 6, 6, false},
		{"within the next", "write", 2, 11, 8, 0, 0, 8, 5, false},
	} {
		p, _, w, l := streamOn(c.op, all)
		l.Out, l.Posted, l.asked, l.asks, l.acked = c.out, c.posted, c.asked, c.asks, c.acked
		k, err := w.own(l, c.k)
		if err != nil || k != c.want || (len(p.posted) == 1) != c.look {
			t.Errorf("%s: %d, %v, posted %+v, want %d", c.name, k, err, p.posted, c.want)
		}
		if !c.look {
			continue
		}
		first := uint64(c.posted) - 8
		if op := p.posted[0]; op.Kind != transports.KindSend || op.Len != engine.CheckSize || binary.LittleEndian.Uint64(l.Mem[op.Local:]) != first || l.asked != c.posted || l.asks != l.Messages || l.Messages != 1 || l.Out != c.out+1 {
			t.Errorf("%s: %+v names %d, want %d; asked at %d", c.name, op, binary.LittleEndian.Uint64(l.Mem[op.Local:]), first, l.asked)
		}
	}
	// By a sample a pass that nobody looks at is followed by the next.
	p, _, w, l := streamOn("write", func(sh *engine.Shape) { sh.Verify = true })
	l.Posted = 8 * 2
	for l.Sh.LooksAt(uint64(l.Posted/8 - 1)) {
		l.Posted += 8
	}
	if k, err := w.own(l, 6); err != nil || k != 6 || len(p.posted) != 0 {
		t.Errorf("behind a pass that nobody looks at: %d, %v, posted %+v", k, err, p.posted)
	}
}

// To ask for a look takes a place in the queue, a receive of the peer, and room.
func TestToAskForALookTakesRoom(t *testing.T) {
	for _, c := range []struct {
		name     string
		out      int
		messages uint64
		room     int
		refuse   error
		asked    bool
		err      error
	}{
		{"room", 7, 15, -1, nil, true, nil}, {"no place", 8, 0, -1, nil, false, nil}, {"no receive", 0, 16, -1, nil, false, nil},
		{"a full queue", 0, 0, 0, rdma.ErrQueueFull, false, nil}, {"refused", 0, 0, 0, errBroken, false, errBroken},
	} {
		p, _, w, l := streamOn("write", all)
		l.Posted, l.Out, l.Messages, p.room, p.refuse = 8, c.out, c.messages, c.room, c.refuse
		if err := w.ask(l); !errors.Is(err, c.err) || (len(p.posted) == 1) != c.asked || (l.asks > 0) != c.asked {
			t.Errorf("%s: %v, asked %+v", c.name, err, p.posted)
		}
	}
}

// The tail waits for a place, a receive of the peer where it takes one, and a slot of its own; the
// barrier goes behind it, once.
func TestTheTailAndTheBarrier(t *testing.T) {
	for _, c := range []struct {
		name, op    string
		verify      bool
		out         int
		messages    uint64
		tail, fence bool
		room        int
		refuse      error
		posted      bool
		err         error
	}{
		{"the tail", "send", false, 7, 15, false, false, -1, nil, true, nil}, {"no place", "send", false, 8, 0, false, false, -1, nil, false, nil},
		{"no receive", "send", false, 0, 16, false, false, -1, nil, false, nil}, {"reads take none", "read", false, 0, 16, false, false, -1, nil, true, nil},
		{"no slot of its own", "send", true, 8, 0, false, false, -1, nil, false, nil}, {"a slot of its own", "send", true, 7, 0, false, false, -1, nil, true, nil},
		{"a full queue", "send", false, 0, 0, false, false, 0, rdma.ErrQueueFull, false, nil}, {"refused", "send", false, 0, 0, false, false, 0, errBroken, false, errBroken},
		{"the barrier", "send", false, 3, 15, true, false, -1, nil, true, nil}, {"no receive for it", "write", false, 3, 16, true, false, -1, nil, false, nil},
		{"the barrier again", "send", false, 3, 0, true, true, -1, nil, false, nil}, {"none of reads", "read", false, 3, 0, true, false, -1, nil, false, nil},
	} {
		p, _, w, l := streamOn(c.op, func(sh *engine.Shape) { sh.Verify, sh.Moderation = c.verify, 4 })
		if c.verify {
			l.Sh.Depth = 9
		}
		l.Out, l.Messages, l.tail, l.Fenced, l.Head, p.room, p.refuse = c.out, c.messages, c.tail, c.fence, 5, c.room, c.refuse
		err := w.wrapUp(l, filler(l.Sh))
		if !errors.Is(err, c.err) || (len(p.posted) == 1) != c.posted {
			t.Errorf("%s: %v, posted %+v", c.name, err, p.posted)
			continue
		}
		if !c.posted {
			if l.Out != c.out || l.Messages != c.messages || l.tail != c.tail || l.Fenced != c.fence || l.Posted != 0 {
				t.Errorf("%s: it counts", c.name)
			}
			continue
		}
		op, messages := p.posted[0], c.messages+1
		if c.op == "read" {
			messages--
		}
		data := !c.tail
		if op.Flags&transports.Unsignaled != 0 || (op.Len == 100) != data || l.Out != c.out+1 || l.Messages != messages || !l.tail || l.Fenced == data || (l.Posted == 1) != data || data && (op.Slot != 2 || l.Head != 6) || !data && (op.Slot != 1 || l.Head != 5) {
			t.Errorf("%s: %+v, %d posted, %d out, %d messages, then %d", c.name, op, l.Posted, l.Out, l.Messages, l.Head)
		}
	}
}
