package mpa

import "fmt"

// NewRequest builds the initiator's Request with private as the upper layer's private data. The frame keeps private.
func NewRequest(cfg Config, private []byte) (*Frame, error) {
	f := &Frame{Markers: cfg.Markers, CRC: cfg.CRC, Rev: cfg.Revision, Private: private}
	if f.Rev == 0 {
		f.Rev = Rev2
	}
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

// checkPeer holds for frames ParseFrame made; a frame may also come from a caller's hand.
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
