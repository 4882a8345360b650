package mesh

import (
	"fmt"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// elem is the bytes of a float32.
const elem = 4

// Floats is memory as a vector. It must not be used after the memory is freed.
func Floats(b []byte) []float32 {
	if len(b) < elem {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/elem)
}

// request is the work request of a message: a head, and payload where that is not nil.
func (m *Mesh) request(p *peer, kind uint8, h head, payload []byte, wid uint64) rdma.SendWR {
	h.kind, h.number = kind, p.sent[kind]
	p.sent[kind]++
	at := p.headBase + p.head*headLen
	if kind == kindEager {
		at = p.sendBase + p.slot*m.slot()
		p.slot = (p.slot + 1) % eagerSlots
	} else {
		p.head = (p.head + 1) % heads
	}
	h.encode(m.buf.Bytes()[at:])
	n := copy(m.buf.Bytes()[at+headLen:], payload)
	return rdma.SendWR{ID: wid, Op: rdma.OpSend, NumSGE: 1, SGE: m.sge(at, headLen+n), Flags: rdma.Signaled}
}

// send posts one message.
func (m *Mesh) send(p *peer, kind uint8, h head, payload []byte, wid uint64) error {
	wr := [1]rdma.SendWR{m.request(p, kind, h, payload, wid)}
	if _, err := p.qp.PostSend(wr[:]); err != nil {
		return fmt.Errorf("send to rank %d: %w", p.rank, err)
	}
	return nil
}
