package tcp

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// recvStage is what one call may bring: the loopback MTU, and the most that one segment of GRO carries.
	recvStage = 64 << 10
	// largeMsg bytes and more are received straight into the window: below, the copy costs less than a second call.
	largeMsg = 16 << 10
	// smallAhead bytes are asked for behind a large message: the next header comes with the same call.
	smallAhead = 256
	// maxRecv bounds one receive call, so that a raw system call is short.
	maxRecv = 1 << 20
)

type phase uint8

const (
	wantHeader  phase = iota // the next header is not complete
	wantRecv                 // a message needs a receive and none is posted
	wantPayload              // payload is still to come
	wantRoom                 // the message is complete and its Done needs room
	phaseBroken              // the peer broke the protocol; nothing is parsed any more
	numPhases
)

var phaseNames = [numPhases]string{"want header", "want receive", "want payload", "want room", "broken"}

// String is the phase in words.
func (p phase) String() string { return phaseNames[p] }

// phaseNext has the phases that may follow as bits. A read request leaves the machine in wantHeader.
var phaseNext = [numPhases]uint8{
	wantHeader:  1<<wantRecv | 1<<wantPayload | 1<<phaseBroken,
	wantRecv:    1<<wantPayload | 1<<wantRoom,
	wantPayload: 1 << wantRoom,
	wantRoom:    1<<wantHeader | 1<<phaseBroken,
	phaseBroken: 0,
}

// Breaches of the protocol; each ends the session.
var (
	errKind     = errors.New("unknown kind of message")
	errReserved = errors.New("reserved field is not zero")
	errBounds   = errors.New("message outside the window")
	errReadFull = errors.New("more read requests than the read depth")
	errNoRead   = errors.New("read response without a request")
	errReadOdd  = errors.New("read response does not match its request")
	errTooLong  = errors.New("message longer than the posted receive")
)

type recvOp struct {
	local uint64
	len   uint32
	slot  uint32
}

// response is a read request of the peer that waits to be answered.
type response struct {
	off uint64
	len uint32
	tag uint32
}

// inbound is the receive machine. It does no I/O: room says where the next bytes belong, took that they are there,
// parse what they mean. Memory is bounded by the rings: a peer that wants more than they hold is stopped or refused.
type inbound struct {
	win   []byte
	stage []byte // bytes that came ahead of their header's turn: stage[pos:end]
	pos   int
	end   int
	ahead int // how much of stage the next call may fill

	phase  phase
	hdr    header
	rest   []byte // where the rest of the payload goes
	status rdma.Status

	recvs ring[recvOp]
	reads ring[*outOp] // own reads on the wire, oldest first
	resps ring[response]
}

func newInbound(win []byte, recvDepth, ord, ird int) inbound {
	return inbound{
		win:   win,
		stage: make([]byte, recvStage),
		ahead: recvStage,
		recvs: newRing[recvOp](recvDepth),
		reads: newRing[*outOp](ord),
		resps: newRing[response](ird),
	}
}

// enter changes the phase; a step outside the table is a fault of this package.
func (in *inbound) enter(p phase) {
	if phaseNext[in.phase]&(1<<p) == 0 {
		panic("tcp: receive machine: " + in.phase.String() + " to " + p.String())
	}
	in.phase = p
}

func (in *inbound) stuck() bool { return in.phase != wantHeader && in.phase != wantPayload }

func (in *inbound) ready() bool {
	switch in.phase {
	case wantHeader:
		return in.end-in.pos >= headerLen
	case wantRecv:
		return !in.recvs.empty()
	case wantPayload:
		return in.end > in.pos
	case wantRoom:
		return true
	}
	return false
}

// midMessage tells that the stream may not end here.
func (in *inbound) midMessage() bool { return in.phase != wantHeader || in.end > in.pos }

// room is where the next bytes belong: first a, empty between messages, then b, empty where a is enough for a call.
func (in *inbound) room() (a, b []byte) {
	if in.phase != wantPayload {
		return nil, in.stage[in.end:min(in.end+in.ahead, len(in.stage))]
	}
	if len(in.rest) > maxRecv {
		return in.rest[:maxRecv], nil
	}
	return in.rest, in.stage[:in.ahead]
}

func (in *inbound) took(n int) {
	if in.phase != wantPayload {
		in.end += n
		return
	}
	k := min(n, len(in.rest))
	in.rest = in.rest[k:]
	in.pos, in.end = 0, n-k
	if len(in.rest) == 0 {
		in.enter(wantRoom)
	}
}

// parse runs until it needs bytes, a receive, or room in done. A breach is returned once; n Dones be next to it.
func (in *inbound) parse(done []transports.Done) (n int, err error) {
	for {
		switch in.phase {
		case wantHeader:
			if in.end-in.pos < headerLen {
				in.end = copy(in.stage, in.stage[in.pos:in.end])
				in.pos = 0
				return n, nil
			}
			in.hdr = parseHeader(in.stage[in.pos:])
			in.pos += headerLen
			if err := in.begin(); err != nil {
				return n, in.breach(err)
			}
		case wantRecv:
			if in.recvs.empty() {
				return n, nil
			}
			in.match()
		case wantPayload:
			k := copy(in.rest, in.stage[in.pos:in.end])
			in.pos += k
			in.rest = in.rest[k:]
			if len(in.rest) > 0 {
				in.pos, in.end = 0, 0
				return n, nil
			}
			in.enter(wantRoom)
		case wantRoom:
			if in.hdr.kind == wireSend || in.hdr.kind == wireWriteImm {
				if n == len(done) {
					return n, nil
				}
				r := in.recvs.front()
				done[n] = transports.Done{Slot: r.slot, Len: in.hdr.len, Imm: in.hdr.tag, Kind: transports.KindRecv,
					Status: in.status, HasImm: in.hdr.kind == wireWriteImm}
				in.recvs.pop()
				n++
				if in.status != rdma.StatusSuccess {
					return n, in.breach(errTooLong)
				}
			} else if in.hdr.kind == wireReadResp {
				(*in.reads.front()).answered = true
				in.reads.pop()
			}
			in.enter(wantHeader)
		case phaseBroken:
			return n, nil
		}
	}
}

func (in *inbound) begin() error {
	h := &in.hdr
	in.ahead = len(in.stage)
	if h.len >= largeMsg && h.kind != wireReadReq {
		in.ahead = smallAhead
	}
	switch h.kind {
	case wireSend:
		if h.off != 0 || h.tag != 0 {
			return errReserved
		}
		in.enter(wantRecv)
	case wireWrite, wireWriteImm:
		if !in.inside(h) {
			return errBounds
		}
		in.rest = in.win[h.off : h.off+uint64(h.len)]
		if h.kind == wireWriteImm {
			in.enter(wantRecv)
			return nil
		}
		if h.tag != 0 {
			return errReserved
		}
		in.enter(wantPayload)
	case wireReadReq:
		if !in.inside(h) {
			return errBounds
		}
		if in.resps.full() {
			return errReadFull
		}
		*in.resps.push() = response{h.off, h.len, h.tag}
	case wireReadResp:
		if in.reads.empty() {
			return errNoRead
		}
		op := *in.reads.front()
		if h.off != 0 || h.len != op.Len || h.tag != op.tag {
			return errReadOdd
		}
		in.rest = in.win[op.Local : op.Local+uint64(op.Len)]
		in.enter(wantPayload)
	default:
		return errKind
	}
	return nil
}

func (in *inbound) match() {
	if in.hdr.kind == wireSend {
		r := in.recvs.front()
		if in.hdr.len > r.len {
			in.status = rdma.StatusLocLenErr
			in.enter(wantRoom)
			return
		}
		in.rest = in.win[r.local : r.local+uint64(in.hdr.len)]
	}
	in.enter(wantPayload) // of a write_imm it goes to the window, the receive only tells
}

func (in *inbound) inside(h *header) bool {
	return h.off <= uint64(len(in.win)) && uint64(h.len) <= uint64(len(in.win))-h.off
}

func (in *inbound) breach(cause error) error {
	in.enter(phaseBroken)
	return fmt.Errorf("%w: %w (%v, offset %d, length %d, tag %d)", rdma.ErrProtocol, cause, in.hdr.kind, in.hdr.off,
		in.hdr.len, in.hdr.tag)
}
