package ddp

// RecvQueue is the receive side of one untagged queue: the message and offset due next (RFC 5041 §4.3, §7.1). Its owner
// pairs messages with receives.
type RecvQueue struct {
	qn   uint32
	msn  uint32
	mo   uint64 // 64 bits, so that a full 4 GiB message cannot wrap it
	open bool   // a segment of msn has arrived and it was not the last
}

// NewRecvQueue starts queue qn at firstMSN, which is 1 for every queue of a new stream (RFC 5041 §4.3).
func NewRecvQueue(qn, firstMSN uint32) RecvQueue {
	return RecvQueue{qn: qn, msn: firstMSN}
}

// MSN is the sequence number the next segment must carry.
func (q *RecvQueue) MSN() uint32 { return q.msn }

// Offset is the MO the next segment must carry: the octets of the current message that have arrived.
func (q *RecvQueue) Offset() uint64 { return q.mo }

// Open reports whether a message has begun and has not ended.
func (q *RecvQueue) Open() bool { return q.open }

// Check tests one segment with payload octets against the queue, and advances it. bufLen is the capacity of the
// message's buffer, in octets, and haveBuf whether there is one; first: the segment begins a message. On an error
// nothing moves and the stream is over. RFC 5041 §7.1 does not order the checks: MSN, buffer, MO, length.
func (q *RecvQueue) Check(h *Untagged, payload int, bufLen uint32, haveBuf bool) (first bool, code ErrorCode) {
	if h.QN != q.qn {
		return false, ErrUntaggedQN
	}
	// RFC 5041 §5.3: at most once and in order; over TCP any other MSN is a fault.
	if h.MSN != q.msn {
		return false, ErrUntaggedMSN
	}
	if !haveBuf {
		return false, ErrUntaggedNoBuffer
	}
	if uint64(h.MO) != q.mo {
		return false, ErrUntaggedMO
	}
	end := q.mo + uint64(payload)
	if end > uint64(bufLen) {
		return false, ErrUntaggedTooLong
	}
	first = !q.open
	q.open = !h.Last
	q.mo = end
	if h.Last {
		q.msn++ // modulo 2^32, RFC 5041 §4.3
		q.mo = 0
	}
	return first, 0
}

// CheckBounds tests [to, to+n) against a buffer of length octets from offset base; n = 0 is always right (RFC 5041
// §5.2).
func CheckBounds(to uint64, n int, base, length uint64) ErrorCode {
	if n == 0 {
		return 0
	}
	// RFC 5041 §7.1: the sum of length and TO must not wrap, so a last octet at 2^64-1 does.
	if to+uint64(n) < to {
		return ErrTaggedWrap
	}
	if to < base || to-base > length || uint64(n) > length-(to-base) {
		return ErrTaggedBounds
	}
	return 0
}
