package direct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// postBatch is how many work requests one call to the device carries at most: 7 KiB, which stay in the cache.
	postBatch = 64
	// pollBatch bounds one CQ.Poll in the same way.
	pollBatch = 128
	// pingPongBatch is how many steps one PingPong takes at most: too many for a slow first one to move a median.
	pingPongBatch = 16
	// closeGrace is the deadline of the Disconnect in Close.
	closeGrace = 250 * time.Millisecond
	// idlePolls empty Polls pass between two looks at the QP's state, which costs a system call on some devices.
	idlePolls = 1 << 12
)

type session struct {
	buf  rdma.Buffer
	mr   *regcache.Region // of buf alone: the peer's key is good for nothing else, and ends with the session
	cq   rdma.CQ
	qp   rdma.QP
	win  []byte
	base uint64 // address of win
	peer greeting

	maxMsg    uint64
	maxInline uint32
	events    bool
	immAlone  bool // a send with immediate has no room for bytes
	ops       [transports.KindRecv]kindInfo
	refuse    transports.OpFlags // flags that need a missing feature

	// Of depth places inUse are taken, unsignaled of them since the last signal, due every signalEvery-th op.
	depth       int
	inUse       int
	unsignaled  int
	signalEvery int
	recvDepth   int
	recvInUse   int

	pingPong bool // the device has them
	steps    []rdma.PingPongStep

	sends []rdma.SendWR // templates: key, element count and the like are set once
	recvs []rdma.RecvWR

	wcs   []rdma.WC
	carry int // wcs[next:carry] were polled by Wait
	next  int

	idle   int  // empty Polls in a row
	dying  bool // ERR was seen one look ago
	err    error
	closed bool
}

type kindInfo struct {
	op     rdma.Opcode
	ok     bool // the device has it
	remote bool // names the peer's window
	atomic bool
}

// newSession makes everything but the connection. cfg must be normal.
func (t *transport) newSession(cfg transports.Config) (*session, error) {
	s := &session{
		maxMsg:      t.caps.MaxMsg,
		maxInline:   uint32(cfg.MaxInline),
		events:      cfg.Events,
		immAlone:    !t.caps.Features.Has(rdma.FeatImmPayload),
		depth:       cfg.SendDepth,
		signalEvery: max(cfg.SendDepth/2, 1),
		recvDepth:   cfg.RecvDepth,
		pingPong:    t.caps.Features.Has(rdma.FeatPingPong),
		sends:       make([]rdma.SendWR, min(cfg.SendDepth, postBatch)),
		recvs:       make([]rdma.RecvWR, min(cfg.RecvDepth, postBatch)),
		wcs:         make([]rdma.WC, min(cfg.SendDepth+cfg.RecvDepth, pollBatch)),
	}
	access := rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead
	for _, m := range opcodes {
		s.ops[m.kind] = kindInfo{op: m.op, ok: t.caps.Ops.Has(m.op), remote: m.op != rdma.OpSend &&
			m.op != rdma.OpSendImm, atomic: m.op.IsAtomic()}
		if s.ops[m.kind].ok && m.op.IsAtomic() {
			access |= rdma.RemoteAtomic
		}
	}
	if s.pingPong {
		s.steps = make([]rdma.PingPongStep, pingPongBatch)
	}
	if !t.caps.Features.Has(rdma.FeatInline) {
		s.refuse |= transports.Inline
	}
	if !t.caps.Features.Has(rdma.FeatFence) {
		s.refuse |= transports.Fence
	}
	if err := s.create(t, cfg, access); err != nil {
		s.Close()
		return nil, err
	}
	for i := range s.sends {
		s.sends[i].SGE[0].LKey = s.mr.LKey()
	}
	for i := range s.steps {
		s.steps[i].Ask.SGE[0].LKey, s.steps[i].Answer.SGE[0].LKey = s.mr.LKey(), s.mr.LKey()
	}
	for i := range s.recvs {
		s.recvs[i].SGE[0].LKey = s.mr.LKey()
	}
	return s, nil
}

func (s *session) create(t *transport, cfg transports.Config, access rdma.Access) (err error) {
	if s.buf, err = rdma.Alloc(cfg.Window); err != nil {
		return err
	}
	s.win, s.base = s.buf.Bytes(), s.buf.Addr()
	scope, err := t.owner()
	if err == nil {
		s.mr, err = scope.Get(s.buf, access)
	}
	if err != nil {
		return err
	}
	// A failing device may fail every request one by one, whatever its signalling.
	if s.cq, err = t.dev.NewCQ(cfg.SendDepth + cfg.RecvDepth + cqSlack); err != nil {
		s.cq = nil
		return err
	}
	s.qp, err = t.dev.NewQP(rdma.QPConfig{SendCQ: s.cq, RecvCQ: s.cq,
		SendDepth: cfg.SendDepth, RecvDepth: cfg.RecvDepth, MaxInline: cfg.MaxInline})
	if err != nil {
		s.qp = nil
	}
	return err
}

func (s *session) greeting(hello []byte) ([]byte, error) {
	g := greeting{rkey: s.mr.RKey(), addr: s.mr.Addr(), len: s.mr.Len(), hello: hello}
	return g.encode()
}

func (s *session) setPeer(g greeting) {
	s.peer = g
	for i := range s.sends {
		s.sends[i].RKey = g.rkey
	}
	for i := range s.steps {
		s.steps[i].Ask.RKey, s.steps[i].Answer.RKey = g.rkey, g.rkey
	}
}

// Local is the own window; nil after Close.
func (s *session) Local() []byte { return s.win }

// RemoteLen is the size of the peer's window in bytes.
func (s *session) RemoteLen() uint64 { return s.peer.len }

// Close ends the connection in order, or by force after a short deadline, and frees what the session owns: QP, CQ, MR,
// buffer. What a device refuses to close keeps its memory mapped: it may still be written to. Idempotent.
func (s *session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.err = rdma.ErrClosed
	var errs []error
	if s.qp != nil {
		if st := s.qp.State(); st == rdma.QPRTS || st == rdma.QPSQD {
			ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
			// A peer that is slow or gone is no failure of Close: the QP goes anyway.
			_ = s.qp.Disconnect(ctx)
			cancel()
		}
		errs = append(errs, s.qp.Close())
	}
	if s.cq != nil {
		errs = append(errs, s.cq.Close())
	}
	if s.mr != nil {
		errs = append(errs, s.mr.Revoke())
	}
	s.win = nil
	errs = append(errs, s.buf.Free()) // the cache holds what the device still has
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	return nil
}
