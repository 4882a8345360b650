package iwarp

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Config chooses what a device asks of its peers; by default MPA revision 2, CRC, no markers, client-server model.
type Config struct {
	NoCRC           bool  // do not ask for CRC; it is still used when the peer asks (RFC 5044 §7.1.1)
	Markers         bool  // ask the peer to send markers; ours are sent when the peer asks
	Revision        uint8 // 1 or 2; 0 means 2. As responder the request's is followed
	PeerToPeer      bool  // as initiator, open with an RTR so that both sides may send first (RFC 6581 §9)
	StoreAndForward bool  // check every CRC before the payload is placed; costs a copy
	SendBuffer      int   // SO_SNDBUF in bytes; 0 leaves it to the kernel
	RecvBuffer      int   // SO_RCVBUF in bytes; 0 leaves it to the kernel
	// both over the loopback device, where they are 0; 0 means 1 MiB, less leaves them to the kernel
	LocalBuffer int
	Stack       stream.Stack // below; nil means kernel sockets
	MaxULPDU    int          // upper bound of a ULPDU in octets; 0 takes the path's MULPDU
	Extensions  Extensions

	// OnAck completes Sends and Writes when the peer's TCP has acknowledged them, not when ours has taken them: polls
	// ask the stack for that, and sleepers each millisecond. Over a Stack that sends by reference it is always so.
	OnAck bool

	// ReceiveThread gives the device a thread that receives and places: SoftRDMA's model c3. Polls then only take
	// completions, and who posts sends.
	ReceiveThread bool
}

// Extensions says how a device stands to RFC 7306, immediate data and atomics.
type Extensions uint8

const (
	// ExtNegotiated, the default: what comes is taken, and a peer is sent what it says it takes (rdmap.AppendOffer).
	ExtNegotiated Extensions = iota
	// ExtNone: plain RFC 5040, and nothing about it in the private data.
	ExtNone
	// ExtAssumed: it is sent to every peer, by static configuration (RFC 7306 §1.1).
	ExtAssumed
	numExtensions
)

// Limits that bound memory, except those of the wire format.
const (
	maxQPWR    = 16384
	maxCQE     = 1 << 20
	maxSRQWR   = 16384
	maxInline  = 512
	maxRDAtom  = 128                // as Linux siw
	maxPrivate = mpa.MaxPrivate - 4 // the enhanced data of RFC 6581
	maxMessage = 1<<32 - 1          // RFC 5041 §4: the message offset is 32 bits

	// localBuffer is large enough that the window of the scheduling tier fits.
	localBuffer = 1 << 20

	startupRoom = 64 // sockets beyond the backlog that may be in MPA start-up, so that a few silent ones block nobody

	// Buffers have leastBuf octets until more comes at once, then mostBuf, at least one FPDU.
	leastBuf     = 8 << 10
	mostBuf      = 128 << 10
	terminateLen = 256 // an FPDU of a Terminate is shorter, also with markers
	leastVec     = 32  // pieces to send at once; doubled likewise
	mostVec      = 256
	copyMax      = 2048 // payloads up to this are copied beside their header instead of gathered
	// the same over a stack that sends by reference: a reference costs two buffers of the stack
	copyMaxRef = 512
	directMin  = 4096 // segments longer than this, and not yet here whole, are placed by the socket
	lookAhead  = 32   // octets read behind a small segment in a bulk stream: the next header
	bulkMemory = 8    // small segments after a large one before a stream no longer counts as bulk
	// octets framed before they are handed to the socket: two long segments, still in the cache from their CRC
	flushAt      = 64 << 10
	batchAligned = 8 << 10 // the same over a stack that takes a segment a call: the first ones leave sooner
	// octets after which a turn takes what came, where both sides send long messages: these stay in their caches
	sendTurn = 256 << 10
	// a turn does not end before so little: 1 MiB, for which the socket has room, goes in one
	sendRest = 768 << 10
	rxPasses = 16 // reads one poll may do on one QP, so that a flood does not starve the others

	defaultTimeout = 10 * time.Second       // connect and accept without a deadline
	requestTimeout = 5 * time.Second        // for the MPA Request of an accepted socket, as Linux siw
	silenceGrace   = 50 * time.Millisecond  // a Request has at least this long to come, however many others wait
	answerTimeout  = 10 * time.Second       // for the application's answer to a request
	lingerTimeout  = 2 * time.Second        // for the peer to read our last octets
	watchPeriod    = 10 * time.Millisecond  // how often an active QP is looked at from the background
	ackSlice       = time.Millisecond       // how often CQ.Wait asks for acknowledgements, with OnAck
	waitSlice      = 100 * time.Millisecond // how often CQ.Wait looks at its context, at first
)

func (c *Config) validate() error {
	wrong := ""
	switch {
	case c.Revision > mpa.Rev2:
		wrong = "mpa revision"
	case c.PeerToPeer && c.Revision == mpa.Rev1:
		wrong = "peer-to-peer model needs mpa revision 2"
	case c.MaxULPDU != 0 && (c.MaxULPDU < mpa.MinMULPDU || c.MaxULPDU > mpa.MaxULPDU):
		wrong = "ulpdu bound"
	case c.Extensions >= numExtensions:
		wrong = "extensions"
	case c.SendBuffer < 0 || c.RecvBuffer < 0:
		wrong = "socket buffer size"
	default:
		return nil
	}
	return &rdma.OpError{Op: "open iwarp", Object: wrong, Err: rdma.ErrInvalid}
}

func (c *Config) name() string {
	p := []string{"crc"}
	if c.NoCRC {
		p[0] = "nocrc"
	}
	for _, f := range []struct {
		name string
		on   bool
	}{{"markers", c.Markers}, {"rev1", c.Revision == mpa.Rev1}, {"p2p", c.PeerToPeer}, {"checked", c.StoreAndForward},
		{"done=acked", c.OnAck}, {"rfc5040", c.Extensions == ExtNone}, {"rfc7306", c.Extensions == ExtAssumed}} {
		if f.on {
			p = append(p, f.name)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"sndbuf", c.SendBuffer}, {"rcvbuf", c.RecvBuffer}, {"local", c.LocalBuffer}, {"mulpdu", c.MaxULPDU}} {
		if n.value != 0 {
			p = append(p, n.name+"="+strconv.Itoa(max(0, n.value)))
		}
	}
	if c.Stack != nil && c.Stack.Name() != "" {
		p = append(p, c.Stack.Name())
	}
	if c.ReceiveThread {
		p = append(p, "threads=c3")
	}
	return "iwarp(" + strings.Join(p, ",") + ")"
}

func (c *Config) buffers() stream.Buffers {
	local := max(0, cmp.Or(c.LocalBuffer, localBuffer))
	return stream.Buffers{Send: c.SendBuffer, Recv: c.RecvBuffer, LocalSend: local, LocalRecv: local}
}

func (c *Config) mpa(p *rdma.ConnParam) mpa.Config {
	return mpa.Config{
		Revision: c.Revision, CRC: !c.NoCRC, Markers: c.Markers,
		PeerToPeer: c.PeerToPeer, RTRWrite: true, RTRRead: true,
		IRD: uint16(p.IRD), ORD: uint16(p.ORD),
	}
}

func (c *Config) caps() rdma.Caps {
	f := rdma.FeatSRQ | rdma.FeatEvents | rdma.FeatSolicited | rdma.FeatInline | rdma.FeatFence |
		rdma.FeatLastByteLast | rdma.FeatSQD | rdma.FeatAsyncEvents | rdma.FeatEmptyRead
	if c.PeerToPeer {
		f |= rdma.FeatPassiveFirst
	}
	ops, private := rdma.Ops(rdma.OpSend, rdma.OpSendInv, rdma.OpWrite, rdma.OpRead, rdma.OpLocalInv), maxPrivate
	if c.Extensions != ExtNone {
		ops |= immediateOps | atomicOps
		private -= rdmap.OfferLen
	}
	return rdma.Caps{
		Label:      rdma.LabelSoft,
		Completion: rdma.CompletionLocal,
		Ops:        ops,
		Features:   f,
		MaxQPWR:    maxQPWR,
		MaxCQE:     maxCQE,
		MaxSGE:     rdma.MaxSGE,
		MaxReadSGE: 1,
		MaxInline:  maxInline,
		MaxRDAtom:  maxRDAtom,
		MaxSRQWR:   maxSRQWR,
		MaxPrivate: private,
		MaxMsg:     maxMessage,
	}
}
