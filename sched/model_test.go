package sched_test

import (
	"bytes"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"pgregory.net/rapid"
)

// The reference model is what the user posted, in order. It knows no queues, marks or windows of the tier.

type ask struct {
	id       uint64
	op       rdma.Opcode
	class    int
	size     int
	at       int // offset of its bytes in both arenas
	signaled bool
	ordered  bool
	cut      bool // may be cut
	posted   int  // bytes seen at the device
	parts    int
	whole    bool // all of it is at the device
	arrived  int
	ended    bool // all of it was carried out
	told     bool
	flushed  bool
}

type model struct {
	t     *rapid.T
	cfg   sched.Config
	dev   *scriptDevice
	far   *scriptQP
	qp    rdma.QP
	cq    rdma.CQ
	near  rdma.Buffer // the user's side
	home  rdma.Buffer // the peer's
	next  int         // free offset of both
	asks  []*ask
	under [sched.Priorities]int
	depth int
	errs  int // real errors told

	// With cut sends.
	sink  rdma.Buffer // receives of the QP, which is its own peer then
	recvs int         // posted
	came  int         // completed
	key   uint32      // of sink
	msgs  []*ask      // as they took receives
}

// longest is the longest request, and the length of a receive.
const longest = 5000

const arena = 1 << 20

func newModel(t *rapid.T, cfg sched.Config, local bool, failAfter int) *model {
	m := &model{t: t, cfg: cfg, dev: newScript(local), depth: 24}
	m.dev.loop = cfg.Sends == sched.CutSends
	dev := need(sched.Wrap(m.dev, cfg))(t)
	sched.WithoutKeeper(dev)
	for _, b := range []*rdma.Buffer{&m.near, &m.home, &m.sink} {
		*b = need(rdma.Alloc(arena))(t)
	}
	var sink rdma.MR
	if m.dev.loop {
		sink = need(dev.RegMR(0, m.sink, rdma.LocalWrite))(t)
	}
	m.cq = need(dev.NewCQ(4 * m.depth))(t)
	m.qp = need(dev.NewQP(rdma.QPConfig{SendCQ: m.cq, RecvCQ: m.cq, SendDepth: m.depth, MaxInline: 64}))(t)
	need(m.qp.Connect(t.Context(), "", rdma.ConnParam{IRD: 4, ORD: 4}))(t)
	m.far = m.dev.qps[0]
	m.far.failAfter, m.far.status = failAfter, rdma.StatusRemAccessErr
	m.far.onPost = m.posted
	if m.dev.loop {
		m.far.failAfter = -1
		m.key = sink.LKey()
		m.receive(4) // what the peer is to know before the first send
		m.carryOut(8)
		for m.poll() > 0 {
		}
		m.far.failAfter = failAfter
	}
	return m
}

// receive posts receives.
func (m *model) receive(n int) {
	for ; n > 0 && m.recvs-m.came < m.depth && m.recvs < arena/longest; n-- {
		wr := rdma.RecvWR{ID: uint64(firstRecv + m.recvs), NumSGE: 2}
		at := m.sink.Addr() + uint64(m.recvs*longest)
		wr.SGE[0] = rdma.SGE{Addr: at, Len: 1500, LKey: m.key}
		wr.SGE[1] = rdma.SGE{Addr: at + 1500, Len: longest - 1500, LKey: m.key}
		need(m.qp.PostRecv([]rdma.RecvWR{wr}))(m.t)
		m.recvs++
	}
}

// firstRecv is the ID of the first receive.
const firstRecv = 1 << 32

// received judges a receive: they complete in order, each with the next message to end, and all of it.
func (m *model) received(wc *rdma.WC) {
	t := m.t
	if wc.Status != rdma.StatusSuccess {
		t.Fatalf("receive %d: %s", wc.ID-firstRecv, wc.Status)
	}
	i := m.came
	m.came++
	if wc.ID != uint64(firstRecv+i) {
		t.Fatalf("receive %d completes, want %d", wc.ID-firstRecv, i)
	}
	a := m.msgs[i]
	want := rdma.WC{ID: wc.ID, QPNum: wc.QPNum, Opcode: rdma.WCRecv, ByteLen: uint32(a.size)}
	switch a.op {
	case rdma.OpWriteImm:
		want.Opcode = rdma.WCRecvWriteImm
		want.ByteLen = wc.ByteLen // of the last slice, with LastImmediates
		fallthrough
	case rdma.OpSendImm:
		want.Imm, want.Flags = uint32(a.id), rdma.WithImm
	}
	if *wc != want {
		t.Fatalf("receive of request %d, a %s of %d bytes in %d parts: %+v, want %+v", a.id, a.op, a.size, a.parts,
			*wc, want)
	}
	if a.op != rdma.OpWriteImm && !bytes.Equal(m.sink.Bytes()[i*longest:][:a.size], a.data()) {
		t.Fatalf("request %d: %s of %d bytes in %d parts: what is received differs", a.id, a.op, a.size, a.parts)
	}
}

// data are the bytes of a request.
func (a *ask) data() []byte {
	b := make([]byte, a.size)
	for i := range b {
		b[i] = byte(int(a.id)*31 + i*7 + i>>8*13 + 1)
	}
	return b
}

func (m *model) free() {
	m.sink.Free()
	m.near.Free()
	m.home.Free()
}

// post draws requests of one class and posts them in one call.
func (m *model) post() {
	t, first := m.t, len(m.asks)
	var wrs []rdma.SendWR
	class := rapid.SampledFrom([]int{0, 0, 0, 1, 5, 7}).Draw(t, "priority")
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3, 6}).Draw(t, "requests") {
		if wr, ok := m.draw(class); ok {
			wrs = append(wrs, wr)
		}
	}
	n, err := m.qp.PostSend(wrs)
	for i := range wrs[:n] {
		if a := m.asks[first+i]; wrs[i].Flags&rdma.Inline != 0 {
			for k := range a.size { // the bytes are ours again
				m.near.Bytes()[a.at+k] = 0xee
			}
		}
	}
	if n == len(wrs) {
		return
	}
	if err != rdma.ErrQueueFull {
		t.Fatalf("post: %v", err)
	}
	m.next = m.asks[first+n].at
	m.asks = m.asks[:first+n]
	out := 0
	for _, b := range m.asks {
		if !b.told && (b.signaled || !b.whole || !m.dev.local && !b.ended) {
			out++
		}
	}
	if out > m.depth {
		t.Fatalf("%d requests outstanding in a queue of %d", out, m.depth)
	}
}

// draw makes a request, unless the arena has no room for it.
func (m *model) draw(class int) (wr rdma.SendWR, ok bool) {
	t := m.t
	ops := []rdma.Opcode{rdma.OpWrite, rdma.OpWrite, rdma.OpWrite, rdma.OpRead, rdma.OpSend, rdma.OpWriteImm}
	if m.dev.loop {
		ops = []rdma.Opcode{rdma.OpWrite, rdma.OpRead, rdma.OpSend, rdma.OpSend, rdma.OpSendImm, rdma.OpWriteImm}
	}
	a := &ask{
		id:       uint64(len(m.asks)) + 1,
		op:       rapid.SampledFrom(ops).Draw(t, "op"),
		class:    class,
		size:     rapid.SampledFrom([]int{0, 1, 64, 1000, 1024, 1025, 3000, longest}).Draw(t, "size"),
		signaled: rapid.Float64Range(0, 1).Draw(t, "signalled") < 0.8,
	}
	if m.next+a.size > arena || len(m.asks) >= arena/longest {
		return wr, false
	}
	a.at = m.next
	m.next += a.size
	wr = rdma.SendWR{ID: a.id, Op: a.op, Priority: uint8(a.class), RemoteAddr: m.home.Addr() + uint64(a.at),
		RKey: uint32(a.id), Imm: uint32(a.id)}
	if a.signaled {
		wr.Flags |= rdma.Signaled
	}
	if rapid.Float64Range(0, 1).Draw(t, "fence") < 0.1 {
		wr.Flags |= rdma.Fence
		a.ordered = true
	}
	if a.op != rdma.OpRead && a.size <= 64 && rapid.Bool().Draw(t, "inline") {
		wr.Flags |= rdma.Inline
	}
	a.cut = a.op == rdma.OpWrite || a.op == rdma.OpRead || a.op == rdma.OpWriteImm &&
		m.cfg.Immediates == sched.LastImmediates ||
		sends.Has(a.op) && m.dev.loop
	left := a.size
	for at := a.at; left > 0; {
		n := left
		if wr.NumSGE < rdma.MaxSGE-1 {
			n = rapid.IntRange(1, left).Draw(t, "element")
		}
		wr.SGE[wr.NumSGE] = rdma.SGE{Addr: m.near.Addr() + uint64(at), Len: uint32(n)}
		wr.NumSGE++
		at, left = at+n, left-n
	}
	src := m.near
	if a.op == rdma.OpRead {
		src = m.home
	}
	copy(src.Bytes()[a.at:], a.data())
	m.asks = append(m.asks, a) // before the post: the device may see it within
	return wr, true
}

// of is the request that something at the device is a part of, by the key that it carries; nil for the tier's own.
func (m *model) of(wr *rdma.SendWR) *ask {
	switch {
	case wr.RKey == 0:
		return nil
	case wr.RKey < firstKey:
		return m.asks[wr.RKey-1]
	case wr.NumSGE == 0 || wr.SGE[0].Addr < m.near.Addr() || wr.SGE[0].Addr >= m.near.Addr()+arena:
		return nil // a descriptor or a notice
	}
	// A slice on its way into the ring of the peer.
	at := int(wr.SGE[0].Addr - m.near.Addr())
	for _, a := range m.asks {
		if at >= a.at && at < a.at+a.size && a.op != rdma.OpRead {
			return a
		}
	}
	m.t.Fatalf("%d bytes at %d of nobody's", wr.Len(), at)
	return nil
}

// posted judges a request that reaches the device.
func (m *model) posted(wr *rdma.SendWR) {
	if m.far.ended {
		return
	}
	a := m.of(wr)
	if a == nil {
		if wr.Len() != 0 && !(wr.RKey >= firstKey && wr.Len() == 16 && wr.Flags&rdma.Inline != 0) {
			m.t.Fatalf("%s of %d bytes that nobody asked for", wr.Op, wr.Len())
		}
		return
	}
	n := int(wr.Len())
	switch {
	case a.whole:
		m.t.Fatalf("request %d is posted again", a.id)
	case n < a.size && !a.cut:
		m.t.Fatalf("a %s is cut", a.op)
	case a.cut && m.cfg.Policy != sched.FIFO && n > m.cfg.Slice && wr.Flags&rdma.Inline == 0 &&
		!(sends.Has(a.op) && n == a.size):
		m.t.Fatalf("a slice of %d bytes, limit %d", n, m.cfg.Slice)
	}
	last := a.posted+n == a.size
	if sends.Has(a.op) && (wr.Op == a.op) != last {
		m.t.Fatalf("request %d: the send is at bytes %d of %d", a.id, a.posted+n, a.size)
	}
	if a.op == rdma.OpWriteImm && (wr.Op == rdma.OpWriteImm) != last {
		m.t.Fatalf("request %d: the immediate is at bytes %d of %d", a.id, a.posted+n, a.size)
	}
	if wr.Op == rdma.OpWriteImm && wr.Imm != uint32(a.id) {
		m.t.Fatalf("immediate %d, want %d", wr.Imm, a.id)
	}
	for _, b := range m.asks {
		if b == a || b.whole {
			continue
		}
		earlier := b.id < a.id
		switch {
		case earlier && b.class == a.class:
			m.t.Fatalf("request %d overtakes %d of its own priority", a.id, b.id)
		case earlier && m.cfg.Policy == sched.FIFO:
			m.t.Fatalf("fifo: request %d overtakes %d", a.id, b.id)
		case earlier && a.ordered && a.posted == 0:
			m.t.Fatalf("fenced request %d overtakes %d", a.id, b.id)
		case m.cfg.Policy == sched.Strict && b.class > a.class && b.posted < b.size && earlier && !m.blocked(b):
			m.t.Fatalf("a slice of request %d, priority %d, goes before %d, priority %d", a.id, a.class, b.id, b.class)
		}
	}
	// The window: what is at the device and has not arrived. A loose one leaves that to the device.
	for c := 0; c <= a.class; c++ {
		if m.cfg.Policy != sched.FIFO && !sched.Loose(m.qp) && c == a.class && m.under[c] > 0 &&
			m.under[c]+n > m.cfg.Window {
			m.t.Fatalf("%d bytes of priority %d and above under way, window %d", m.under[c]+n, c, m.cfg.Window)
		}
		m.under[c] += n
	}
	a.posted += n
	a.parts++
	a.whole = last
}

// blocked reports whether a fence holds a request, or one before it of its class.
func (m *model) blocked(b *ask) bool {
	for _, x := range m.asks {
		if x.class != b.class || x.id > b.id || x.whole || !x.ordered || x.posted > 0 {
			continue
		}
		for _, y := range m.asks {
			if y.id < x.id && !y.whole {
				return true
			}
		}
	}
	return false
}

// carryOut lets the device work.
func (m *model) carryOut(n int) int {
	done := m.far.carryOut(n)
	for _, wr := range m.far.arriving {
		a := m.of(&wr)
		if a == nil {
			continue
		}
		for c := 0; c <= a.class; c++ {
			m.under[c] -= int(wr.Len())
		}
		a.arrived += int(wr.Len())
		if a.op == wr.Op && (sends.Has(a.op) || a.op == rdma.OpWriteImm) {
			m.msgs = append(m.msgs, a)
		}
		if a.arrived == a.size && a.whole {
			a.ended = true
		}
	}
	m.far.arriving = nil
	return done
}

// poll takes completions and judges them.
func (m *model) poll() int {
	return m.take(rapid.IntRange(1, mostRoom).Draw(m.t, "room"))
}

const mostRoom = 5

// take is a poll with room for so many completions.
func (m *model) take(room int) int {
	var wcs [mostRoom]rdma.WC
	n := need(m.cq.Poll(wcs[:room]))(m.t)
	for _, wc := range wcs[:n] {
		if wc.ID >= firstRecv {
			m.received(&wc)
			continue
		}
		m.told(&wc)
	}
	return n
}

func (m *model) told(wc *rdma.WC) {
	t := m.t
	if wc.ID < 1 || wc.ID > uint64(len(m.asks)) {
		t.Fatalf("a completion that nobody asked for: %+v", *wc)
	}
	a := m.asks[wc.ID-1]
	if a.told {
		t.Fatalf("request %d completes twice", a.id)
	}
	a.told = true
	if wc.QPNum != m.qp.Num() {
		t.Fatalf("completion of qp %d", wc.QPNum)
	}
	if wc.Status != rdma.StatusSuccess {
		if wc.Status != rdma.StatusWRFlushErr {
			m.errs++
		}
		if !m.far.ended {
			t.Fatalf("request %d fails on a connection that works: %s", a.id, wc.Status)
		}
		a.flushed = true
		return
	}
	switch {
	case !a.signaled:
		t.Fatalf("unsignalled request %d completes", a.id)
	case wc.Opcode != a.op.Completes():
		t.Fatalf("request %d completes as %s", a.id, wc.Opcode)
	case a.op == rdma.OpRead && int(wc.ByteLen) != a.size:
		t.Fatalf("read %d completes with %d bytes of %d", a.id, wc.ByteLen, a.size)
	case !a.ended && !m.dev.local:
		t.Fatalf("request %d completes with %d of %d bytes", a.id, a.arrived, a.size)
	case !a.whole:
		t.Fatalf("request %d completes with %d of %d bytes posted", a.id, a.posted, a.size)
	}
	for _, b := range m.asks[:a.id-1] {
		if !b.told && b.class == a.class && b.signaled {
			t.Fatalf("request %d completes before %d of its priority", a.id, b.id)
		}
		if !b.signaled && !b.told && (!b.whole || !m.dev.local && !b.ended) {
			t.Fatalf("the completion of %d covers unsignalled request %d, which has not ended", a.id, b.id)
		}
	}
	m.same(a)
}
