package mpa

// Revisions of MPA.
const (
	Rev1 = 1 // RFC 5044
	Rev2 = 2 // RFC 6581, with the enhanced data
)

// RTR is the ready-to-receive indication an initiator opens a peer-to-peer stream with (RFC 6581 §9.2).
type RTR uint8

// The RTR indications.
const (
	RTRNone  RTR = iota // client-server model, or no option in common
	RTRSend             // a zero-length Send
	RTRWrite            // a zero-length RDMA Write
	RTRRead             // a zero-length RDMA Read
)

// String names the indication.
func (r RTR) String() string {
	switch r {
	case RTRSend:
		return "send"
	case RTRWrite:
		return "write"
	case RTRRead:
		return "read"
	}
	return "none"
}

// Config is what one side wants or can do; by default revision 2, no CRC, markers, peer-to-peer model, RDMA Reads.
type Config struct {
	Revision   uint8 // 1 or 2; 0 means 2. An initiator's; a responder follows the request
	CRC        bool  // require CRC. It is used when either side requires it
	Markers    bool  // require the peer to send markers
	PeerToPeer bool  // initiator: ask for the peer-to-peer model
	RTRSend    bool  // RTR indications this side can send or take
	RTRWrite   bool
	RTRRead    bool
	IRD        uint16 // RDMA Reads this side can have inbound; NoNegotiation keeps it out of the exchange
	ORD        uint16 // RDMA Reads this side wants outbound; the same
}

// Negotiated is what holds on a connection, seen from this side.
type Negotiated struct {
	Revision    uint8
	CRC         bool // both directions carry and check CRCs
	TxMarkers   bool // this side sends markers
	RxMarkers   bool // the peer sends markers
	PeerToPeer  bool
	RTR         RTR    // the indication that opens the stream
	IRD         uint16 // RDMA Reads the peer may have outstanding at this side
	ORD         uint16 // RDMA Reads this side may have outstanding at the peer
	PeerIRD     uint16 // as the peer sent it, for the upper layer; 0 without enhanced data
	PeerORD     uint16
	PeerPrivate []byte // part of the peer's frame
	Rejected    bool   // the responder refused; only PeerIRD, PeerORD and PeerPrivate matter
}

// rtrOrder prefers a Write, which touches no queue, to a Read, which needs a place, and a Send, which takes a receive.
var rtrOrder = [...]RTR{RTRWrite, RTRRead, RTRSend}

func (e *Enhanced) has(r RTR) bool {
	return r == RTRSend && e.RTRSend || r == RTRWrite && e.RTRWrite || r == RTRRead && e.RTRRead
}

func (e *Enhanced) setRTR(r RTR) {
	e.RTRSend, e.RTRWrite, e.RTRRead = r == RTRSend, r == RTRWrite, r == RTRRead
}

func (cfg *Config) options() *Enhanced {
	return &Enhanced{RTRSend: cfg.RTRSend, RTRWrite: cfg.RTRWrite, RTRRead: cfg.RTRRead}
}

// pickRTR is the preferred indication that is in both a and b, or RTRNone.
func pickRTR(a, b *Enhanced) RTR {
	for _, r := range rtrOrder {
		if a.has(r) && b.has(r) {
			return r
		}
	}
	return RTRNone
}
