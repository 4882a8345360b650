package fused

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

const (
	version = 4

	// defaultWindow is the largest message by default, so that one message never waits for a window.
	defaultWindow = defaultMaxRecv
	minWindow     = 64 << 10
	maxWindow     = 1<<31 - 1

	defaultStreams = 1000
	maxStreams     = 1 << 20
	defaultMaxRecv = 4 << 20 // as gRPC
	defaultMaxSend = 1<<31 - 1

	// defaultConnect is less than gRPC's 120 s: who is silent holds a connection's memory. Arbitrary.
	defaultConnect = 10 * time.Second
	// defaultStall bounds a frame that was begun, whatever its call's deadline. Arbitrary.
	defaultStall = 10 * time.Second
	// gatherMax is up to which length a payload is copied beside its header, for one write. Arbitrary.
	gatherMax = 8 << 10
)

// session is a connection with its streams, seen from either side.
type session struct {
	conn   net.Conn             // behind secure what the handshake made of it; set under mu
	auth   credentials.AuthInfo // what the handshake proved about the peer
	two    twoWriter            // conn, if it takes a header and its payload at once
	client bool
	in     inbound
	r      *bufio.Reader // of in
	bulk   bulk
	await  func(ctx context.Context, st *stream, ev event) error

	window, peerWindow int
	maxBlocks          int // of open, header and trailer of one frame, in bytes
	peerBlocks         int
	more               []byte // a frame's header and the payload that has come of it, while kindMore frames do
	maxRecv            int
	stall              time.Duration
	sinks              sinks
	out                writeQueue

	pingTime, pingLimit time.Duration
	received            atomic.Uint32 // changes when something comes, if there are pings
	pinged              atomic.Bool   // an answer is waited for
	pong                atomic.Bool   // an answer is due

	mu      sync.Mutex
	streams map[uint32]*stream
	lost    map[uint32]*stream // those that the session's end ended
	err     error
	done    chan struct{}
}

func newSession(conn net.Conn, client bool, cfg *Config) *session {
	s := &session{
		conn: conn, client: client, window: cfg.Window, maxRecv: cfg.MaxRecvMsgSize, stall: cfg.StallLimit,
		maxBlocks: max(cfg.MaxHeaderListSize, maxBlocks), peerBlocks: defaultBlocks,
		streams: map[uint32]*stream{}, done: make(chan struct{}), pingTime: cfg.PingTime, pingLimit: cfg.PingTimeout,
	}
	s.out.room.L = &s.out.mu
	s.sinks.most, s.sinks.own = cfg.Sinks, map[uint32]grant{}
	return s
}

func (s *session) use(conn net.Conn) {
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	// Callers and quick handlers do all their work on the thread that reads.
	if k, ok := conn.(interface{ KeepProcessor() }); ok {
		k.KeepProcessor()
	}
	s.two, _ = conn.(twoWriter)
	if l, ok := conn.(sinkConn); ok && s.sinks.most > 0 {
		s.sinks.conn, s.sinks.from = l, max(sinkMin, l.SinkFrom())
	}
	s.in.conn = conn
	s.r = bufio.NewReaderSize(&s.in, headerLen+maxPayload)
}

// twoWriter is a connection that writes two slices as one.
type twoWriter interface {
	WriteTwo(head, payload []byte) (int, error)
}

func unavailable(err error) error {
	return status.Errorf(codes.Unavailable, "fused: connection lost: %v", err)
}

// fail ends the session and every stream with its first cause.
func (s *session) fail(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = unavailable(err)
	close(s.done)
	streams := s.streams
	s.lost = streams
	s.streams = map[uint32]*stream{}
	conn := s.conn
	s.mu.Unlock()
	conn.Close()
	for _, st := range streams {
		st.fail(s.err)
	}
}

func (s *session) endCalls(why error) {
	s.mu.Lock()
	streams := slices.Collect(maps.Values(s.streams))
	s.mu.Unlock()
	for _, st := range streams {
		st.fail(why)
	}
}

// idleCheck is how long a connection rests before it is checked again. Arbitrary: a check costs about a poll.
const idleCheck = 50 * time.Millisecond

// check ends a session whose connection ended while nobody read it, where the connection can tell.
func (s *session) check() {
	if time.Now().UnixNano()-s.out.lastUse.Load() < int64(idleCheck) {
		return
	}
	if e, ok := s.conn.(interface{ Ended() bool }); ok && e.Ended() {
		s.fail(io.EOF)
	}
}

func (s *session) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *session) find(id uint32) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[id]
}

func (s *session) enter(st *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return notSent{s.err}
	}
	s.streams[st.id] = st
	return nil
}

func (s *session) leave(id uint32) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was = s.streams[id]
	delete(s.streams, id)
	return was
}

func (s *session) live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// hello is the first frame of either side.
//
//	magic 4 | version 4 | window of a stream 4 | streams at once 4 | 1 where long messages may land 4
//	| longest blocks of a frame 4 | milliseconds within which pings want an answer, 0 for no pings 4
//	| length 4, a client's authority | length 4, a client's user agent
type hello struct {
	window, streams  int
	sinks            uint32
	blocks           int
	pings            time.Duration
	authority, agent string
}

var magic = [4]byte{'r', 'p', 'f', 'u'}

func (s *session) sendHello(h hello) error {
	b := slices.Clone(magic[:])
	for _, v := range []uint32{version, uint32(h.window), uint32(h.streams), h.sinks, uint32(h.blocks),
		uint32(min(h.pings.Milliseconds(), math.MaxUint32))} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = appendBytes(appendBytes(b, h.authority), h.agent)
	return s.send(kindHello, 0, 0, nil, 0, b)
}

func parseHello(f *frame) (h hello, err error) {
	d := decoder{b: f.data}
	m, v := d.take(4), d.u32()
	h.window, h.streams = int(d.u32()), int(d.u32())
	h.sinks = d.u32()
	h.blocks = int(d.u32())
	h.pings = time.Duration(d.u32()) * time.Millisecond
	h.authority, h.agent = d.text(), d.text()
	switch {
	case f.kind != kindHello, len(m) < len(magic), [4]byte(m) != magic:
		return h, fmt.Errorf("%w: the peer does not speak this protocol", errFrame)
	case v != version:
		return h, fmt.Errorf("%w: peer speaks version %d, this side %d", errFrame, v, version)
	case d.bad, len(d.b) > 0, h.sinks > 1, h.blocks < maxBlocks, h.window < minWindow || h.window > maxWindow ||
		h.streams < 1 || h.streams > maxStreams:
		return h, fmt.Errorf("%w: hello with a window of %d and %d streams", errFrame, h.window, h.streams)
	}
	return h, nil
}

// greet exchanges hellos on a new connection, until the deadline of ctx. own is filled in.
func (s *session) greet(ctx context.Context, own hello) (peer hello, err error) {
	deadline, _ := ctx.Deadline()
	own.window, own.blocks = s.window, s.maxBlocks
	if s.sinks.conn != nil {
		own.sinks = 1
	}
	s.conn.SetReadDeadline(deadline)
	if err := s.sendHello(own); err != nil {
		return peer, err
	}
	err = s.read(func(f *frame) (err error) {
		peer, err = parseHello(f)
		return err
	})
	if err != nil {
		s.fail(err)
		return peer, err
	}
	s.peerWindow, s.peerBlocks = peer.window, peer.blocks
	if peer.sinks == 0 {
		s.sinks.conn = nil
	}
	s.conn.SetReadDeadline(time.Time{})
	return peer, nil
}
