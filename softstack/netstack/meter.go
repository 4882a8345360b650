package netstack

import (
	"encoding/binary"
	"sync/atomic"
)

// meter follows the one connection of a link by the TCP headers (RFC 9293 §3.1) that go by,
// as netstack does not tell how far the peer has acknowledged. One goroutine sends at a
// time and one receives.
type meter struct {
	base        atomic.Uint32 // sequence number of the first octet
	begun       atomic.Bool
	sent, acked atomic.Uint64 // octets
}

const (
	tcpHeaderLen = 20
	protocolTCP  = 6
	flagSYN      = 0x02
	flagACK      = 0x10
)

// out sees the TCP header and the number of octets behind it of a segment that leaves.
func (m *meter) out(tcp []byte, payload int) {
	if len(tcp) < tcpHeaderLen {
		return
	}
	seq := binary.BigEndian.Uint32(tcp[4:])
	if tcp[13]&flagSYN != 0 {
		m.base.Store(seq + 1)
		m.begun.Store(true)
		return
	}
	if payload == 0 || !m.begun.Load() {
		return
	}
	sent := m.sent.Load()
	// How far behind what was sent before; less than nothing is a retransmission.
	if ahead := int32(seq + uint32(payload) - m.base.Load() - uint32(sent)); ahead > 0 {
		m.sent.Store(sent + uint64(ahead))
	}
}

// in sees a packet that came.
func (m *meter) in(ip []byte) {
	var tcp []byte
	switch {
	case !m.begun.Load() || len(ip) < 20:
		return
	case ip[0]>>4 == 4 && ip[9] == protocolTCP:
		tcp = ip[min(int(ip[0]&15)*4, len(ip)):]
	case ip[0]>>4 == 6 && ip[6] == protocolTCP: // netstack puts no header between
		tcp = ip[min(40, len(ip)):]
	}
	if len(tcp) < tcpHeaderLen || tcp[13]&flagACK == 0 {
		return
	}
	acked := m.acked.Load()
	ahead := int32(binary.BigEndian.Uint32(tcp[8:]) - m.base.Load() - uint32(acked))
	// A FIN is one more than was sent.
	if ahead > 0 {
		m.acked.Store(min(acked+uint64(ahead), m.sent.Load()))
	}
}
