package mesh

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// lendFrom is from how many bytes a message that needs no rendezvous is sent from where it
// lies, if its registration is kept: below, a copy beside its head costs less than a look-up.
// Arbitrary.
const lendFrom = 4 << 10

// room waits for a slot for an eager message.
func (m *Mesh) room(ctx context.Context, p *peer) error {
	return m.until(ctx, fmt.Sprintf("send to rank %d", p.rank),
		func() (bool, error) { return p.eager < eagerSlots, nil })
}

// sendEager sends bytes, or a token of none, as soon as there is a slot.
func (m *Mesh) sendEager(ctx context.Context, p *peer, b []byte) error {
	if err := m.room(ctx, p); err != nil {
		return err
	}
	p.eager++
	return m.send(p, kindEager, head{length: uint64(len(b))}, b, id(p.rank, whatEager, p.slot))
}

// sendShort sends the step's bytes without a rendezvous: copied into a slot, or gathered from
// where they lie.
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
	p.holds[p.slot] = loan{h, true}
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

// back gives the user's memory back that a slot's message was taken from.
func (p *peer) back(slot int) error {
	l := &p.holds[slot]
	if !l.used {
		return nil
	}
	p.lent--
	l.used = false
	return l.hold.Put()
}

// returned waits until nothing of the user's memory is being sent any more.
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

// backAll gives all of it back when the ranks cannot go on.
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

// takeEager waits for a message of n bytes and gives it to f.
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
