package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	kindEager = iota + 1 // the bytes themselves follow
	kindClear            // clear to send: where to
	kindThere            // a segment has been written
	numKinds
)

// headLen is the bytes of a message's head, big-endian:
//
//	kind 1 | zero 3 | number 4 | length 8 | address 8 | key 4 | zero 4
const headLen = 32

// head is what a message says. Numbers count the messages of a kind between two ranks.
type head struct {
	kind   uint8
	number uint32
	length uint64 // of eager bytes, of the whole message, of a segment
	addr   uint64
	key    uint32
}

func (h *head) encode(b []byte) {
	clear(b[:headLen])
	b[0] = h.kind
	binary.BigEndian.PutUint32(b[4:], h.number)
	binary.BigEndian.PutUint64(b[8:], h.length)
	binary.BigEndian.PutUint64(b[16:], h.addr)
	binary.BigEndian.PutUint32(b[24:], h.key)
}

func parse(b []byte) (h head, err error) {
	if len(b) < headLen {
		return h, fmt.Errorf("a message of %d bytes: %w", len(b), rdma.ErrProtocol)
	}
	h = head{b[0], binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]),
		binary.BigEndian.Uint32(b[24:])}
	rest := uint64(len(b) - headLen)
	if h.kind == 0 || h.kind >= numKinds || h.kind == kindEager && h.length != rest ||
		h.kind != kindEager && rest != 0 {
		return h, fmt.Errorf("a message of kind %d, length %d and %d bytes: %w", h.kind, h.length, rest,
			rdma.ErrProtocol)
	}
	return h, nil
}

const elem = 4

// Floats is memory as a vector. It must not be used after the memory is freed.
func Floats(b []byte) []float32 {
	if len(b) < elem {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/elem)
}

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

func (m *Mesh) send(p *peer, kind uint8, h head, payload []byte, wid uint64) error {
	wr := [1]rdma.SendWR{m.request(p, kind, h, payload, wid)}
	if _, err := p.qp.PostSend(wr[:]); err != nil {
		return fmt.Errorf("send to rank %d: %w", p.rank, err)
	}
	return nil
}

// lendFrom: from so many bytes on, an eager message is sent from where it lies if its registration is kept. Arbitrary.
const lendFrom = 4 << 10

func (m *Mesh) room(ctx context.Context, p *peer) error {
	return m.until(ctx, fmt.Sprintf("send to rank %d", p.rank),
		func() (bool, error) { return p.eager < eagerSlots, nil })
}

func (m *Mesh) sendEager(ctx context.Context, p *peer, b []byte) error {
	if err := m.room(ctx, p); err != nil {
		return err
	}
	p.eager++
	return m.send(p, kindEager, head{length: uint64(len(b))}, b, id(p.rank, whatEager, p.slot))
}

// sendShort sends the step's bytes without a rendezvous: copied, or gathered from where they lie.
func (x *exchange) sendShort() error {
	m, p := x.m, x.m.peers[x.step.SendTo]
	b, err := x.v.of(x.step.Send).Slice(x.step.Send.Off*elem, x.out)
	if err != nil {
		return err
	}
	if x.out < lendFrom || !m.gather || !x.arm.Kept() || x.overlaps() {
		return m.sendEager(x.ctx, p, b.Bytes())
	}
	if err := m.room(x.ctx, p); err != nil {
		return err
	}
	h, err := x.arm.Get(b)
	if err != nil {
		return err
	}
	p.holds[p.slot] = h
	p.lent++
	p.eager++
	wr := [1]rdma.SendWR{m.request(p, kindEager, head{length: uint64(x.out)}, nil, id(p.rank, whatEager, p.slot))}
	wr[0].NumSGE = 2
	wr[0].SGE[1] = rdma.SGE{Addr: b.Addr(), Len: uint32(x.out), LKey: h.LKey()}
	if _, err := p.qp.PostSend(wr[:]); err != nil {
		return fmt.Errorf("send to rank %d: %w", p.rank, err)
	}
	return nil
}

func (p *peer) back(slot int) error {
	h := p.holds[slot]
	if h == (arms.Hold{}) {
		return nil
	}
	p.lent--
	p.holds[slot] = arms.Hold{}
	return h.Put()
}

func (m *Mesh) returned(ctx context.Context) error {
	for _, p := range m.peers {
		if p == nil || p.lent == 0 {
			continue
		}
		err := m.until(ctx, fmt.Sprintf("send to rank %d", p.rank), func() (bool, error) { return p.lent == 0, nil })
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Mesh) backAll() error {
	var errs []error
	for _, p := range m.peers {
		if p != nil {
			for slot := range p.holds {
				errs = append(errs, p.back(slot))
			}
		}
	}
	return errors.Join(errs...)
}

func (m *Mesh) takeEager(ctx context.Context, p *peer, n int, f func(b []byte)) error {
	err := m.until(ctx, fmt.Sprintf("receive from rank %d", p.rank), func() (bool, error) {
		return len(p.eagers) > 0, nil
	})
	if err != nil {
		return err
	}
	a := p.eagers[0]
	p.eagers = p.eagers[:copy(p.eagers, p.eagers[1:])]
	b := m.message(p, a.slot, a.n)[headLen:]
	if len(b) != n {
		return fmt.Errorf("rank %d sent %d bytes where %d are due: %w", p.rank, len(b), n, rdma.ErrProtocol)
	}
	f(b)
	return m.postRecv(p, a.slot)
}
