package bench

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/transports"
)

// The workload rpc: calls of bytes without a schema, so that the figure is that of
// what carries them. A unary call is a request and a response. A stream is one call
// for the whole phase, and what counts are its exchanges: a message each way, or, of
// oneway, a message to the server, whose count of all of them ends the window.
//
// Requests and responses are cut from two sequences, one each way, so that neither is
// copied to be sent: the sequence begins with the 256 values of a byte in some order,
// and a message is what begins at one of them. So its first byte tells the whole
// message, the next message is another one, and both sides compare every byte. The
// server compares before it answers: a pass over the request is part of the latency,
// the same for every carrier; without verification there is none.

// Kinds of calls, as --rpc and Point.Call spell them.
const (
	CallUnary  = "unary"
	CallStream = "stream"
	CallOneway = "oneway"
)

// CallKinds lists them.
func CallKinds() []string { return []string{CallUnary, CallStream, CallOneway} }

// validateRPC checks what only this workload asks of a point.
func (p Point) validateRPC() error {
	switch {
	case p.Op != transports.KindCall.String():
		return errors.New("the operation is call")
	case !slices.Contains(CallKinds(), p.Call):
		return fmt.Errorf("unknown kind of call %q, want one of %v", p.Call, CallKinds())
	case p.Response < 1 || p.Response > maxSize:
		return errors.New("responses are 1 byte to 2 GiB")
	case p.Outstanding < 0 || p.Outstanding > maxDepth:
		return fmt.Errorf("%d calls outstanding: want 1 to %d", p.Outstanding, maxDepth)
	case p.Rate != 0 && p.Call == CallOneway:
		return errors.New("messages one way have no latency, and so no rate")
	}
	return nil
}

// phrase is a sequence from which messages of one length are cut.
type phrase struct {
	text  []byte
	n     int
	start [256]uint8 // where the message with this first byte begins
}

const firstBytes = 256

// newPhrase makes the sequence of one direction in one phase.
func newPhrase(seed uint64, gen, direction, n int) *phrase {
	p := &phrase{text: make([]byte, firstBytes+n-1), n: n}
	state := patternState(seed, gen, direction, 0)
	fillPattern(p.text, state)
	for i := range firstBytes {
		p.text[i] = byte(i)
	}
	for i := firstBytes - 1; i > 0; i-- { // Fisher–Yates
		j := int(word(state, i) % uint64(i+1))
		p.text[i], p.text[j] = p.text[j], p.text[i]
	}
	for i := range firstBytes {
		p.start[p.text[i]] = uint8(i)
	}
	return p
}

// cut is the i-th message, and again every 256.
func (p *phrase) cut(i int64) []byte { return p.text[i&(firstBytes-1):][:p.n] }

// of is the message that begins with b.
func (p *phrase) of(b byte) []byte { return p.cut(int64(p.start[b])) }

// Directions of phrases.
const (
	toServer = 1 + iota
	toClient
)

// differs describes the first byte of a message that is not as it should be; nil
// when all are.
func differs(sh *Shape, side, what string, lane int, got interface {
	Differs(want []byte) (int, byte)
	Len() int
}, want []byte) error {
	i, b := got.Differs(want)
	if i < 0 {
		return nil
	}
	if got.Len() != len(want) {
		what = fmt.Sprintf("%s of %d bytes instead of %d", what, got.Len(), len(want))
	}
	c := &CorruptionError{Point: sh.Point.String(), Side: side, QP: lane, What: what, Offset: i, Got: b}
	if i < len(want) {
		c.Want = want[i]
	}
	return corrupted(c)
}

// lost is how a server ends a call whose request arrived changed; the client hears
// the details on the control channel.
func lost(err error) error { return status.Error(codes.DataLoss, err.Error()) }

var rpcWork = callWork{serve: serveRPC, callers: rpcCallers, untimed: func(sh *Shape) bool { return sh.Call == CallOneway }}
