package direct

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The window and the dialler's hello travel as private data of the connection set-up, in both directions, big-endian.
// 44 bytes fit the 56 that rdma_cm leaves of the InfiniBand REQ (rdma_connect(3)) and everything else.
//
//	magic 4 | version 1 | hello length 1 | zero 2 | rkey 4 | addr 8 | length 8 | hello 16
const (
	greetingLen = 44
	greetingMax = 16 // bytes of hello

	version = 1
)

var magic = [4]byte{'r', 'p', 'd', 'v'}

var (
	errMagic     = errors.New("private data is not of this transport")
	errMalformed = errors.New("malformed private data")
)

type greeting struct {
	rkey  uint32
	addr  uint64
	len   uint64
	hello []byte
}

func (g *greeting) encode() ([]byte, error) {
	if len(g.hello) > greetingMax {
		return nil, fmt.Errorf("hello of %d bytes, at most %d: %w", len(g.hello), greetingMax, rdma.ErrInvalid)
	}
	b := make([]byte, greetingLen)
	copy(b, magic[:])
	b[4], b[5] = version, uint8(len(g.hello))
	binary.BigEndian.PutUint32(b[8:], g.rkey)
	binary.BigEndian.PutUint64(b[12:], g.addr)
	binary.BigEndian.PutUint64(b[20:], g.len)
	copy(b[28:], g.hello)
	return b, nil
}

// parseGreeting takes padding: some devices fill the field with zeros (rdma_get_cm_event(3)).
func parseGreeting(b []byte) (greeting, error) {
	if len(b) < greetingLen || [4]byte(b[:4]) != magic {
		return greeting{}, fmt.Errorf("%w: %w", rdma.ErrProtocol, errMagic)
	}
	if b[4] != version {
		return greeting{}, fmt.Errorf("%w: peer speaks version %d, this side %d", rdma.ErrProtocol, b[4], version)
	}
	g := greeting{
		rkey: binary.BigEndian.Uint32(b[8:]),
		addr: binary.BigEndian.Uint64(b[12:]),
		len:  binary.BigEndian.Uint64(b[20:]),
	}
	n := int(b[5])
	// A window that wraps would make the bounds check of Post meaningless.
	if n > greetingMax || b[6]|b[7] != 0 || g.len == 0 || g.addr+g.len < g.addr {
		return greeting{}, fmt.Errorf("%w: %w", rdma.ErrProtocol, errMalformed)
	}
	g.hello = append([]byte(nil), b[28:28+n]...)
	return g, nil
}

// A work request ID says everything a completion needs, so that no table is
// looked up on the way back: failed completions carry nothing but their ID.
//
//	63..61 zero | 60 unsignaled | 59..56 kind | 55..32 cover | 31..0 slot
//
// cover is the number of send queue places that a successful completion frees:
// its own and those of the unsignaled requests before it.
const (
	coverBits     = 24
	coverShift    = 32
	kindShift     = coverShift + coverBits
	unsignaledBit = 1 << (kindShift + 4)
)

func makeID(k transports.Kind, slot uint32) uint64 { return uint64(k)<<kindShift | uint64(slot) }
func idSlot(id uint64) uint32                      { return uint32(id) }
func idCover(id uint64) int                        { return int(id >> coverShift & (1<<coverBits - 1)) }
func idKind(id uint64) transports.Kind             { return transports.Kind(id >> kindShift & 0xf) }
