package engine

import (
	"encoding/binary"
	"math/bits"
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
