package payload

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Sequence is a sequence from which messages of one length are cut.
type Sequence struct {
	text  []byte
	n     int
	Start [256]uint8 // where the message with this first byte begins
}

const FirstBytes = 256

// NewSequence makes the sequence of one direction in one phase.
func NewSequence(seed uint64, gen, direction, n int) *Sequence {
	p := &Sequence{text: make([]byte, FirstBytes+n-1), n: n}
	state := engine.PatternState(seed, gen, direction, 0)
	engine.FillPattern(p.text, state)
	for i := range FirstBytes {
		p.text[i] = byte(i)
	}
	for i := FirstBytes - 1; i > 0; i-- { // Fisher–Yates
		j := int(engine.Word(state, i) % uint64(i+1))
		p.text[i], p.text[j] = p.text[j], p.text[i]
	}
	for i := range FirstBytes {
		p.Start[p.text[i]] = uint8(i)
	}
	return p
}

// Cut is the i-th message, and again every 256.
func (p *Sequence) Cut(i int64) []byte { return p.text[i&(FirstBytes-1):][:p.n] }

// Of is the message that begins with b.
func (p *Sequence) Of(b byte) []byte { return p.Cut(int64(p.Start[b])) }

// Directions of messages.
const (
	ToServer = 1 + iota
	ToClient
)

// Differs describes the first byte of a message that is not as it should be; nil
// when all are.
func Differs(sh *engine.Shape, side, what string, lane int, got transports.Parts, want []byte) error {
	i, b := got.Differs(want)
	if i < 0 {
		return nil
	}
	if got.Len() != len(want) {
		what = fmt.Sprintf("%s of %d bytes instead of %d", what, got.Len(), len(want))
	}
	c := &engine.CorruptionError{Point: sh.String(), Side: side, QP: lane, What: what, Offset: i, Got: b}
	if i < len(want) {
		c.Want = want[i]
	}
	return engine.Corrupted(c)
}

// Lost is how a server ends a call whose request arrived changed; the client hears
// the details on the control channel.
func Lost(err error) error {
	return &transports.CallError{Code: transports.CallDataLoss, Text: err.Error()}
}
