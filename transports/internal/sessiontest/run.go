package sessiontest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func isFull(err error) bool { return errors.Is(err, rdma.ErrQueueFull) }

// Run checks every claim on pairs that open makes.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		claim string
		check func(*testing.T, Open)
	}{
		{"the hello and both windows are known after set-up", setUp},
		{"a set-up outside the limits is refused", badConfig},
		{"nobody listening is unreachable", unreachable},
		{"accept ends with its context", acceptEnds},
		{"a send lands in the posted receive", send},
		{"a write places its bytes and nothing else", write},
		{"a write with immediate consumes a receive and carries any number", writeImm},
		{"a read fetches the peer's bytes", read},
		{"atomics return the old value", atomics},
		{"kinds not offered are refused", notOffered},
		{"ops outside a window are refused before posting", outside},
		{"a full queue says so and drains", full},
		{"completions come one by one when asked so", oneByOne},
		{"own completions do not keep a receive from coming", receiveAmongOwn},
		{"receives do not keep an own completion from coming", ownAmongReceives},
		{"unsignaled ops have no completion and never wedge the queue", unsignaled},
		{"inline bytes are taken during post", inline},
		{"a fenced write sends what the read before it fetched", fence},
		{"mixed traffic both ways leaves exactly the expected bytes", mixed},
		{"two threads exchange numbered messages", twoThreads},
		{"what was posted before close arrives", closeDelivers},
		{"the peer's close ends everything outstanding", peerCloses},
		{"close is idempotent and ends the calls", closeTwice},
		{"wait needs events in the set-up", waitState},
		{"wait ends with its context", waitContext},
		{"wait misses no completion", waitPingPong},
		{"post and poll allocate nothing", allocs},
	} {
		t.Run(c.claim, func(t *testing.T) { c.check(t, open) })
	}
}

func setUp(t *testing.T, open Open) {
	for _, hello := range []string{"", "x", "0123456789abcdef"} {
		near, far, addr := open(t)
		p := dial(t, near, far, addr, []byte(hello), transports.Config{Window: 12345, SendDepth: 3, RecvDepth: 3})
		if string(p.hello) != hello {
			t.Errorf("hello at accept = %q, want %q", p.hello, hello)
		}
		for _, e := range []*end{p.near, p.far} {
			same(t, e.name+" window", e.s.Local(), make([]byte, 12345))
			if e.s.RemoteLen() != 12345 {
				t.Errorf("%s RemoteLen = %d, want 12345", e.name, e.s.RemoteLen())
			}
			ok(t, "close", e.s.Close())
		}
		ok(t, "close near transport", near.Close())
		ok(t, "close far transport", far.Close())
	}
}

func badConfig(t *testing.T, open Open) {
	near, far, addr := open(t)
	defer far.Close()
	defer near.Close()
	caps := near.Caps()
	for _, c := range []struct {
		what  string
		hello string
		cfg   transports.Config
	}{
		{"no window", "", transports.Config{Window: 0}},
		{"negative window", "", transports.Config{Window: -1}},
		{"send queue too deep", "", transports.Config{Window: 1, SendDepth: caps.MaxDepth + 1}},
		{"receive queue too deep", "", transports.Config{Window: 1, RecvDepth: caps.MaxDepth + 1}},
		{"too many inline bytes", "", transports.Config{Window: 1, MaxInline: caps.MaxInline + 1}},
		{"too many reads", "", transports.Config{Window: 1, ReadDepth: caps.MaxReadDepth + 1}},
		{"hello of 17 bytes", "0123456789abcdefg", transports.Config{Window: 1}},
	} {
		if s, err := near.Dial(soon(t), addr, []byte(c.hello), c.cfg); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%s: dial = %v, %v, want %v", c.what, s, err, rdma.ErrInvalid)
		}
		if c.hello != "" {
			continue
		}
		if l, err := far.Listen(soon(t), addr, c.cfg); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%s: listen = %v, %v, want %v", c.what, l, err, rdma.ErrInvalid)
		}
	}
}

func unreachable(t *testing.T, open Open) {
	near, far, addr := open(t)
	defer far.Close()
	defer near.Close()
	l, err := far.Listen(soon(t), addr, ordinary)
	ok(t, "listen", err)
	gone := l.Addr()
	ok(t, "close listener", l.Close())
	ok(t, "close listener again", l.Close())
	if _, _, err := l.Accept(soon(t)); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("accept of a closed listener: %v, want %v", err, rdma.ErrClosed)
	}
	if s, err := near.Dial(soon(t), gone, nil, ordinary); !errors.Is(err, rdma.ErrUnreachable) {
		t.Errorf("dial to a closed listener = %v, %v, want %v", s, err, rdma.ErrUnreachable)
	}
}

func send(t *testing.T, open Open) {
	p := connect(t, open, transports.Config{Window: 3 << 20, SendDepth: 4, RecvDepth: 4})
	for i, size := range []int{0, 1, 8, 64, 4095, 4096, 4097, 16383, 16384, 65519, 65520, 65536, 65537, 1<<20 + 3} {
		a, b := p.near, p.far
		if i%2 == 1 {
			a, b = b, a
		}
		msg := a.s.Local()[100 : 100+size]
		scribble(msg, i)
		want := bytes.Clone(b.s.Local())
		copy(want[1<<20:], msg)
		// The receive is longer than the message: the rest stays as it was.
		b.post(transports.Op{Kind: transports.KindRecv, Local: 1 << 20, Len: uint32(size) + 7, Slot: 70})
		a.post(transports.Op{Kind: transports.KindSend, Local: 100, Len: uint32(size), Slot: 71})
		d := p.take(b, 1)[0]
		if (d != transports.Done{Slot: 70, Len: uint32(size), Kind: transports.KindRecv}) {
			t.Fatalf("%d bytes: receive done = %+v", size, d)
		}
		if d := p.take(a, 1)[0]; d.Slot != 71 || d.Kind != transports.KindSend {
			t.Fatalf("%d bytes: send done = %+v", size, d)
		}
		same(t, fmt.Sprintf("window after %d bytes", size), b.s.Local(), want)
	}
}

// RunLateReceive checks that a send waits for its receive. It is apart: iWARP
// ends the connection instead (RFC 5041 §7.1), so the engine never relies on it.
func RunLateReceive(t *testing.T, open Open) {
	p := connect(t, open, ordinary)
	scribble(p.near.s.Local()[:300], 1)
	for i := range 3 {
		p.near.post(transports.Op{Kind: transports.KindSend, Local: uint64(i) * 100, Len: 100,
			Flags: transports.Unsignaled})
	}
	for range 50 {
		p.near.poll()
		p.far.poll()
	}
	if len(p.far.dones) != 0 {
		t.Fatalf("far has %v before a receive was posted", p.far.dones)
	}
	for i := range 3 {
		p.far.post(transports.Op{Kind: transports.KindRecv, Local: 1000 + uint64(i)*100, Len: 100, Slot: uint32(i)})
		if d := p.take(p.far, 1)[0]; d.Slot != uint32(i) || d.Len != 100 {
			t.Fatalf("receive %d done = %+v", i, d)
		}
	}
	same(t, "messages", p.far.s.Local()[1000:1300], p.near.s.Local()[:300])
}

func write(t *testing.T, open Open) {
	p := connect(t, open, transports.Config{Window: 3 << 20, SendDepth: 4, RecvDepth: 4})
	for i, size := range []int{0, 1, 64, 4096, 4097, 16384, 65536, 1<<20 + 5} {
		msg := p.near.s.Local()[1 : 1+size]
		scribble(msg, i)
		want := bytes.Clone(p.far.s.Local())
		off := len(want) - size // the last byte of the window is reachable
		copy(want[off:], msg)
		p.near.post(transports.Op{Kind: transports.KindWrite, Local: 1, Remote: uint64(off), Len: uint32(size),
			Slot: 9})
		if d := p.take(p.near, 1)[0]; d.Slot != 9 || d.Kind != transports.KindWrite {
			t.Fatalf("%d bytes: write done = %+v", size, d)
		}
		p.barrier()
		same(t, fmt.Sprintf("window after %d bytes", size), p.far.s.Local(), want)
	}
	if len(p.far.dones) != 0 {
		t.Errorf("far saw completions of plain writes: %v", p.far.dones)
	}
}

func writeImm(t *testing.T, open Open) {
	p := connect(t, open, ordinary)
	if !p.caps.Kinds.Has(transports.KindWriteImm) {
		return // covered by "kinds not offered"
	}
	for i, c := range []struct{ imm, size uint32 }{{0, 8}, {1, 0}, {0xffffffff, 5000}, {0x01020304, 1}} {
		scribble(p.near.s.Local()[:c.size], i)
		want := bytes.Clone(p.far.s.Local())
		copy(want[32<<10:], p.near.s.Local()[:c.size])
		// Where the receive points is not touched, and its length is not asked.
		p.far.post(transports.Op{Kind: transports.KindRecv, Local: 100, Len: 1, Slot: 5})
		p.near.post(transports.Op{Kind: transports.KindWriteImm, Remote: 32 << 10, Len: c.size, Imm: c.imm, Slot: 6})
		d := p.take(p.far, 1)[0]
		if (d != transports.Done{Slot: 5, Len: c.size, Imm: c.imm, HasImm: true, Kind: transports.KindRecv}) {
			t.Fatalf("write_imm of %d with %#x: receive done = %+v", c.size, c.imm, d)
		}
		if d := p.take(p.near, 1)[0]; d.Slot != 6 || d.Kind != transports.KindWriteImm {
			t.Fatalf("write_imm done = %+v", d)
		}
		same(t, "window", p.far.s.Local(), want)
	}
}

func read(t *testing.T, open Open) {
	p := connect(t, open, transports.Config{Window: 3 << 20, SendDepth: 16, RecvDepth: 1, ReadDepth: 2})
	if !p.caps.Kinds.Has(transports.KindRead) {
		return // covered by "kinds not offered"
	}
	for i, size := range []int{0, 1, 64, 4096, 4097, 65536, 1<<20 + 1} {
		src := p.far.s.Local()[2<<20-500:][:size]
		scribble(src, i)
		want := bytes.Clone(p.near.s.Local())
		copy(want[3:], src)
		p.near.post(transports.Op{Kind: transports.KindRead, Local: 3, Remote: 2<<20 - 500, Len: uint32(size), Slot: 2})
		if d := p.take(p.near, 1)[0]; d.Slot != 2 || d.Kind != transports.KindRead || int(d.Len) != size {
			t.Fatalf("%d bytes: read done = %+v", size, d)
		}
		same(t, fmt.Sprintf("window after %d bytes", size), p.near.s.Local(), want)
	}
	// More reads than the read depth wait their turn.
	var ops []transports.Op
	for i := range 16 {
		ops = append(ops, transports.Op{Kind: transports.KindRead, Local: uint64(i) * 64, Remote: uint64(15-i) * 64,
			Len: 64, Slot: uint32(i)})
	}
	scribble(p.far.s.Local()[:16*64], 99)
	p.near.post(ops...)
	for i, d := range p.take(p.near, 16) {
		if int(d.Slot) != i || d.Len != 64 {
			t.Fatalf("read %d of 16: done = %+v", i, d)
		}
		same(t, fmt.Sprintf("read %d of 16", i), p.near.s.Local()[i*64:][:64], p.far.s.Local()[(15-i)*64:][:64])
	}
}
