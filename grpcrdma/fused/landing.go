package fused

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/mem"
)

// A long message may land: its sender writes it into memory that the receiver
// granted before, and a frame says that it is there. Nobody asks and waits for
// memory. A receiver that took a long message off a stream grants memory for another
// one of that length, so the first of a kind goes through frames, and later ones land.
// A peer thus gets memory for what it sent, and within Config.Landing. Messages that
// landed take nothing of a stream's window: there is no more of them than of grants.
//
// Of a message so long that two of them exceed Config.Landing, the memory itself is
// granted again, when it is freed: calls one after the other then touch the pages of one
// landing and not of two. Shorter ones have the next grant on its way before their
// handler runs, which carries a tenth more of 16 MiB.

const (
	// landMin is the shortest length that may land: a grant and its registration take
	// some microseconds. A receiver grants none below what its device says. Arbitrary.
	landMin = 64 << 10
	// maxGrants bounds the grants of either side that are not used yet. Arbitrary.
	maxGrants      = 8
	defaultLanding = 64 << 20
	maxLanding     = 1<<31 - 1
	// placeStep is placed between two looks at the context and at the clock. Arbitrary:
	// some 50 µs of work of a software device, in whole runs of grpcrdma's Conn.Place.
	placeStep = 4 * (32<<10 - 64)
	// placeEvery is how often a frame says that a message is being placed: a receiver
	// sees nothing of that, and one that waits busily would fall asleep over a message
	// that takes longer than its busy time, while software devices need somebody awake
	// to move the bytes. Arbitrary: twice within the default busy time of 200 µs.
	placeEvery = 90 * time.Microsecond
)

// lander is a connection whose peer can write into memory of this side.
type lander interface {
	// LandsFrom is the length from which that pays on this side.
	LandsFrom() int
	// Grant gives the peer memory of n bytes, which key and addr name.
	Grant(n int) (key uint32, addr uint64, err error)
	// Take ends that; the bytes are the caller's until free.
	Take(key uint32) (b []byte, free func(), err error)
	// Place writes to what the peer granted, before anything written behind it.
	Place(key uint32, addr uint64, p []byte) (int, error)
}

// grant is memory for a message of up to n bytes.
type grant struct {
	key  uint32
	n    int
	addr uint64
}

// landings are the grants of a session.
type landings struct {
	conn   lander // nil: messages of this session do not land
	most   int    // bytes of all own grants
	from   int    // shortest message that is granted memory
	mu     sync.Mutex
	own    map[uint32]grant // by key: the peer may use them
	making int              // grants that are not in own yet
	bytes  int              // of both
	peers  []grant          // this side may use them
}

// landed is the memory of a message that landed, as gRPC's buffers free it. A message
// that nobody frees is freed by the collector, as it would be on the heap, and granted
// no more: the collector waits for no peer.
type landed struct {
	s       *session
	n       int // bytes of the message
	free    func()
	cleanup runtime.Cleanup
}

func (s *session) newLanded(n int, free func()) *landed {
	l := &landed{s: s, n: n, free: free}
	l.cleanup = runtime.AddCleanup(l, func(free func()) { free() }, free)
	return l
}

var _ mem.BufferPool = (*landed)(nil)

// Get is for other pools: nothing is taken from a message.
func (l *landed) Get(n int) *[]byte { return mem.DefaultBufferPool().Get(n) }

// Put frees the memory, once, and grants it again if it was not replaced before.
func (l *landed) Put(*[]byte) {
	l.cleanup.Stop()
	l.free()
	if l.s.regrants(l.n) {
		l.s.offer(l.n)
	}
	runtime.KeepAlive(l)
}

// regrants tells whether memory of a message of n bytes is granted again behind its
// use, rather than other memory before.
func (s *session) regrants(n int) bool { return n > s.land.most-n }

// offer grants the peer memory for a message as long as one of n bytes that it sent.
// Without memory for that, messages come in frames.
func (s *session) offer(n int) {
	l := &s.land
	if l.conn == nil || n < l.from {
		return
	}
	select {
	case <-s.done: // memory is freed behind the end of its connection, too
		return
	default:
	}
	l.mu.Lock()
	if len(l.own)+l.making >= maxGrants || n > l.most-l.bytes {
		l.mu.Unlock()
		return
	}
	l.making++ // before anybody else looks: the peer takes no more than maxGrants
	l.bytes += n
	l.mu.Unlock()
	key, addr, err := l.conn.Grant(n)
	l.mu.Lock()
	l.making--
	if err != nil {
		l.bytes -= n
		l.mu.Unlock()
		return
	}
	l.own[key] = grant{key, n, addr}
	l.mu.Unlock()
	var b [16]byte
	binary.LittleEndian.PutUint32(b[:], key)
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	binary.LittleEndian.PutUint64(b[8:], addr)
	s.send(kindGrant, 0, 0, nil, 0, b[:]) // a failure is the connection's end
}

// granted takes note of a grant of the peer's, of one that it gives back, or of
// nothing but that a message is on its way.
func (s *session) granted(f *frame) error {
	l := &s.land
	d := decoder{b: f.data}
	if f.kind == kindPlacing {
		if len(d.b) > 0 {
			return fmt.Errorf("%w: notice of placing with %d bytes", errFrame, len(d.b))
		}
		return nil
	}
	if f.kind == kindReturn {
		key := d.u32()
		if d.bad {
			return fmt.Errorf("%w: torn return", errFrame)
		}
		return s.drop(key, 0)
	}
	g := grant{key: d.u32(), n: int(d.u32()), addr: d.u64()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.bad || len(d.b) > 0 || l.conn == nil || g.n < landMin || len(l.peers) >= maxGrants {
		return fmt.Errorf("%w: grant of %d bytes beside %d", errFrame, g.n, len(l.peers))
	}
	l.peers = append(l.peers, g)
	return nil
}

// take ends a grant that the peer used for n bytes.
func (s *session) take(key uint32, n int) (b []byte, free func(), err error) {
	l := &s.land
	l.mu.Lock()
	g, ok := l.own[key]
	delete(l.own, key)
	l.bytes -= g.n
	l.mu.Unlock()
	if !ok || n > g.n {
		return nil, nil, fmt.Errorf("%w: %d bytes in a landing of %d", errFrame, n, g.n)
	}
	if b, free, err = l.conn.Take(key); err != nil {
		return nil, nil, err
	}
	return b[:n], free, nil
}

// drop takes a grant of which nobody wants the n bytes that the peer used.
func (s *session) drop(key uint32, n int) error {
	_, free, err := s.take(key, n)
	if err == nil {
		free()
	}
	return err
}

// choose takes the shortest grant for n bytes. When there are only shorter ones, one
// of them goes back, so that the peer can grant a longer one.
func (s *session) choose(n int) (g grant, ok bool) {
	l := &s.land
	if l.conn == nil || n < landMin {
		return g, false
	}
	l.mu.Lock()
	best := -1
	for i, x := range l.peers {
		if best < 0 || (x.n >= n) != (l.peers[best].n >= n) && x.n >= n || (x.n >= n) == (l.peers[best].n >= n) && x.n < l.peers[best].n {
			best = i
		}
	}
	if best < 0 {
		l.mu.Unlock()
		return g, false
	}
	g = l.peers[best]
	l.peers = append(l.peers[:best], l.peers[best+1:]...)
	l.mu.Unlock()
	if g.n >= n {
		return g, true
	}
	s.giveBack(g)
	return g, false
}

// giveBack returns a grant unused. A failure is the connection's end.
func (s *session) giveBack(g grant) {
	s.send(kindReturn, 0, 0, nil, 0, binary.LittleEndian.AppendUint32(nil, g.key))
}

// place writes a message into a grant. A context that ends gives the grant back.
func (s *session) place(ctx context.Context, g grant, msg []byte) error {
	said := time.Now()
	s.out.mu.Lock()
	s.expect(said)
	s.out.mu.Unlock()
	for at := 0; at < len(msg); at += placeStep {
		if err := ctx.Err(); err != nil {
			s.giveBack(g)
			return err
		}
		if _, err := s.land.conn.Place(g.key, g.addr+uint64(at), msg[at:min(at+placeStep, len(msg))]); err != nil {
			s.fail(err)
			return s.cause()
		}
		if at+placeStep >= len(msg) {
			break
		}
		if now := time.Now(); now.Sub(said) >= placeEvery {
			said = now
			if err := s.send(kindPlacing, 0, 0, nil, 0, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendLanded sends a message by a grant: the bytes, and the one frame that is left.
func (st *stream) sendLanded(ctx context.Context, g grant, fl flags, blocks, msg []byte) error {
	if _, err := st.reserve(ctx, 0); err != nil {
		st.s.giveBack(g)
		return err
	}
	if err := st.s.place(ctx, g, msg); err != nil {
		return err
	}
	st.opened = true
	return st.s.send(kindStream, fl|fLanded, st.id, blocks, len(msg), binary.LittleEndian.AppendUint32(nil, g.key))
}

// arrive adds a message that landed. The caller holds mu.
func (st *stream) arrive(f *frame) error {
	b, free, err := st.s.take(f.key, f.total)
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			free()
		}
	}()
	if st.dropped || st.err != nil {
		return nil
	}
	if err := st.first(f); err != nil || st.err != nil {
		return err
	}
	keep = true
	st.queue = append(st.queue, &message{buf: &b, total: f.total, got: f.total, granted: f.total, packed: f.has(fPacked), pool: st.s.newLanded(f.total, free)})
	return nil
}
