package rping

import (
	"encoding/binary"
	"fmt"
)

// AdvertLen is the size in bytes of every message of the protocol.
const AdvertLen = 16

// Advert names a registered buffer of its sender (struct rping_rdma_info of
// librdmacm/examples/rping.c). All fields are big-endian on the wire:
//
//	 0                   8          12         16
//	+-------------------+----------+----------+
//	| address           | rkey     | size     |
//	+-------------------+----------+----------+
type Advert struct {
	Addr uint64 // RDMA address (iWARP: Tagged Offset)
	RKey uint32 // remote key (iWARP: STag)
	Size uint32 // bytes
}

func (a Advert) put(b []byte) {
	binary.BigEndian.PutUint64(b[0:8], a.Addr)
	binary.BigEndian.PutUint32(b[8:12], a.RKey)
	binary.BigEndian.PutUint32(b[12:16], a.Size)
}

// ParseAdvert reads a message; any length but AdvertLen is malformed, also of a go-ahead.
func ParseAdvert(b []byte) (Advert, error) {
	if len(b) != AdvertLen {
		return Advert{}, &MalformedError{fmt.Sprintf("message of %d bytes, want %d", len(b), AdvertLen)}
	}
	return Advert{
		Addr: binary.BigEndian.Uint64(b[0:8]),
		RKey: binary.BigEndian.Uint32(b[8:12]),
		Size: binary.BigEndian.Uint32(b[12:16]),
	}, nil
}
