package lite

import (
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
)

// Every arena starts with one mailbox for each possible peer, into which that peer
// writes checked words: its sign of life, and for each queue pair how many receives
// it has posted again.
const (
	mailLen   = 64 + MaxLinks*wire.WordLen
	mailEnd   = MaxNodes * mailLen
	beatAt    = 0
	creditsAt = 64

	// stageLen is the room beside each entry of a send queue, bytes, for headers, words and short
	// messages until they are sent: four cache lines.
	stageLen = 256

	controlRing  = 256 << 10 // of the nodes' own port, bytes
	controlReply = 96 << 10  // longest answer of it
)

func beatOf(node int) uint64         { return uint64(node*mailLen + beatAt) }
func creditOf(node, link int) uint64 { return uint64(node*mailLen + creditsAt + link*wire.WordLen) }

// word reads a checked word of the own arena.
func (n *Node) word(off uint64) (uint64, bool) { return wire.Word(n.mem[off : off+wire.WordLen]) }
