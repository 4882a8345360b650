package engine

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A pattern is a byte sequence that both sides compute from the plan's seed, a generation (one per phase), the QP and
// the slot, so that a message in a wrong place does not pass for the right one.

// PatternState starts a sequence.
func PatternState(seed uint64, gen, lane, slot int) uint64 {
	s := seed ^ 0x9e3779b97f4a7c15
	for _, v := range [...]int{gen, lane, slot} {
		s = mix(s + uint64(v) + 0x632be59bd9b4e019)
	}
	return s
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Word is the i-th 8 bytes of a sequence.
func Word(state uint64, i int) uint64 { return mix(state + uint64(i)*0x9e3779b97f4a7c15) }

// WordNumber is the inverse of Word: which word of a sequence this is.
func WordNumber(state, word uint64) uint64 { return (unmix(word) - state) * wordStepInverse }

const wordStepInverse = 0xf1de83e19937733d

func unmix(z uint64) uint64 {
	z = (z ^ z>>31 ^ z>>62) * 0x319642b2d24d8ec3
	z = (z ^ z>>27 ^ z>>54) * 0x96de1b173f119089
	return z ^ z>>30 ^ z>>60
}

// FillPattern writes the sequence from its start.
func FillPattern(b []byte, state uint64) {
	i := 0
	for ; len(b) >= 8; i++ {
		binary.LittleEndian.PutUint64(b, Word(state, i))
		b = b[8:]
	}
	w := Word(state, i)
	for j := range b {
		b[j] = byte(w >> (8 * j))
	}
}

// MatchPattern returns the offset of the first byte of b that differs from the sequence, or -1, and what it should be.
func MatchPattern(b []byte, state uint64) (offset int, want byte) {
	i := 0
	for ; len(b)-8*i >= 8; i++ {
		w := Word(state, i)
		if d := binary.LittleEndian.Uint64(b[8*i:]) ^ w; d != 0 {
			k := bits.TrailingZeros64(d) / 8
			return 8*i + k, byte(w >> (8 * k))
		}
	}
	w := Word(state, i)
	for j, v := range b[8*i:] {
		if want := byte(w >> (8 * j)); v != want {
			return 8*i + j, want
		}
	}
	return -1, 0
}

// MatchPatternAt compares b with what the sequence has from byte at on.
func MatchPatternAt(b []byte, state uint64, at int) (offset int, want byte) {
	i, head := at/8, 0
	if k := at % 8; k > 0 {
		w := Word(state, i)
		for ; k < 8 && head < len(b); k, head = k+1, head+1 {
			if want := byte(w >> (8 * k)); b[head] != want {
				return head, want
			}
		}
		i++
	}
	if offset, want = MatchPattern(b[head:], state+uint64(i)*0x9e3779b97f4a7c15); offset >= 0 {
		offset += head
	}
	return offset, want
}

// FirstDifference returns the offset of the first byte in which a and b, of the same length, differ, or -1.
func FirstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// FirstNonZero returns the offset of the first byte that is not zero, or -1.
func FirstNonZero(b []byte) int {
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		if d := binary.LittleEndian.Uint64(b[i:]); d != 0 {
			return i + bits.TrailingZeros64(d)/8
		}
	}
	for ; i < len(b); i++ {
		if b[i] != 0 {
			return i
		}
	}
	return -1
}

// Compared counts what was compared in a phase.
type Compared struct {
	Numbers  int64 `json:"numbers,omitempty"`  // messages whose number was compared
	Messages int64 `json:"messages,omitempty"` // of these, compared byte by byte
	Bytes    int64 `json:"bytes,omitempty"`    // of all comparisons
}

func (c *Compared) add(o Compared) {
	c.Numbers += o.Numbers
	c.Messages += o.Messages
	c.Bytes += o.Bytes
}

// Number counts one whose number was compared, in so many bytes.
func (c *Compared) Number(bytes int) {
	c.Numbers++
	c.Bytes += int64(bytes)
}

// Message counts one that was compared byte by byte.
func (c *Compared) Message(bytes int) {
	c.Numbers++
	c.Messages++
	c.Bytes += int64(bytes)
}

func (c *Group) takeCompared() (sum Compared) {
	for _, w := range c.Workers {
		sum.add(w.Compared)
		w.Compared = Compared{}
	}
	return sum
}

// TakesReceives reports operations that each consume a receive of the peer.
func TakesReceives(k transports.Kind) bool {
	return k == transports.KindSend || k == transports.KindSendImm || k == transports.KindWriteImm
}

// Miscounted is the error of messages that were lost or came twice.
func (w *Worker) Miscounted(l *Lane, got, want int64) error {
	return w.Corrupt(l, fmt.Sprintf("number of messages, %d of %d", got, want), 0, byte(want), byte(got))
}

// VerifyCounts reports whether the peer counted every QP.
func (c *Group) VerifyCounts(lanes []LaneCount) error {
	if len(lanes) != len(c.Lanes) {
		return PeerError("verify windows", fmt.Errorf("counts for %d QPs, want %d", len(lanes), len(c.Lanes)), "")
	}
	return nil
}

// Verification says what was compared of so many messages.
func (sh *Shape) Verification(c Compared, messages int64) *reports.Verification {
	v := &reports.Verification{Mode: reports.VerifyNone, Messages: messages}
	if !sh.Verify {
		return v
	}
	v.Mode = reports.VerifySample
	if sh.VerifyAll {
		v.Mode = reports.VerifyAll
	}
	v.Numbers, v.Whole, v.Bytes = c.Numbers, c.Messages, c.Bytes
	return v
}
