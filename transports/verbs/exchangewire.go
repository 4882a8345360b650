package verbs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Connections without rdma_cm agree on addresses and limits over TCP, as perftest's do. Every message is one frame of a
// fixed size, big-endian; what a kind does not use is zero, so that there is one encoding of each message.
//
//	 0  magic    4 | version 1 | kind 1 | reason 1 | private length 1
//	 8  qpn      4 | psn     4
//	16  lid      2 | ird     1 | ord  1 | rnr    1 | zero           3
//	24  mtu      4
//	28  gid     16
//	44  private data, then zeros to 240
const (
	frameLen = frameHead + maxExchangePrivate
	// frameHead is all but the private data.
	frameHead = 44
	// maxExchangePrivate is the most private data a frame carries: as much as an
	// accept of rdma_cm does on InfiniBand (rdma_accept(3)).
	maxExchangePrivate = 196

	frameVersion = 1
	max24        = 1<<24 - 1 // QPNs and PSNs have 24 bits (IBTA 9.2)
)

var frameMagic = [4]byte{'r', 'p', 'v', 'x'}

// frameKind is what a frame says. Zero is no kind, so that zeros are refused.
type frameKind uint8

const (
	frameRequest frameKind = iota + 1 // initiator: its endpoint
	frameAnswer                       // responder: its endpoint
	frameRefuse                       // responder: no, with private data
	frameReady                        // each: my QP is in RTS
	frameBye                          // each: I end the connection in order
	numFrameKinds
)

var frameKindNames = [numFrameKinds]string{"frame?", "request", "answer", "refusal", "ready", "bye"}

// String is the kind in words.
func (k frameKind) String() string {
	if k < numFrameKinds {
		return frameKindNames[k]
	}
	return frameKindNames[0]
}

type refusal uint8

const (
	refusedByUser refusal = iota // Reject, or nobody answered in time
	refusedBusy                  // the backlog is full
	refusedFabric                // the two ports cannot reach each other
	numRefusals
)

type endpoint struct {
	QPN, PSN uint32
	LID      uint16 // 0 on Ethernet
	GID      [16]byte
	MTU      uint32 // path MTU, bytes
	IRD, ORD uint8
	RNRRetry uint8
	Private  []byte
}

type frame struct {
	kind frameKind
	why  refusal
	endpoint
}

var (
	errFrameMagic = errors.New("not a frame of the verbs address exchange")
	errFrame      = errors.New("malformed frame")
)

// appendFrame encodes f. It fails where decodeFrame would refuse the result.
func appendFrame(b []byte, f *frame) ([]byte, error) {
	if err := f.check(); err != nil {
		return b, err
	}
	var out [frameLen]byte
	copy(out[:], frameMagic[:])
	out[4], out[5], out[6], out[7] = frameVersion, byte(f.kind), byte(f.why), byte(len(f.Private))
	binary.BigEndian.PutUint32(out[8:], f.QPN)
	binary.BigEndian.PutUint32(out[12:], f.PSN)
	binary.BigEndian.PutUint16(out[16:], f.LID)
	out[18], out[19], out[20] = f.IRD, f.ORD, f.RNRRetry
	binary.BigEndian.PutUint32(out[24:], f.MTU)
	copy(out[28:], f.GID[:])
	copy(out[frameHead:], f.Private)
	return append(b, out[:]...), nil
}

// decodeFrame copies private data. Of another version only the version is looked at, so that both can name it.
func decodeFrame(b *[frameLen]byte) (*frame, error) {
	if [4]byte(b[:4]) != frameMagic {
		return nil, fmt.Errorf("%w: %w", rdma.ErrProtocol, errFrameMagic)
	}
	if b[4] != frameVersion {
		return nil, fmt.Errorf("%w: peer speaks version %d of the verbs address exchange, this side %d",
			rdma.ErrProtocol, b[4], frameVersion)
	}
	f := &frame{kind: frameKind(b[5]), why: refusal(b[6])}
	f.QPN = binary.BigEndian.Uint32(b[8:])
	f.PSN = binary.BigEndian.Uint32(b[12:])
	f.LID = binary.BigEndian.Uint16(b[16:])
	f.IRD, f.ORD, f.RNRRetry = b[18], b[19], b[20]
	f.MTU = binary.BigEndian.Uint32(b[24:])
	copy(f.GID[:], b[28:])
	n := int(b[7])
	if n > maxExchangePrivate || b[21]|b[22]|b[23] != 0 || len(bytes.Trim(b[frameHead+n:], "\x00")) > 0 {
		return nil, fmt.Errorf("%w: %w: %s with %d private bytes and stray ones", rdma.ErrProtocol, errFrame, f.kind, n)
	}
	if n > 0 {
		f.Private = append([]byte(nil), b[frameHead:frameHead+n]...)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", rdma.ErrProtocol, err)
	}
	return f, nil
}

// check is what both directions ask of a frame.
func (f *frame) check() error {
	switch {
	case f.kind == 0 || f.kind >= numFrameKinds:
		return fmt.Errorf("%w: kind %d", errFrame, uint8(f.kind))
	case f.why >= numRefusals || f.why != 0 && f.kind != frameRefuse:
		return fmt.Errorf("%w: %s for reason %d", errFrame, f.kind, f.why)
	case len(f.Private) > maxExchangePrivate:
		return fmt.Errorf("%d bytes of private data, at most %d: %w", len(f.Private), maxExchangePrivate,
			rdma.ErrInvalid)
	case f.kind == frameRequest || f.kind == frameAnswer:
		return f.endpoint.check()
	case !f.endpoint.same(&endpoint{}) || f.kind != frameRefuse && len(f.Private) > 0:
		return fmt.Errorf("%w: %s with an endpoint", errFrame, f.kind)
	}
	return nil
}

// check is what ibv_modify_qp(3) would refuse, or worse, would not.
func (e *endpoint) check() error {
	switch {
	case e.QPN < 2 || e.QPN > max24: // 0 and 1 are management's (IBTA 3.9.1.1)
		return fmt.Errorf("%w: qp number %#x", errFrame, e.QPN)
	case e.PSN > max24:
		return fmt.Errorf("%w: psn %#x", errFrame, e.PSN)
	case e.MTU < 256 || e.MTU > 4096 || e.MTU&(e.MTU-1) != 0:
		return fmt.Errorf("%w: mtu %d", errFrame, e.MTU)
	case e.RNRRetry > 7:
		return fmt.Errorf("%w: rnr retry %d", errFrame, e.RNRRetry)
	case e.LID == 0 && e.GID == [16]byte{}:
		return fmt.Errorf("%w: no address", errFrame)
	}
	return nil
}

func (e *endpoint) same(o *endpoint) bool {
	return e.QPN == o.QPN && e.PSN == o.PSN && e.LID == o.LID && e.GID == o.GID && e.MTU == o.MTU &&
		e.IRD == o.IRD && e.ORD == o.ORD && e.RNRRetry == o.RNRRetry
}
