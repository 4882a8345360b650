// Package peerrpc is what LITE's calls are compared with: a [transports.CallTransport] over any [rdma.Device], in two
// forms.
//
//   - [Send]: a request is a send into one of the server's receives, and so is the answer.
//   - [Write]: a request is a write into the next cell of the connection's ring at the server, and the answer a write
//     into the caller's cell; both are polled (FaRM: Dragojević et al., NSDI'14, §4). The last byte of a message, the
//     number of the turn, is placed last (rdma.FeatLastByteLast, without which this form is rdma.ErrNotSupported).
//
// Callers of a connection share its queue pair and registration. One goroutine of the server polls for all connections
// and runs the handler, in the order of a connection's requests. A caller waits for a late answer with its next call.
package peerrpc

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	MaxMessage = 2 << 20 // bytes; LITE's, so that both are asked the same
	maxConns   = 1024    // of a server at once
	maxCallers = 4096    // of a connection
)

// Stack carries calls over a device, which it owns. Its methods are safe for concurrent use.
type Stack struct {
	dev  rdma.Device
	caps rdma.Caps
	form Form

	mu    sync.Mutex
	bytes int // registered by the largest connection so far
}

var _ transports.CallTransport = (*Stack)(nil)

// New makes the stack of dev, and owns dev from its success on; rdma.ErrNotSupported if dev cannot carry this form.
func New(dev rdma.Device, form Form) (*Stack, error) {
	caps := dev.Caps()
	need := rdma.Need{Ops: rdma.Ops(rdma.OpSend)}
	switch form {
	case Send:
	case Write:
		need = rdma.Need{Ops: rdma.Ops(rdma.OpWrite), Features: rdma.FeatLastByteLast}
	default:
		return nil, rdma.ErrInvalid
	}
	if err := caps.Missing(need); err != nil {
		return nil, err
	}
	return &Stack{dev: dev, caps: caps, form: form}, nil
}

// Name is the form over the device.
func (s *Stack) Name() string { return "lite(rpc=" + s.form.String() + ")+" + s.dev.Name() }

// Device is the device below, which the stack owns.
func (s *Stack) Device() rdma.Device { return s.dev }

// Counts are those of the device.
func (s *Stack) Counts() []rdma.Counts { return rdma.CountsOf(s.dev) }

var callModes = transports.CallModes(transports.CallUnary, transports.CallStream)

// Caps are those of calls.
func (s *Stack) Caps() transports.Caps {
	d := &s.caps
	return transports.Caps{Label: d.Label, Kinds: transports.Kinds(transports.KindCall),
		InProcess: d.Label == rdma.LabelMem || d.Clock != nil,
		Clock:     d.Clock, MaxMsg: MaxMessage, MaxConns: maxConns, MaxDepth: min(maxCallers, d.MaxQPWR/2),
		LocalComplete: d.Completion == rdma.CompletionLocal,
		CallModes:     callModes,
		MaxCalls:      min(maxCallers, d.MaxQPWR/2),
	}
}

// CallCost is how calls are carried and waited for.
func (s *Stack) CallCost() transports.CallCost {
	forms := [numForms]string{"send and receive", "two writes into polled rings"}
	s.mu.Lock()
	defer s.mu.Unlock()
	return transports.CallCost{Form: forms[s.form], Mode: "poll by caller", Pollers: 1, Registered: s.bytes}
}

// Close closes the device; rdma.ErrBusy while something is open.
func (s *Stack) Close() error { return s.dev.Close() }

// shape is what both ends of a connection agree on.
type shape struct {
	callers           int
	request, response int // longest payloads, bytes
	token             [8]byte
}

func (s *Stack) shapeOf(cfg transports.CallConfig) (shape, error) {
	// Room for the text of an error.
	h := shape{callers: max(cfg.Callers, 1), request: cfg.MaxRequest, response: max(cfg.MaxResponse, textRoom),
		token: tokenOf(cfg.Secret)}
	if h.callers > min(maxCallers, s.caps.MaxQPWR/2) || h.request < 0 || h.request > MaxMessage ||
		cfg.MaxResponse < 0 || h.response > MaxMessage {
		return h, fmt.Errorf("%d callers, requests of %d and responses of %d bytes: %w", h.callers, h.request,
			h.response, rdma.ErrInvalid)
	}
	if uint64(max(h.request, h.response))+headerLen > s.caps.MaxMsg {
		return h, fmt.Errorf("messages of %d bytes, the device takes %d: %w", max(h.request, h.response), s.caps.MaxMsg,
			rdma.ErrInvalid)
	}
	return h, nil
}

// textRoom is for the text of an error, bytes; more is cut.
const textRoom = 512

// cell is the room of a message with so much payload: whole cache lines.
func cell(payload int) int { return (payload + headerLen + 63) &^ 63 }

// end is one end of a connection: a queue pair, and a registration of what the peer sends and what is sent.
type end struct {
	stack *Stack
	shape
	inCell, outCell int
	buf             rdma.Buffer
	mem             []byte // callers cells in, then callers cells out
	mr              rdma.MR
	qp              rdma.QP
	peer            greeting

	wr         [1]rdma.SendWR
	rwr        [1]rdma.RecvWR
	unsignaled int // sends since the last signalled one
}

// newEnd makes an end whose queue pair completes into cq. in and out are payload bytes.
func (s *Stack) newEnd(h shape, in, out int, cq rdma.CQ) (_ *end, err error) {
	e := &end{stack: s, shape: h, inCell: cell(in), outCell: cell(out)}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	if e.buf, err = rdma.Alloc(h.callers * (e.inCell + e.outCell)); err != nil {
		return nil, err
	}
	e.mem = e.buf.Bytes()
	access := rdma.LocalWrite
	if s.form == Write {
		access |= rdma.RemoteWrite
	}
	if e.mr, err = s.dev.RegMR(0, e.buf, access); err != nil {
		e.mr = nil
		return nil, err
	}
	// Twice: the place of an unsignalled send is free with a later completion.
	e.qp, err = s.dev.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 2 * h.callers, RecvDepth: h.callers})
	if err != nil {
		e.qp = nil
		return nil, err
	}
	if s.form == Send {
		for i := range h.callers {
			if err := e.repost(i); err != nil {
				return nil, err
			}
		}
	}
	s.mu.Lock()
	s.bytes = max(s.bytes, len(e.mem))
	s.mu.Unlock()
	return e, nil
}

func (e *end) in(i int) []byte { return e.mem[i*e.inCell:][:e.inCell:e.inCell] }

func (e *end) out(i int) []byte { return e.mem[e.callers*e.inCell+i*e.outCell:][:e.outCell:e.outCell] }

func (e *end) repost(i int) error {
	e.rwr[0] = rdma.RecvWR{ID: uint64(i) << 1, NumSGE: 1}
	e.rwr[0].SGE[0] = rdma.SGE{Addr: e.mr.Addr() + uint64(i*e.inCell), Len: uint32(e.inCell), LKey: e.mr.LKey()}
	_, err := e.qp.PostRecv(e.rwr[:])
	return err
}

// sendID marks the completions of sends.
const sendID = 1

// post sends the message in cell i of what goes out, whose payload is at place.
func (e *end) post(i, to int, h *header) error {
	b, n := e.out(i), int(h.len)
	wr := &e.wr[0]
	*wr = rdma.SendWR{ID: sendID, NumSGE: 1}
	at := e.callers*e.inCell + i*e.outCell
	if e.stack.form == Send {
		h.put(b)
		wr.Op = rdma.OpSend
	} else {
		h.put(b[len(b)-headerLen:])
		at += len(b) - headerLen - n
		wr.Op, wr.RKey = rdma.OpWrite, e.peer.RKey
		// Cells of both ends are alike: a message ends where its cell ends.
		wr.RemoteAddr = e.peer.Addr + uint64((to+1)*e.outCell-headerLen-n)
	}
	wr.SGE[0] = rdma.SGE{Addr: e.mr.Addr() + uint64(at), Len: uint32(n + headerLen), LKey: e.mr.LKey()}
	if e.unsignaled++; e.unsignaled >= e.callers {
		wr.Flags, e.unsignaled = rdma.Signaled, 0
	}
	_, err := e.qp.PostSend(e.wr[:])
	return err
}

// place is where a payload of n bytes lies in a cell.
func (e *end) place(cell []byte, n int) []byte {
	if e.stack.form == Send {
		return cell[headerLen : headerLen+n]
	}
	return cell[len(cell)-headerLen-n : len(cell)-headerLen]
}

// head is the header of a message in a cell of what comes in.
func (e *end) head(cell []byte) []byte {
	if e.stack.form == Send {
		return cell[:headerLen]
	}
	return cell[len(cell)-headerLen:]
}

func (e *end) greeting() greeting {
	return greeting{Form: e.stack.form, Callers: uint16(e.callers), RKey: e.mr.RKey(), Request: uint32(e.request),
		Response: uint32(e.response), Addr: e.mr.Addr(), Len: uint64(len(e.mem)), Token: e.token}
}

func (e *end) meet(g greeting) error {
	switch {
	case g.Form != e.stack.form:
		return fmt.Errorf("%w: the peer's form is %v, this one %v", rdma.ErrProtocol, g.Form, e.stack.form)
	case int(g.Callers) != e.callers || int(g.Request) != e.request || int(g.Response) != e.response:
		return fmt.Errorf("%w: the peer has %d callers, requests of %d and responses of %d bytes, this end %d, %d "+
			"and %d",
			rdma.ErrProtocol, g.Callers, g.Request, g.Response, e.callers, e.request, e.response)
	case g.Len < uint64(e.callers*e.outCell):
		return fmt.Errorf("%w: the peer's memory is too small", rdma.ErrProtocol)
	}
	e.peer = g
	return nil
}

func (e *end) close() {
	if e.qp != nil {
		_ = e.qp.Close() // it only fails when it was closed
	}
	if e.mr != nil && e.mr.Close() != nil {
		return // a device that may still write there keeps its memory
	}
	e.mem = nil
	_ = e.buf.Free()
}

func (e *end) dial(ctx context.Context, addr string) error {
	got, err := e.qp.Connect(ctx, addr, e.stack.param(e.greeting().encode()))
	if err != nil {
		return err
	}
	g, err := parseGreeting(got.PrivateData, e.token)
	if err == nil {
		err = e.meet(g)
	}
	return err
}

func (s *Stack) param(private []byte) rdma.ConnParam {
	p := rdma.ConnParam{PrivateData: private, IRD: min(1, s.caps.MaxRDAtom), ORD: min(1, s.caps.MaxRDAtom)}
	if s.caps.Features.Has(rdma.FeatRNRRetry) {
		p.RNRRetry = 7
	}
	return p
}

// cqDepth is for both queues of so many connections.
func (s *Stack) cqDepth(h shape, conns int) int {
	return min(3*h.callers*conns+16, s.caps.MaxCQE, math.MaxInt32)
}
