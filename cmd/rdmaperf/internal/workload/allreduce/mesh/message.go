package mesh

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Kinds of messages.
const (
	kindEager = iota + 1 // the bytes themselves follow
	kindClear            // clear to send: where to
	kindThere            // a segment has been written
	numKinds
)

// headLen is the bytes of a message's head, big-endian:
//
//	kind 1 | zero 3 | number 4 | length 8 | address 8 | key 4 | zero 4
const headLen = 32

// head is what a message says. Numbers count the messages of a kind between two ranks.
type head struct {
	kind   uint8
	number uint32
	length uint64 // of eager bytes, of the whole message, of a segment
	addr   uint64
	key    uint32
}

func (h *head) encode(b []byte) {
	clear(b[:headLen])
	b[0] = h.kind
	binary.BigEndian.PutUint32(b[4:], h.number)
	binary.BigEndian.PutUint64(b[8:], h.length)
	binary.BigEndian.PutUint64(b[16:], h.addr)
	binary.BigEndian.PutUint32(b[24:], h.key)
}

// parse reads the head of a message of len(b) bytes, of which payload follow it.
func parse(b []byte) (h head, err error) {
	if len(b) < headLen {
		return h, fmt.Errorf("a message of %d bytes: %w", len(b), rdma.ErrProtocol)
	}
	h = head{b[0], binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]),
		binary.BigEndian.Uint32(b[24:])}
	rest := uint64(len(b) - headLen)
	if h.kind == 0 || h.kind >= numKinds || h.kind == kindEager && h.length != rest ||
		h.kind != kindEager && rest != 0 {
		return h, fmt.Errorf("a message of kind %d, length %d and %d bytes: %w", h.kind, h.length, rest,
			rdma.ErrProtocol)
	}
	return h, nil
}
