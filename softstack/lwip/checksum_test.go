//go:build lwip && cgo

package lwip

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// slowSum adds 16 bits at a time, as RFC 1071 §1 has it.
func slowSum(b []byte) uint16 {
	sum := uint32(0)
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.NativeEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(binary.NativeEndian.Uint16([]byte{b[0], 0}))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// TestChecksumIsThatOfRFC1071 at every length of a segment and every alignment, also where all bits carry.
func TestChecksumIsThatOfRFC1071(t *testing.T) {
	for name, b := range map[string][]byte{"random": random(1, 1600), "ones": bytes.Repeat([]byte{0xff}, 1600),
		"zeros": make([]byte, 1600)} {
		for n := range 1500 {
			for at := range 8 {
				if got, want := checksum(b[at:at+n]), slowSum(b[at:at+n]); got != want {
					t.Fatalf("%s, %d octets at %d: %04x, want %04x", name, n, at, got, want)
				}
			}
		}
	}
}

// TestTheLibraryUsesOurChecksum: without that every segment takes twice as long.
func TestTheLibraryUsesOurChecksum(t *testing.T) {
	openStack(t, Config{})
	if !checksumReplaced() {
		t.Error("the program does not export its checksum")
	}
}
