package mesh

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
