package direct

import "github.com/rdmaperf/rdmaperf/transports"

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

func makeID(k transports.Kind, slot uint32) uint64 {
	return uint64(k)<<kindShift | uint64(slot)
}

func idSlot(id uint64) uint32          { return uint32(id) }
func idCover(id uint64) int            { return int(id >> coverShift & (1<<coverBits - 1)) }
func idKind(id uint64) transports.Kind { return transports.Kind(id >> kindShift & 0xf) }
