package sessiontest

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func atomics(t *testing.T, open Open) {
	p := connect(t, open, ordinary)
	// Host order is what the device works in; both ends are this host.
	word := func(e *end, off int) uint64 { return binary.NativeEndian.Uint64(e.s.Local()[off:]) }
	binary.NativeEndian.PutUint64(p.far.s.Local()[16:], 40)
	for _, c := range []struct {
		op        transports.Op
		old, then uint64
	}{
		{transports.Op{Kind: transports.KindFetchAdd, Add: 2, Len: 8}, 40, 42},
		{transports.Op{Kind: transports.KindFetchAdd, Add: ^uint64(0)}, 42, 41},
		{transports.Op{Kind: transports.KindCmpSwap, Add: 41, Swap: 7, Len: 8}, 41, 7},
		{transports.Op{Kind: transports.KindCmpSwap, Add: 41, Swap: 8, Len: 8}, 7, 7},
	} {
		if !p.caps.Kinds.Has(c.op.Kind) {
			continue // covered by "kinds not offered"
		}
		c.op.Local, c.op.Remote, c.op.Slot = 24, 16, 3
		p.near.post(c.op)
		if d := p.take(p.near, 1)[0]; d.Slot != 3 || d.Kind != c.op.Kind || d.Len != 8 {
			t.Fatalf("%v done = %+v", c.op.Kind, d)
		}
		if got := word(p.near, 24); got != c.old {
			t.Errorf("%v fetched %d, want %d", c.op.Kind, got, c.old)
		}
		if got := word(p.far, 16); got != c.then {
			t.Errorf("%v left %d, want %d", c.op.Kind, got, c.then)
		}
		bad := c.op
		bad.Remote = 20
		if _, err := p.near.s.Post([]transports.Op{bad}); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("unaligned %v: %v, want %v", c.op.Kind, err, rdma.ErrInvalid)
		}
	}
}

func notOffered(t *testing.T, open Open) {
	p := connect(t, open, ordinary)
	for k := transports.KindSend; k <= transports.KindRecv+1; k++ {
		if p.caps.Kinds.Has(k) {
			continue
		}
		if n, err := p.near.s.Post([]transports.Op{{Kind: k, Len: 8}}); n != 0 ||
			!errors.Is(err, rdma.ErrNotSupported) {
			t.Errorf("post of %v = %d, %v, want 0, %v", k, n, err, rdma.ErrNotSupported)
		}
	}
	p.barrier()
}

func outside(t *testing.T, open Open) {
	p := connect(t, open, transports.Config{Window: 4096, SendDepth: 8, RecvDepth: 8,
		MaxInline: min(16, open16(open, t))})
	const far = ^uint64(0)
	for _, c := range []struct {
		what string
		op   transports.Op
	}{
		{"recv past the end", transports.Op{Kind: transports.KindRecv, Local: 4096, Len: 1}},
		{"recv from nowhere", transports.Op{Kind: transports.KindRecv, Local: far, Len: 1}},
		{"send past the end", transports.Op{Kind: transports.KindSend, Local: 4090, Len: 7}},
		{"send that wraps", transports.Op{Kind: transports.KindSend, Local: far, Len: 8}},
		{"send longer than the window", transports.Op{Kind: transports.KindSend, Len: 1 << 31}},
		{"write from past the end", transports.Op{Kind: transports.KindWrite, Local: 4096, Len: 1}},
		{"write to past the end", transports.Op{Kind: transports.KindWrite, Remote: 4089, Len: 8}},
		{"write that wraps", transports.Op{Kind: transports.KindWrite, Remote: far - 3, Len: 8}},
		{"write_imm to past the end", transports.Op{Kind: transports.KindWriteImm, Remote: 4096, Len: 1}},
		{"read from past the end", transports.Op{Kind: transports.KindRead, Remote: 1, Len: 4096}},
		{"read to past the end", transports.Op{Kind: transports.KindRead, Local: 1, Len: 4096}},
		{"atomic past the end", transports.Op{Kind: transports.KindFetchAdd, Remote: 4096, Len: 8}},
		{"atomic into past the end", transports.Op{Kind: transports.KindCmpSwap, Local: 4089, Len: 8}},
		{"more inline bytes than asked for",
			transports.Op{Kind: transports.KindSend, Len: 17, Flags: transports.Inline}},
	} {
		if !p.caps.Kinds.Has(c.op.Kind) || c.op.Flags&transports.Inline != 0 && p.caps.MaxInline == 0 {
			continue
		}
		// An op before it is taken, one behind it is not.
		good := transports.Op{Kind: transports.KindWrite, Len: 1, Flags: transports.Unsignaled}
		if n, err := p.near.s.Post([]transports.Op{good, c.op, good}); n != 1 || !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("%s: post = %d, %v, want 1, %v", c.what, n, err, rdma.ErrInvalid)
		}
		p.near.poll()
		p.far.poll()
	}
	p.barrier() // the connection lives
}

func open16(open Open, t *testing.T) int {
	near, far, _ := open(t)
	defer near.Close()
	defer far.Close()
	return near.Caps().MaxInline
}

func full(t *testing.T, open Open) {
	p := connect(t, open, transports.Config{Window: 4096, SendDepth: 5, RecvDepth: 3})
	recvs := make([]transports.Op, 4)
	for i := range recvs {
		recvs[i] = transports.Op{Kind: transports.KindRecv, Local: 8 * uint64(i), Len: 8, Slot: uint32(i)}
	}
	if n, err := p.far.s.Post(recvs); n != 3 || !isFull(err) {
		t.Fatalf("post of 4 receives at depth 3 = %d, %v", n, err)
	}
	sends := make([]transports.Op, 7)
	for i := range sends {
		sends[i] = transports.Op{Kind: transports.KindWrite, Local: 8, Remote: 512, Len: 8, Slot: uint32(i)}
	}
	if n, err := p.near.s.Post(sends); n != 5 || !isFull(err) {
		t.Fatalf("post of 7 writes at depth 5 = %d, %v", n, err)
	}
	if n, err := p.near.s.Post(sends); n != 0 || !isFull(err) {
		t.Fatalf("post to a full queue = %d, %v", n, err)
	}
	p.take(p.near, 2)
	p.take(p.near, 3)
	if n, err := p.near.s.Post(sends); n != 5 || !isFull(err) {
		t.Fatalf("post after all were polled = %d, %v", n, err)
	}
	for i, d := range p.take(p.near, 5) {
		if int(d.Slot) != i {
			t.Errorf("done %d has slot %d", i, d.Slot)
		}
	}
	for i := range 3 {
		p.near.post(transports.Op{Kind: transports.KindSend, Len: uint32(i), Flags: transports.Unsignaled})
	}
	for i, d := range p.take(p.far, 3) {
		if int(d.Slot) != i || int(d.Len) != i {
			t.Errorf("receive %d done = %+v", i, d)
		}
	}
	p.far.post(recvs[:3]...)
}

func oneByOne(t *testing.T, open Open) {
	p := connect(t, open, transports.Config{Window: 64 << 10, SendDepth: 200, RecvDepth: 200})
	p.near.buf, p.far.buf = p.near.buf[:1], p.far.buf[:1]
	scribble(p.near.s.Local()[:200*32], 5)
	var recvs, sends []transports.Op
	for i := range 200 {
		recvs = append(recvs, transports.Op{Kind: transports.KindRecv, Local: 8192 + 32*uint64(i), Len: 32,
			Slot: uint32(i)})
		sends = append(sends, transports.Op{Kind: transports.KindSend, Local: 32 * uint64(i), Len: 32, Slot: uint32(i)})
	}
	p.far.post(recvs...)
	p.near.post(sends...)
	for range 20 { // nothing is lost to a Poll without room
		for _, e := range []*end{p.near, p.far} {
			if n, err := e.s.Poll(nil); n != 0 || err != nil {
				t.Fatalf("%s poll(nil) = %d, %v", e.name, n, err)
			}
		}
	}
	for i, d := range p.take(p.far, 200) {
		if int(d.Slot) != i {
			t.Fatalf("receive done %d has slot %d", i, d.Slot)
		}
	}
	for i, d := range p.take(p.near, 200) {
		if int(d.Slot) != i {
			t.Fatalf("send done %d has slot %d", i, d.Slot)
		}
	}
	same(t, "messages", p.far.s.Local()[8192:][:200*32], p.near.s.Local()[:200*32])
}

// receiveAmongOwn has near post as fast as it polls, so that its own completions would
// fill every Poll, and looks for the one message that it gets.
func receiveAmongOwn(t *testing.T, open Open) {
	for _, room := range []int{1, 2, 8} {
		p := connect(t, open, transports.Config{Window: 4096, SendDepth: 64, RecvDepth: 1})
		p.near.buf = p.near.buf[:room]
		writes := make([]transports.Op, 64)
		for i := range writes {
			writes[i] = transports.Op{Kind: transports.KindWrite, Len: 8}
		}
		p.near.post(transports.Op{Kind: transports.KindRecv, Local: 512, Len: 8})
		p.far.post(transports.Op{Kind: transports.KindSend, Len: 8})
		p.until("receive", func() bool {
			if _, err := p.near.s.Post(writes); err != nil && !isFull(err) {
				t.Fatalf("post: %v", err)
			}
			return p.near.received() > 0
		})
	}
}

// ownAmongReceives has far send as fast as near polls, and looks for the one completion of near's own.
func ownAmongReceives(t *testing.T, open Open) {
	for _, room := range []int{1, 2, 8} {
		p := connect(t, open, transports.Config{Window: 4096, SendDepth: 64, RecvDepth: 64})
		p.near.buf = p.near.buf[:room]
		recvs, sends := make([]transports.Op, 64), make([]transports.Op, 64)
		for i := range recvs {
			recvs[i] = transports.Op{Kind: transports.KindRecv, Local: 512, Len: 8}
			sends[i] = transports.Op{Kind: transports.KindSend, Len: 8}
		}
		posted, sent := 0, 0 // receives of near and messages of far, which has none without its receive
		posting := func(e *end, ops []transports.Op) int {
			n, err := e.s.Post(ops)
			if err != nil && !isFull(err) {
				t.Fatalf("%s post: %v", e.name, err)
			}
			return n
		}
		own := false
		// An iWARP responder is silent before the initiator's first FPDU (RFC 5044 section 7.1.2).
		p.near.post(transports.Op{Kind: transports.KindWrite, Len: 8, Flags: transports.Unsignaled})
		p.until("own completion", func() bool {
			posted += posting(p.near, recvs[:64-(posted-p.near.received())])
			sent += posting(p.far, sends[:posted-sent])
			if !own && p.near.received() >= 2*room { // they come in every Poll
				p.near.post(transports.Op{Kind: transports.KindWrite, Len: 8})
				own = true
			}
			return len(p.near.dones) > p.near.received()
		})
	}
}

func (e *end) received() (n int) {
	for _, d := range e.dones {
		if d.Kind == transports.KindRecv {
			n++
		}
	}
	return n
}

func unsignaled(t *testing.T, open Open) {
	for _, depth := range []int{1, 2, 3, 8, 200} {
		p := connect(t, open, transports.Config{Window: 64 << 10, SendDepth: depth, RecvDepth: 1})
		scribble(p.near.s.Local()[:8000], depth)
		var ops []transports.Op
		for i := range 1000 {
			ops = append(ops, transports.Op{Kind: transports.KindWrite, Local: 8 * uint64(i), Remote: 8 * uint64(i),
				Len: 8, Slot: 1, Flags: transports.Unsignaled})
		}
		p.postAll(p.near, ops)
		p.postAll(p.near, []transports.Op{{Kind: transports.KindWrite, Len: 8, Slot: 2}})
		if d := p.take(p.near, 1)[0]; d.Slot != 2 {
			t.Fatalf("depth %d: done = %+v, want the one that was signaled", depth, d)
		}
		p.barrier()
		same(t, "window", p.far.s.Local()[:8000], p.near.s.Local()[:8000])
		if len(p.near.dones)+len(p.far.dones) != 0 {
			t.Fatalf("depth %d: more completions: %v, %v", depth, p.near.dones, p.far.dones)
		}
	}
}

func inline(t *testing.T, open Open) {
	size := min(64, open16(open, t))
	if size == 0 {
		return
	}
	p := connect(t, open, transports.Config{Window: 64 << 10, SendDepth: 64, RecvDepth: 64, MaxInline: size})
	want := make([]byte, 64*size)
	scribble(want, 3)
	for i := range 64 {
		op := transports.Op{Kind: transports.KindSend, Len: uint32(size), Slot: uint32(i), Flags: transports.Inline}
		if i%2 == 1 {
			op.Kind, op.Remote = transports.KindWrite, uint64(i*size)
		} else {
			p.far.post(transports.Op{Kind: transports.KindRecv, Local: uint64(i * size), Len: uint32(size)})
		}
		copy(p.near.s.Local(), want[i*size:][:size])
		p.near.post(op)
		clear(p.near.s.Local()[:size]) // the bytes are ours again
	}
	p.take(p.near, 64)
	p.take(p.far, 32)
	p.barrier()
	same(t, "window", p.far.s.Local()[:64*size], want)
	if !p.caps.Kinds.Has(transports.KindRead) {
		return
	}
	if n, err := p.near.s.Post([]transports.Op{{Kind: transports.KindRead, Len: 1,
		Flags: transports.Inline}}); n != 0 || !errors.Is(err, rdma.ErrInvalid) {
		t.Errorf("inline read: post = %d, %v, want 0, %v", n, err, rdma.ErrInvalid)
	}
}

func fence(t *testing.T, open Open) {
	p := connect(t, open, ordinary)
	if !p.caps.Kinds.Has(transports.KindRead) {
		return
	}
	for i := range 20 {
		scribble(p.far.s.Local()[:4096], i)
		p.near.post(
			transports.Op{Kind: transports.KindRead, Len: 4096, Slot: 1},
			transports.Op{Kind: transports.KindWrite, Remote: 8192, Len: 4096, Slot: 2, Flags: transports.Fence},
			transports.Op{Kind: transports.KindRead, Local: 4096, Remote: 8192, Len: 4096, Slot: 3},
		)
		for j, d := range p.take(p.near, 3) {
			if int(d.Slot) != j+1 {
				t.Fatalf("done %d = %+v", j, d)
			}
		}
		same(t, "bytes written back", p.far.s.Local()[8192:][:4096], p.far.s.Local()[:4096])
		same(t, "bytes read again", p.near.s.Local()[4096:][:4096], p.far.s.Local()[:4096])
	}
}
