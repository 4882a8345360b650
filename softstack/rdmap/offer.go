package rdmap

import (
	"encoding/binary"
	"hash/crc32"
)

// Extensions are the optional parts of RFC 7306: who supports one atomic operation supports all (§1.1).
type Extensions uint8

// The extensions.
const (
	ExtImmediate Extensions = 1 << iota // Immediate Data, with and without SE
	ExtAtomic                           // Atomic Request and Response

	ExtAll = ExtImmediate | ExtAtomic
)

// An offer tells what its sender takes of RFC 7306, which has no negotiation (§1.1): behind the application's private
// data at start-up, where a peer that knows none sees OfferLen octets more. A responder answers an offer with its own.
//
//	octets 0-1  length of the application's private data   big-endian
//	octet 2     version, 1
//	octet 3     Extensions
//	octets 4-7  CRC-32C of octets 0 to 3, xor the letters "7306"
const (
	OfferLen     = 8
	offerVersion = 1
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	offerMark  = binary.BigEndian.Uint32([]byte("7306"))
)

// AppendOffer returns the application's private data with an offer behind it, in memory of its own.
func AppendOffer(private []byte, e Extensions) []byte {
	at := len(private)
	b := append(make([]byte, 0, at+OfferLen), private...)
	b = binary.BigEndian.AppendUint16(b, uint16(at))
	b = append(b, offerVersion, byte(e))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli)^offerMark)
}

// CutOffer parts private data into the application's and the peer's offer; without one, ok is false and all is the
// application's. An offer of another version is cut off and holds no extension.
func CutOffer(b []byte) (private []byte, e Extensions, ok bool) {
	at := len(b) - OfferLen
	if at < 0 {
		return b, 0, false
	}
	o := b[at:]
	if int(binary.BigEndian.Uint16(o)) != at || binary.BigEndian.Uint32(o[4:]) != crc32.Checksum(o[:4],
		castagnoli)^offerMark {
		return b, 0, false
	}
	if o[2] == offerVersion {
		e = Extensions(o[3]) & ExtAll
	}
	return b[:at:at], e, true
}
