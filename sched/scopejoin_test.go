package sched

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Queue pairs share a group until the last has left it; of a peer those to one host.
func TestGroupsLastAsLongAsTheirQueuePairs(t *testing.T) {
	var g groups
	a, b := g.join(ScopePeer, "host:1"), g.join(ScopePeer, "host:2")
	if a == nil || a != b || g.join(ScopePeer, "other:1") == a || g.join(ScopePeer, "") == a {
		t.Error("one host is not one group")
	}
	if g.join(ScopePeer, "[fe80::1%eth0]:5") != g.join(ScopePeer, "[fe80::1%eth0]:6") ||
		g.join(ScopePeer, "no port") != g.join(ScopePeer, "no port") {
		t.Error("addresses of one host are not one group")
	}
	if g.join(ScopeQP, "host:1") != nil {
		t.Error("queue pairs by themselves have a group")
	}
	g.leave(nil)
	g.leave(a)
	if g.join(ScopePeer, "host:3") != b {
		t.Error("the group ended before its last queue pair left")
	}
	g.leave(b)
	g.leave(b)
	if g.join(ScopePeer, "host:1") == b {
		t.Error("a group outlived its queue pairs")
	}
}

// Others are beside the queue pair itself, and never below nothing, as they may shrink meanwhile.
func TestOthersOfAGroup(t *testing.T) {
	var g group
	a, b := marked(false), marked(false)
	a.share.group, b.share.group = &g, &g
	a.issue(0, 1000)
	a.issue(3, 50)
	a.publish()
	b.issue(2, 7)
	b.publish()
	if a.others(0) != 7 || a.others(2) != 7 || a.others(3) != 0 || b.others(0) != 1050 || b.others(1) != 50 {
		t.Errorf("others are %d, %d, %d and %d, %d", a.others(0), a.others(2), a.others(3), b.others(0), b.others(1))
	}
	for c, want := range map[int]bool{0: false, 1: true, 3: true} {
		g.urgent.Store(0)
		b.overtakes(c)
		if (g.urgent.Load() != 0) != want {
			t.Errorf("class %d is urgent to others: %v", c, !want)
		}
	}
	g.urgent.Store(0)
	if a.overtakes(1); g.urgent.Load() != 0 { // b has nothing less urgent
		t.Error("urgent to others that have nothing less urgent")
	}
	g.under[0].Store(3)
	if a.others(0) != 0 {
		t.Errorf("others are %d, want none", a.others(0))
	}
	a.over()
	if a.under(0) != 0 || g.under[3].Load() != 0 {
		t.Error("what failed is still under way")
	}
}

// Entries for the tier go to the first queue pairs, later ones have what is left, and all come back.
func TestEntriesOfTheTierAreShared(t *testing.T) {
	c := &cq{spareLeft: cqSpare, extras: map[*qp]int{}}
	var all []*qp
	for round := range 3 {
		sum := 0
		for i := range 400 {
			q := &qp{send: c}
			c.attach(q)
			all = append(all, q)
			n := c.extras[q]
			if i == 0 && n != maxMarks+2 || n < minCQExtra || n > maxMarks+2 {
				t.Fatalf("round %d: queue pair %d has %d entries", round, i, n)
			}
			sum += n - minCQExtra
		}
		if sum != cqSpare || c.spareLeft != 0 {
			t.Errorf("round %d: %d entries shared, %d left, want all %d", round, sum, c.spareLeft, cqSpare)
		}
		for _, q := range all {
			c.detach(q)
		}
		if all = nil; c.spareLeft != cqSpare || len(c.qps) != 0 {
			t.Errorf("round %d: %d entries came back of %d, %d queue pairs are left", round, c.spareLeft, cqSpare,
				len(c.qps))
		}
	}
}

// An offer is taken if its ring is of a size that is agreed on and ends in the address space.
func TestOffersAreBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		addr uint64
		room uint32
		ok   bool
	}{
		{"the least", 1 << 20, minRoom, true}, {"less", 1 << 20, minRoom - 1, false},
		{"the most", 1 << 20, maxRoom, true}, {"more", 1 << 20, maxRoom + 1, false},
		{"up to the last address", math.MaxUint64 - mailboxHead - minRoom, minRoom, true},
		{"one further", math.MaxUint64 - mailboxHead - minRoom + 1, minRoom, false},
	} {
		_, o := splitOffer((&offer{addr: c.addr, room: c.room}).add([]byte("private")))
		if (o != nil) != c.ok || c.ok && (o.addr != c.addr || o.room != c.room) {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
}

// Those of a completion queue that may take cut sends are counted, and no others.
func TestTakersAreCounted(t *testing.T) {
	c := &cq{spareLeft: cqSpare, extras: map[*qp]int{}}
	with, other, without := &qp{send: c, recv: c, mailbox: &mailbox{}}, &qp{send: c, recv: c, mailbox: &mailbox{}},
		&qp{send: c, recv: c}
	elsewhere := &qp{send: c, recv: &cq{}, mailbox: &mailbox{}}
	for i, step := range []struct {
		do   func(*qp)
		q    *qp
		want int
	}{{c.attach, with, 1}, {c.attach, without, 1}, {c.attach, elsewhere, 1}, {c.attach, other, 2},
		{c.detach, without, 2}, {c.detach, elsewhere, 2}, {c.detach, with, 1}, {c.detach, other, 0}} {
		if step.do(step.q); c.takers != step.want {
			t.Errorf("step %d: %d takers, want %d", i, c.takers, step.want)
		}
	}
}

// A queue pair that is closed has nothing to tell its peer any more; others still have.
func TestClosingForgetsOnesOwnNotice(t *testing.T) {
	c := &cq{extras: map[*qp]int{}}
	one, other := &qp{recv: c, mailbox: &mailbox{}}, &qp{recv: c, mailbox: &mailbox{}}
	c.creditsDue = []*qp{other, one}
	if c.detach(one); !slices.Equal(c.creditsDue, []*qp{other}) {
		t.Errorf("%d notices are due, want that of the other alone", len(c.creditsDue))
	}
}

// Parts of a list have no empty elements, wherever they begin and end.
func TestPartsOfAList(t *testing.T) {
	list := [rdma.MaxSGE]rdma.SGE{{Addr: 100, Len: 4, LKey: 1}, {Addr: 200, Len: 0, LKey: 2},
		{Addr: 300, Len: 6, LKey: 3}}
	for off := range uint64(10) {
		for n := uint64(1); off+n <= 10; n++ {
			var got [rdma.MaxSGE]rdma.SGE
			k := part(&got, &list, 3, off, n)
			var bytes []uint64
			for _, s := range got[:k] {
				if s.Len == 0 {
					t.Errorf("%d from %d on: an empty element", n, off)
				}
				for i := range uint64(s.Len) {
					bytes = append(bytes, s.Addr+i)
				}
			}
			for i, at := range bytes {
				want := 100 + off + uint64(i)
				if off+uint64(i) >= 4 {
					want = 300 + off + uint64(i) - 4
				}
				if at != want || len(bytes) != int(n) {
					t.Fatalf("%d from %d on: byte %d of %d is at %d, want %d", n, off, i, len(bytes), at, want)
				}
			}
		}
	}
}

// Without others in the configuration, the most urgent class has a millisecond, and each below it twice as long.
func TestUsualDeadlines(t *testing.T) {
	c, err := (&Config{}).normal()
	if err != nil {
		t.Fatal(err)
	}
	for class, d := range c.Deadlines {
		if want := time.Millisecond * time.Duration([]int{128, 64, 32, 16, 8, 4, 2, 1}[class]); d != want {
			t.Errorf("class %d: %v, want %v", class, d, want)
		}
	}
}
