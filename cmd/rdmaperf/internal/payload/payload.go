// Package payload makes and compares what calls carry: sequences whose messages each begin with their number. There are
// 4096 messages of a sequence, 256 where they are shorter than 8 bytes: one exchanged for another that many behind it
// passes.
package payload

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Sequence is a sequence from which messages of one length are cut. Their first bytes tell their number.
type Sequence struct {
	text  []byte
	n     int
	state uint64
	short *[shortNumbers]uint8 // where a message without a whole word begins that has this first byte
}

const (
	// Numbers is far more than the calls that are outstanding on a connection.
	Numbers      = 4096
	shortNumbers = 256
	wordBytes    = 8
)

// NewSequence makes the sequence of one direction in one phase.
func NewSequence(seed uint64, gen, direction, n int) *Sequence {
	p := &Sequence{n: n, state: engine.PatternState(seed, gen, direction, 0)}
	if n >= wordBytes {
		p.text = make([]byte, (Numbers-1)*wordBytes+n)
		engine.FillPattern(p.text, p.state) // has each of its words once
		return p
	}
	p.text, p.short = make([]byte, shortNumbers+max(n, 1)-1), new([shortNumbers]uint8)
	engine.FillPattern(p.text, p.state)
	for i := range shortNumbers {
		p.text[i] = byte(i)
	}
	for i := shortNumbers - 1; i > 0; i-- { // Fisher–Yates
		j := int(engine.Word(p.state, i) % uint64(i+1))
		p.text[i], p.text[j] = p.text[j], p.text[i]
	}
	for i := range shortNumbers {
		p.short[p.text[i]] = uint8(i)
	}
	return p
}

// Offset is where a caller's numbers begin: golden sections of all numbers lie far from each other.
func Offset(caller int) int64 { return int64(caller) * 2531 }

// Of is the number of the i-th message.
func (p *Sequence) Of(i int64) int64 {
	if p.short != nil {
		return i & (shortNumbers - 1)
	}
	return i & (Numbers - 1)
}

// Cut is the i-th message, and again after as many as there are numbers.
func (p *Sequence) Cut(i int64) []byte {
	i = p.Of(i)
	if p.short == nil {
		i *= wordBytes
	}
	return p.text[i:][:p.n]
}

// Number is that of a message by its first bytes. Of a message that was changed it may be any.
func (p *Sequence) Number(m transports.Parts) int64 {
	if p.short != nil {
		first, _ := m.First()
		return int64(p.short[first])
	}
	var head [wordBytes]byte
	n := 0
	for _, part := range m {
		if n += copy(head[n:], part); n == wordBytes {
			break
		}
	}
	return p.Of(int64(engine.WordNumber(p.state, binary.LittleEndian.Uint64(head[:]))))
}

// Directions of messages.
const (
	ToServer = 1 + iota
	ToClient
)

// Differs describes the first byte of a message that is not as it should be; nil when all are.
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

// Lost is how a server ends a call whose request arrived changed; the client hears the details on the control channel.
func Lost(err error) error {
	return &transports.CallError{Code: transports.CallDataLoss, Text: err.Error()}
}
