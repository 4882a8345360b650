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

// A long message can be written into memory that the receiver granted before, a sink; a frame follows it. After a long
// message the receiver grants a sink of that length, within Config.Sinks. It takes nothing of a stream's window. Of a
// message so long that two of them exceed Config.Sinks, the memory itself is granted again when it is freed:
// consecutive calls then use the same pages. Shorter sinks are replaced before the handler runs.

const (
	// sinkMin is the shortest sink: a grant and its registration take some microseconds.
	sinkMin = 64 << 10
	// maxGrants bounds the unused grants of either side.
	maxGrants    = 8
	defaultSinks = 64 << 20
	maxSinks     = 1<<31 - 1
	// placeStep is placed between two checks of the context: some 50 µs of a software device, in whole runs of Conn.Place.
	placeStep = 4 * (32<<10 - 64)
	// placeEvery is how often a frame announces that a message is being placed, twice within the default busy time of 200
	// µs: a receiver that polls would sleep meanwhile, and software devices need a thread that polls.
	placeEvery = 90 * time.Microsecond
)

// sinkConn is a connection whose peer can write into memory of this side.
type sinkConn interface {
	// SinkFrom is the length from which sinks are faster on this side.
	SinkFrom() int
	// Grant lets the peer write n bytes of memory, which key and addr name.
	Grant(n int) (key uint32, addr uint64, err error)
	// Take ends that; the bytes are the caller's until free.
	Take(key uint32) (b []byte, free func(), err error)
	// Place writes to what the peer granted, before anything written later.
	Place(key uint32, addr uint64, p []byte) (int, error)
}

type grant struct {
	key  uint32
	n    int
	addr uint64
}

type sinks struct {
	conn   sinkConn // nil: messages of this session take no sinks
	most   int      // bytes of all own grants
	from   int      // shortest message that is granted memory
	mu     sync.Mutex
	own    map[uint32]grant // by key: the peer may use them
	making int              // grants that are not in own yet
	bytes  int              // of both
	peers  []grant          // this side may use them
}

// sinkMessage is the memory of a message in a sink. One that is never freed is garbage-collected, and not granted
// again: the collector must not wait for a peer.
type sinkMessage struct {
	mem.NopBufferPool
	s       *session
	n       int // bytes of the message
	free    func()
	cleanup runtime.Cleanup
}

func (s *session) newSinkMessage(n int, free func()) *sinkMessage {
	l := &sinkMessage{s: s, n: n, free: free}
	l.cleanup = runtime.AddCleanup(l, func(free func()) { free() }, free)
	return l
}

var _ mem.BufferPool = (*sinkMessage)(nil)

// Put frees the memory, and grants it again if it was not replaced before.
func (l *sinkMessage) Put(*[]byte) {
	l.cleanup.Stop()
	l.free()
	if l.s.regrants(l.n) {
		l.s.offer(l.n)
	}
	runtime.KeepAlive(l)
}

// regrants is true when the memory of a message of n bytes is granted again after its use.
func (s *session) regrants(n int) bool { return n > s.sinks.most-n }

// offer grants the peer a sink for n bytes. Without memory for that, messages come in frames.
func (s *session) offer(n int) {
	l := &s.sinks
	if l.conn == nil || n < l.from {
		return
	}
	select {
	case <-s.done: // memory is freed after the end of its connection, too
		return
	default:
	}
	l.mu.Lock()
	if len(l.own)+l.making >= maxGrants || n > l.most-l.bytes {
		l.mu.Unlock()
		return
	}
	l.making++ // before the lock is released: the peer takes no more than maxGrants
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

func (s *session) granted(f *frame) error {
	l := &s.sinks
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
	if d.bad || len(d.b) > 0 || l.conn == nil || g.n < sinkMin || len(l.peers) >= maxGrants {
		return fmt.Errorf("%w: grant of %d bytes beside %d", errFrame, g.n, len(l.peers))
	}
	l.peers = append(l.peers, g)
	return nil
}

func (s *session) take(key uint32, n int) (b []byte, free func(), err error) {
	l := &s.sinks
	l.mu.Lock()
	g, ok := l.own[key]
	delete(l.own, key)
	l.bytes -= g.n
	l.mu.Unlock()
	if !ok || n > g.n {
		return nil, nil, fmt.Errorf("%w: %d bytes in a sink of %d", errFrame, n, g.n)
	}
	if b, free, err = l.conn.Take(key); err != nil {
		return nil, nil, err
	}
	return b[:n], free, nil
}

func (s *session) drop(key uint32, n int) error {
	_, free, err := s.take(key, n)
	if err == nil {
		free()
	}
	return err
}

// choose takes the shortest grant for n bytes. If all are too short it returns one, for a longer one.
func (s *session) choose(n int) (g grant, ok bool) {
	l := &s.sinks
	if l.conn == nil || n < sinkMin {
		return g, false
	}
	l.mu.Lock()
	best := -1
	for i, x := range l.peers {
		if best < 0 || (x.n >= n) != (l.peers[best].n >= n) && x.n >= n || (x.n >= n) == (l.peers[best].n >= n) &&
			x.n < l.peers[best].n {
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

// place writes a message into a grant, or returns that with the end of ctx.
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
		if _, err := s.sinks.conn.Place(g.key, g.addr+uint64(at), msg[at:min(at+placeStep, len(msg))]); err != nil {
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

func (st *stream) sendToSink(ctx context.Context, g grant, fl flags, blocks, msg []byte) error {
	if _, err := st.reserve(ctx, 0); err != nil {
		st.s.giveBack(g)
		return err
	}
	if err := st.s.place(ctx, g, msg); err != nil {
		return err
	}
	st.opened = true
	return st.s.send(kindStream, fl|fSink, st.id, blocks, len(msg), binary.LittleEndian.AppendUint32(nil, g.key))
}

// arrive adds a message in a sink. The caller holds mu.
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
	st.queue = append(st.queue, &message{buf: &b, total: f.total, got: f.total, granted: f.total,
		packed: f.has(fPacked), pool: st.s.newSinkMessage(f.total, free)})
	return nil
}
