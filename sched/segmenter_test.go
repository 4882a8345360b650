package sched

import "testing"

// cutter is a queue pair whose peer has a ring of 8 KiB and receives of 6 KiB, with slices of a kibibyte.
func cutter(t *testing.T) (*qp, *segmenter) {
	t.Helper()
	box := memory(t, mailboxHead)
	q := &qp{dev: &device{}, send: &cq{}, mailbox: &mailbox{box: box}}
	q.win.init(&Config{Slice: 1 << 10, Window: 4 << 10}, false)
	o := &q.mailbox.out
	o.room, o.peer.shortest = 8<<10, 6<<10
	return q, o
}

// What became of a send that asked for a part of the ring.
const (
	cutIt   = "cut"
	wholeIt = "whole"
	waits   = "waits"
)

func ask(q *qp, class int, size uint64) (string, *parent) {
	p := &parent{size: size, flags: pSend}
	switch {
	case !q.reserve(class, p):
		return waits, p
	case p.flags&pReserved != 0:
		return cutIt, p
	}
	return wholeIt, p
}

// A send is cut while the ring has room, waits for as urgent ones, and goes whole before less urgent ones.
func TestRoomOfTheRing(t *testing.T) {
	for _, c := range []struct {
		name  string
		class int
		size  uint64
		want  string
	}{
		{"the rest just fits", 3, 3 << 10, cutIt}, {"a byte more, behind as urgent ones", 3, 3<<10 + 1, waits},
		{"before less urgent ones", 4, 3<<10 + 1, wholeIt},
		{"behind more urgent ones", 2, 3<<10 + 1, waits}, {"longer than a receive", 3, 6<<10 + 1, wholeIt},
		{"as long as one", 3, 6 << 10, waits},
	} {
		q, o := cutter(t)
		o.first = maxCutSends - 1 // parts lie on both ends of the list
		for range 2 {
			if got, p := ask(q, 3, 4<<10); got != cutIt || p.tail != 1<<10 {
				t.Fatalf("%s: the first of 4 KiB: %s, beginning of %d", c.name, got, p.tail)
			}
		}
		if got, p := ask(q, c.class, c.size); got != c.want || p.flags&pSend != 0 != (got == waits) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		} else if blocked := q.send.blocked; (blocked == 1) != (got == waits) || o.blocked != (got == waits) {
			t.Errorf("%s: %s, %d are blocked", c.name, got, blocked)
		} else if got == cutIt && (o.used != 8<<10 || p.ring != 6<<10 || o.next != 0) {
			t.Errorf("%s: %d bytes are used, it lies at %d, the next at %d", c.name, o.used, p.ring, o.next)
		}
	}
	q, o := cutter(t)
	o.peer.shortest = 1 << 20
	if got, _ := ask(q, 0, 9<<10); got != cutIt {
		t.Errorf("as long as the ring behind its beginning: %s", got)
	}
	if got, _ := ask(q, 0, 9<<10); got != waits {
		t.Errorf("another as long: %s, want it to wait for the whole ring", got)
	}
	if got, _ := ask(q, 0, 9<<10+1); got != wholeIt {
		t.Errorf("longer than the ring: %s", got)
	}
	q, _ = cutter(t)
	if got, p := ask(q, 0, 500); got != cutIt || p.tail != 499 {
		t.Errorf("shorter than a slice has become: %s, beginning of %d", got, p.tail)
	}
}

// As many as there are descriptors are under way, and what the peer has taken is room again in the order of the ring.
func TestTheRingComesBackInItsOrder(t *testing.T) {
	q, o := cutter(t)
	box := q.mailbox.box.Bytes()
	for i := range maxCutSends {
		if got, _ := ask(q, 0, 1<<10+10); got != cutIt {
			t.Fatalf("send %d: %s", i, got)
		}
		o.turns++
	}
	if got, _ := ask(q, 0, 1<<10+10); got != waits {
		t.Errorf("one more than there are descriptors: %s", got)
	}
	for i := range o.byTurn { // turn 1 is that of the last, and so on
		o.byTurn[(i+1)%maxCutSends] = int8(maxCutSends - 1 - i)
	}
	for _, freed := range []uint32{1, maxCutSends - 1} {
		putDouble(box, freed)
		if !o.readCredits(box) || o.used != 10*maxCutSends || o.freed != freed {
			t.Errorf("%d taken: %d bytes are used, want %d, as the first is not taken", freed, o.used, 10*maxCutSends)
		}
	}
	putDouble(box, maxCutSends)
	if !o.readCredits(box) || o.used != 0 || o.many != 0 {
		t.Errorf("all taken: %d bytes of %d sends are used", o.used, o.many)
	}
	putDouble(box, maxCutSends+1)
	if o.readCredits(box) {
		t.Error("the peer took more than there were")
	}
	o.turns, o.freed = 2, ^uint32(0)
	if putDouble(box, 3); o.readCredits(box) {
		t.Error("the peer took more than there were, where numbers begin anew")
	}
	if putDouble(box, 2); !o.readCredits(box) {
		t.Error("what the peer took is refused where numbers begin anew")
	}
}

// A blocked QP looks again when the peer gave something back or the connection is over.
func TestBlockedUntilThePeerTells(t *testing.T) {
	q, o := cutter(t)
	box := q.mailbox.box.Bytes()
	if o.freedMore(box) {
		t.Error("nothing was ever there, and is news")
	}
	putDouble(box, 0)
	putDouble(box[8:], o.peer.shortest)
	if o.freedMore(box) {
		t.Error("what is known is news")
	}
	putDouble(box, 1)
	if !o.freedMore(box) {
		t.Error("a send that was taken is none")
	}
	putDouble(box, 0)
	if putDouble(box[8:], 1); !o.freedMore(box) {
		t.Error("another shortest receive is none")
	}
	q.closed, o.blocked, q.send.blocked = true, true, 2
	if q.unblock(); o.blocked || q.send.blocked != 1 {
		t.Errorf("blocked %v, %d in all", o.blocked, q.send.blocked)
	}
}

// Of the classes with a part of the ring the most urgent one goes on.
func TestWhoHoldsTheRingGoesOn(t *testing.T) {
	q, _ := cutter(t)
	q.parents = []parent{{}, {flags: pReserved}}
	for c := range Priorities {
		q.class[c] = queue{0, 0}
	}
	if c := q.holder(255); c >= 0 {
		t.Errorf("class %d holds what nobody does", c)
	}
	for c := range Priorities {
		q.class[c].first = 1
		if got := q.holder(255); got != c {
			t.Errorf("class %d goes on, want %d", got, c)
		}
		if got := q.holder(255 &^ (1 << c)); got != c-1 {
			t.Errorf("class %d goes on where %d may not, want %d", got, c, c-1)
		}
	}
	q.failed = true
	if c := q.holder(255); c >= 0 {
		t.Errorf("class %d goes on behind a failure", c)
	}
}
