package dsm

import (
	"encoding/binary"
	"errors"
)

// A request is a page, a wish and, from a home, the number of what it ends; a grant is a number, a code and the page.
const (
	requestLen = 4 + 4 + 8
	grantLen   = 8 + 4
)

const (
	codeFine = uint32(iota)
	codeLost
)

var errWire = errors.New("message of another node makes no sense")

func putRequest(b []byte, p int, w wish, seq uint64) {
	binary.LittleEndian.PutUint32(b, uint32(p))
	binary.LittleEndian.PutUint32(b[4:], uint32(w))
	binary.LittleEndian.PutUint64(b[8:], seq)
}

func getRequest(b []byte, pages int) (p int, w wish, seq uint64, err error) {
	if len(b) != requestLen {
		return 0, 0, 0, errWire
	}
	n, v := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if uint64(n) >= uint64(pages) || v >= uint32(numWishes) {
		return 0, 0, 0, errWire
	}
	return int(n), wish(v), binary.LittleEndian.Uint64(b[8:]), nil
}

func putGrant(b []byte, seq uint64, code uint32, data []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, seq)
	b = binary.LittleEndian.AppendUint32(b, code)
	return append(b, data...)
}

func grant(b []byte, pageSize int) (seq uint64, code uint32, data []byte, err error) {
	if len(b) < grantLen {
		return 0, 0, nil, errWire
	}
	seq, code, data = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), b[grantLen:]
	if code == codeFine && len(data) != pageSize {
		return 0, 0, nil, errWire
	}
	return seq, code, data, nil
}
