package mpa

import (
	"cmp"
	"fmt"
)

// NewRequest builds the initiator's Request with private as the upper layer's private data. The frame keeps private.
func NewRequest(cfg Config, private []byte) (*Frame, error) {
	f := &Frame{Markers: cfg.Markers, CRC: cfg.CRC, Rev: cmp.Or(cfg.Revision, Rev2), Private: private}
	switch f.Rev {
	case Rev1:
		if cfg.PeerToPeer {
			return nil, fmt.Errorf("build mpa request: peer-to-peer model needs revision 2")
		}
	case Rev2:
		f.Enhanced = true
		f.Enh = Enhanced{PeerToPeer: cfg.PeerToPeer, IRD: cfg.IRD, ORD: cfg.ORD}
		if cfg.PeerToPeer {
			// RFC 6581 §9.2: every option the initiator supports is set.
			f.Enh.RTRSend, f.Enh.RTRWrite, f.Enh.RTRRead = cfg.RTRSend, cfg.RTRWrite, cfg.RTRRead
			if pickRTR(&f.Enh, &f.Enh) == RTRNone {
				return nil, fmt.Errorf("build mpa request: peer-to-peer model without an rtr option")
			}
		}
	default:
		return nil, fmt.Errorf("build mpa request: revision %d, want 1 or 2", cfg.Revision)
	}
	return checkFrame("request", f)
}

// HandleReply is the initiator's conclusion from both frames. A refusal sets Rejected and is no error. An *Error with
// CodeBadFrame asks for a plain close, others for a Terminate with that code (RFC 6581 §9).
func (cfg Config) HandleReply(req, rep *Frame) (Negotiated, error) {
	if !rep.Reply {
		// RFC 5044 §7.1.2 rule 8.
		return Negotiated{}, badFrame("request in answer to a request: both sides are initiators")
	}
	if err := checkPeer(rep); err != nil {
		return Negotiated{}, err
	}
	n := Negotiated{Revision: rep.Rev, PeerPrivate: rep.Private}
	if rep.Enhanced {
		n.PeerIRD, n.PeerORD = rep.Enh.IRD, rep.Enh.ORD
	}
	if rep.Reject {
		n.Rejected = true
		return n, nil
	}
	if rep.Rev > req.Rev {
		return Negotiated{}, badFrame("reply of revision %d to a request of revision %d", rep.Rev, req.Rev)
	}
	if rep.Enhanced != req.Enhanced {
		// RFC 6581 §10: like answers like.
		return Negotiated{}, badFrame("enhanced request %t, enhanced reply %t", req.Enhanced, rep.Enhanced)
	}
	n.CRC = req.CRC || rep.CRC
	n.TxMarkers = rep.Markers
	n.RxMarkers = req.Markers
	n.IRD, n.ORD = cfg.IRD, cfg.ORD
	if !rep.Enhanced {
		return n, nil
	}
	if rep.Enh.ORD != NoNegotiation && rep.Enh.ORD > cfg.IRD {
		// RFC 6581 §9.1: the initiator must serve the responder's ORD.
		return n, &Error{CodeInsufficientIRD, fmt.Sprintf("responder ord %d, local ird %d", rep.Enh.ORD, cfg.IRD)}
	}
	if rep.Enh.IRD != NoNegotiation {
		n.ORD = min(cfg.ORD, rep.Enh.IRD)
	}
	if rep.Enh.PeerToPeer != req.Enh.PeerToPeer {
		return n, &Error{CodeNoRTR, fmt.Sprintf("peer-to-peer model asked %t, answered %t", req.Enh.PeerToPeer,
			rep.Enh.PeerToPeer)}
	}
	if n.PeerToPeer = rep.Enh.PeerToPeer; n.PeerToPeer {
		if n.RTR = pickRTR(&rep.Enh, cfg.options()); n.RTR == RTRNone {
			return n, &Error{CodeNoRTR, "no rtr indication of the responder is supported"}
		}
	}
	return n, nil
}

// HandleRequest is the responder's conclusion from a Request: what holds if it accepts. The *Error has CodeBadFrame, or
// CodeNoRTR where cfg has no RTR indication. With none in common RTR is RTRNone, the reply names what cfg supports, and
// the initiator terminates the stream (RFC 6581 §9.2).
func (cfg Config) HandleRequest(req *Frame) (Negotiated, error) {
	if req.Reply {
		return Negotiated{}, badFrame("reply where a request is due")
	}
	if err := checkPeer(req); err != nil {
		return Negotiated{}, err
	}
	n := Negotiated{
		Revision:    req.Rev,
		CRC:         req.CRC || cfg.CRC,
		TxMarkers:   req.Markers,
		RxMarkers:   cfg.Markers,
		IRD:         cfg.IRD,
		ORD:         cfg.ORD,
		PeerPrivate: req.Private,
	}
	if !req.Enhanced {
		return n, nil
	}
	n.PeerIRD, n.PeerORD = req.Enh.IRD, req.Enh.ORD
	if req.Enh.IRD != NoNegotiation {
		// RFC 6581 §9.1: at most the initiator's IRD.
		n.ORD = min(cfg.ORD, req.Enh.IRD)
	}
	if n.PeerToPeer = req.Enh.PeerToPeer; n.PeerToPeer {
		own := cfg.options()
		if pickRTR(own, own) == RTRNone {
			return n, &Error{CodeNoRTR, "no rtr indication is supported"}
		}
		n.RTR = pickRTR(&req.Enh, own)
		if n.RTR == RTRRead && n.IRD == 0 {
			// RFC 6581 §9.1: the RTR itself needs a place.
			n.IRD = 1
		}
	}
	return n, nil
}

// NewReply builds the accepting Reply; IRD and ORD may be lowered before. The frame keeps private.
func (cfg Config) NewReply(req *Frame, n Negotiated, private []byte) (*Frame, error) {
	f := &Frame{Reply: true, Markers: n.RxMarkers, CRC: n.CRC, Rev: req.Rev, Private: private}
	if req.Enhanced {
		f.Enhanced = true
		f.Enh = Enhanced{PeerToPeer: req.Enh.PeerToPeer, IRD: n.IRD, ORD: n.ORD}
		if f.Enh.PeerToPeer {
			r := n.RTR
			if own := cfg.options(); r == RTRNone {
				r = pickRTR(own, own)
			}
			f.Enh.setRTR(r)
		}
		// RFC 6581 §9.1: no negotiation is answered by no negotiation.
		if req.Enh.ORD == NoNegotiation {
			f.Enh.IRD = NoNegotiation
		}
		if req.Enh.IRD == NoNegotiation {
			f.Enh.ORD = NoNegotiation
		} else if f.Enh.ORD > req.Enh.IRD {
			return nil, fmt.Errorf("build mpa reply: ord %d above the initiator's ird %d", f.Enh.ORD, req.Enh.IRD)
		}
	}
	return checkFrame("reply", f)
}

// NewReject builds the refusing Reply, with an enhanced request's own depths. The frame keeps private. The TCP
// connection is the upper layer's (RFC 5044 §7.1.2 rule 2).
func NewReject(req *Frame, private []byte) (*Frame, error) {
	f := &Frame{Reply: true, Reject: true, CRC: req.CRC, Rev: req.Rev, Private: private}
	if req.Enhanced {
		f.Enhanced = true
		f.Enh = req.Enh
		f.Enh.IRD, f.Enh.ORD = req.Enh.ORD, req.Enh.IRD
	}
	return checkFrame("reject", f)
}

// checkPeer wants a known revision, and 2 for the enhanced data (RFC 6581 §6).
func checkPeer(f *Frame) error {
	if f.Rev != Rev1 && f.Rev != Rev2 {
		return badFrame("revision %d, want 1 or 2", f.Rev)
	}
	if f.Enhanced && f.Rev < Rev2 {
		return badFrame("enhanced data with revision %d", f.Rev)
	}
	return nil
}

func checkFrame(what string, f *Frame) (*Frame, error) {
	limit := MaxPrivate
	if f.Enhanced {
		limit -= enhancedLen
		if f.Enh.IRD > NoNegotiation || f.Enh.ORD > NoNegotiation {
			return nil, fmt.Errorf("build mpa %s: ird %d or ord %d above %d", what, f.Enh.IRD, f.Enh.ORD, NoNegotiation)
		}
	}
	if len(f.Private) > limit {
		return nil, fmt.Errorf("build mpa %s: private data of %d octets, limit %d", what, len(f.Private), limit)
	}
	return f, nil
}

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
	if r > RTRRead {
		r = RTRNone
	}
	return [...]string{"none", "send", "write", "read"}[r]
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
