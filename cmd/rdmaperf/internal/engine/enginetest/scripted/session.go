package scripted

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type session struct {
	f    *Fabric
	side *side
	peer *session
	mem  rdma.Buffer
	out  *link         // from this end
	way  time.Duration // of it
	sent int           // messages of this end

	// Of the side's lock.
	recvs  []transports.Op
	early  []message // arrived without a receive
	done   []transports.Done
	events int // that this end could see
	seen   int // of these, at the last poll
	vain   int // polls in vain while the side had news for others
}

// message is what takes a receive.
type message struct {
	data   []byte
	imm    uint32
	hasImm bool
	placed bool   // by a write, past the receive
	taken  func() // the receive was taken
}

func (s *session) Local() []byte     { return s.mem.Bytes() }
func (s *session) RemoteLen() uint64 { return uint64(s.peer.mem.Len()) }

func (s *session) Close() error {
	s.side.mu.Lock()
	delete(s.side.sessions, s)
	s.side.mu.Unlock()
	return nil // the window lives as long as what is on the way to it: the fabric frees it
}

func (s *session) on(f func()) {
	s.side.mu.Lock()
	defer s.side.mu.Unlock()
	f()
	s.events++
	s.side.happened()
}

func (s *session) Post(ops []transports.Op) (int, error) {
	for _, op := range ops {
		if op.Kind == transports.KindRecv {
			s.receive(op)
			continue
		}
		s.start(op)
	}
	return len(ops), nil
}

// receive posts a receive, which an early message may be waiting for.
func (s *session) receive(op transports.Op) { s.matching(func() { s.recvs = append(s.recvs, op) }) }

// take is the arrival of a message.
func (s *session) take(m message) { s.matching(func() { s.early = append(s.early, m) }) }

func (s *session) matching(add func()) {
	s.side.mu.Lock()
	add()
	taken := s.match()
	s.side.mu.Unlock()
	taken()
}

// match puts the oldest message into the oldest receive, and returns what is to be done without the side's lock.
func (s *session) match() (taken func()) {
	if len(s.early) == 0 || len(s.recvs) == 0 {
		return func() {}
	}
	m, r := s.early[0], s.recvs[0]
	s.early, s.recvs = s.early[1:], s.recvs[1:]
	if !m.placed {
		copy(s.mem.Bytes()[r.Local:], m.data)
	}
	s.done = append(s.done, transports.Done{Slot: r.Slot, Kind: transports.KindRecv, Len: uint32(len(m.data)),
		Imm: m.imm, HasImm: m.hasImm})
	s.events++
	s.side.happened()
	return m.taken
}

func (s *session) start(op transports.Op) {
	t := s.f.Times
	way := s.way
	if t.Jitter != nil && s.side == s.f.client {
		way += t.Jitter(s.sent)
	}
	s.sent++
	p := s.peer
	complete := func() {
		if op.Flags&transports.Unsignaled == 0 {
			s.on(func() { s.done = append(s.done, transports.Done{Slot: op.Slot, Kind: op.Kind, Len: op.Len}) })
		}
	}
	acked := func() { p.out.carry(Times{}, 0, p.way, complete) } // an acknowledgement takes no room on the link
	if s.f.Local {
		acked = func() {}
	}
	bytes := int(op.Len)
	var arrive func()
	switch op.Kind {
	case transports.KindSend, transports.KindSendImm, transports.KindWriteImm:
		data := append([]byte(nil), s.mem.Bytes()[op.Local:][:op.Len]...)
		arrive = func() {
			if op.Kind == transports.KindWriteImm {
				copy(p.mem.Bytes()[op.Remote:], data)
			}
			p.take(message{data, op.Imm, op.Kind != transports.KindSend, op.Kind == transports.KindWriteImm, acked})
		}
	case transports.KindWrite:
		data := append([]byte(nil), s.mem.Bytes()[op.Local:][:op.Len]...)
		arrive = func() {
			p.on(func() { copy(p.mem.Bytes()[op.Remote:], data) })
			acked()
		}
	case transports.KindRead:
		bytes = 0
		arrive = func() {
			data := append([]byte(nil), p.mem.Bytes()[op.Remote:][:op.Len]...)
			p.out.carry(t, int(op.Len), p.way, func() { copy(s.mem.Bytes()[op.Local:], data); complete() })
		}
	default: // atomics, which travel without data
		bytes = 0
		arrive = func() {
			at := p.mem.Bytes()[op.Remote:][:8]
			old := binary.NativeEndian.Uint64(at)
			switch {
			case op.Kind == transports.KindFetchAdd:
				binary.NativeEndian.PutUint64(at, old+op.Add)
			case old == op.Add:
				binary.NativeEndian.PutUint64(at, op.Swap)
			}
			p.out.carry(t, 0, p.way, func() {
				binary.NativeEndian.PutUint64(s.mem.Bytes()[op.Local:], old)
				complete()
			})
		}
	}
	left := s.out.carry(t, bytes, way, arrive)
	if s.f.Local && (op.Kind <= transports.KindWriteImm) {
		time.AfterFunc(left, complete)
	}
}

// mostVain bounds polls in vain that do not wait because another session of the side has something.
const mostVain = 1000

func (s *session) Poll(dst []transports.Done) (int, error) {
	d := s.side
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(s.done) == 0 && s.events == s.seen {
		if s.vain++; !d.news() || s.vain > mostVain {
			s.vain = 0
			s.wait(nil)
		}
	}
	s.seen = s.events
	n := copy(dst, s.done)
	s.done = s.done[n:]
	return n, nil
}

// wait is until something happens on this side, or Idle, or ctx. The side's lock is held.
func (s *session) wait(ctx context.Context) {
	changed := s.side.changed
	s.side.mu.Unlock()
	defer s.side.mu.Lock()
	idle := s.f.Times.Idle
	if idle == 0 {
		idle = time.Millisecond
	}
	var ended <-chan struct{}
	if ctx != nil {
		ended = ctx.Done()
	}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ended:
	}
}

func (s *session) Wait(ctx context.Context) error {
	s.side.mu.Lock()
	defer s.side.mu.Unlock()
	for len(s.done) == 0 && s.events == s.seen && ctx.Err() == nil {
		s.wait(ctx)
	}
	return ctx.Err()
}

// PingPong takes steps by Post and Poll, and times them by the bubble's clock.
func (s *session) PingPong(vs []transports.PingPongStep, dst []transports.Done) (n int, err error) {
	if !s.f.Steps {
		return 0, rdma.ErrNotSupported
	}
	for i := range vs {
		v := &vs[i]
		v.Met = false // of an earlier call
		if v.HasAsk {
			v.Start = time.Now().UnixNano()
			s.start(v.Ask)
			v.HasAsk = false
		}
		for looks := uint32(0); !v.Met; looks++ {
			if looks == v.Looks || len(dst)-n < 2 {
				return n, nil
			}
			if v.Until == rdma.UntilByte && rdma.LoadByte(s.mem.Bytes(), int(v.Watch)) != v.Was {
				v.Met = true
				break
			}
			k, _ := s.Poll(dst[n : n+1])
			if n += k; k == 0 {
				continue
			}
			d := &dst[n-1]
			switch {
			case v.Until == rdma.UntilSend && d.Kind != transports.KindRecv:
				v.Met = true
			case v.Until == rdma.UntilRecv && d.Kind == transports.KindRecv:
				if v.HasAnswer && (d.Slot != v.Slot || d.Len != v.Answer.Len || d.HasImm && d.Imm != v.Answer.Imm) {
					return n, nil
				}
				v.Met = true
			}
		}
		if v.HasAnswer {
			s.start(v.Answer)
			v.HasAnswer = false
		} else {
			v.Took = time.Now().UnixNano() - v.Start
		}
	}
	return n, nil
}
