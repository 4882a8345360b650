package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"time"
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

func (p *peer) send(wr rdma.SendWR) error {
	if _, err := p.qp.PostSend([]rdma.SendWR{wr}); err != nil {
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
	return p.send(m.request(p, kindEager, head{length: uint64(len(b))}, b, id(p.rank, whatEager, p.slot)))
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
	wr := m.request(p, kindEager, head{length: uint64(x.out)}, nil, id(p.rank, whatEager, p.slot))
	wr.NumSGE = 2
	wr.SGE[1] = rdma.SGE{Addr: b.Addr(), Len: uint32(x.out), LKey: h.LKey()}
	return p.send(wr)
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

// IDs of work requests: who, what and which, as a failed completion has nothing else.
const (
	whatRecv  = iota // a message; the slot
	whatEager        // an eager send, which gives its slot back
	whatLast         // the last send of a long message
	whatQuiet        // unsignaled; seen only when it failed
)

func id(rank, what, slot int) uint64 { return uint64(rank)<<32 | uint64(what)<<24 | uint64(slot) }

func (m *Mesh) sge(at, n int) [rdma.MaxSGE]rdma.SGE {
	return [rdma.MaxSGE]rdma.SGE{{Addr: m.buf.Addr() + uint64(at), Len: uint32(n), LKey: m.mr.LKey()}}
}

func (m *Mesh) postRecv(p *peer, slot int) error {
	wr := [1]rdma.RecvWR{{ID: id(p.rank, whatRecv, slot), NumSGE: 1}}
	wr[0].SGE[0] = m.sge(p.recvBase+slot*m.slot(), headLen+m.cfg.Eager)[0]
	_, err := p.qp.PostRecv(wr[:])
	return err
}

func (m *Mesh) message(p *peer, slot, n int) []byte {
	return m.buf.Bytes()[p.recvBase+slot*m.slot():][:min(n, headLen+m.cfg.Eager)]
}

func (m *Mesh) poll() (bool, error) {
	n, err := m.cq.Poll(m.wcs)
	if err != nil {
		return false, err
	}
	for i := range m.wcs[:n] {
		if err := m.take(&m.wcs[i]); err != nil {
			return true, err
		}
	}
	return n > 0, nil
}

func (m *Mesh) take(wc *rdma.WC) error {
	p := m.peers[wc.ID>>32]
	if wc.Status != rdma.StatusSuccess {
		return m.fault(p, wc)
	}
	switch slot := int(wc.ID & (1<<24 - 1)); wc.ID >> 24 & 0xff {
	case whatRecv:
		return m.hear(p, slot, int(wc.ByteLen))
	case whatEager:
		p.eager--
		return p.back(slot)
	case whatLast:
		p.done++
	}
	return nil
}

// fault names the rank, and of a flushed request also what ended its queue pair.
func (m *Mesh) fault(p *peer, wc *rdma.WC) error {
	err := fmt.Errorf("rank %d: %w", p.rank, &rdma.StatusError{WC: *wc})
	if wc.Status != rdma.StatusWRFlushErr {
		return err
	}
	for ev, some := m.dev.Event(); some; ev, some = m.dev.Event() {
		switch {
		case ev.QPNum != p.qp.Num():
		case ev.Detail != 0:
			return fmt.Errorf("%w; its queue pair: %s, code 0x%04x", err, ev.Type, ev.Detail)
		default:
			return fmt.Errorf("%w; its queue pair: %s", err, ev.Type)
		}
	}
	return err
}

func (m *Mesh) hear(p *peer, slot, n int) error {
	h, err := parse(m.message(p, slot, n))
	if err == nil && h.number != p.heard[h.kind] {
		err = fmt.Errorf("message %d of kind %d where %d is due: %w", h.number, h.kind, p.heard[h.kind],
			rdma.ErrProtocol)
	}
	if err != nil {
		return fmt.Errorf("rank %d: %w", p.rank, err)
	}
	p.heard[h.kind]++
	switch h.kind {
	case kindEager:
		p.eagers = append(p.eagers, arrival{slot, n}) // posted again when its bytes were taken
		return nil
	case kindClear:
		p.clears = append(p.clears, h)
	case kindThere:
		p.there = append(p.there, h)
	}
	return m.postRecv(p, slot)
}

const clockEach = 1024 // empty polls between two looks at the clock. Arbitrary.

// offers is how often a rank that may sleep yields its CPU first (sched_yield(2)): waking up costs 20 us. Arbitrary.
const offers = 32

// until makes progress until f is true, or says what it waited for. A rank that may sleep does not poll on: each poll
// is a system call for each peer, and takes its time from the rank that is waited for.
func (m *Mesh) until(ctx context.Context, what string, f func() (bool, error)) error {
	var deadline time.Time
	for idle := 0; ; {
		if done, err := f(); done || err != nil {
			return err
		}
		some, err := m.poll()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if some {
			idle, deadline = 0, time.Time{}
			continue
		}
		idle++
		if m.cfg.Wait && idle <= offers {
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
			continue
		}
		if !m.cfg.Wait && idle%clockEach != 0 {
			continue
		}
		now := time.Now()
		if deadline.IsZero() {
			deadline = now.Add(m.cfg.Timeout)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if now.After(deadline) {
			return fmt.Errorf("%s: nothing for %v", what, m.cfg.Timeout)
		}
		if m.cfg.Wait {
			if err := m.sleep(ctx, deadline); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
}

func (m *Mesh) sleep(ctx context.Context, deadline time.Time) error {
	if err := m.cq.Arm(false); err != nil {
		return err
	}
	if some, err := m.poll(); some || err != nil { // between the last look and the request
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	err := m.cq.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		return nil // the caller looks at the clock
	}
	return err
}
