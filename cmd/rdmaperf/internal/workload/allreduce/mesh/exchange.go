package mesh

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// exchange is a rendezvous at work, one or both ways.
type exchange struct {
	m    *Mesh
	ctx  context.Context
	step steps.Step
	arm  arms.Arm
	v    *vector

	in, out int // bytes

	holds [2]arms.Hold
	held  int

	from  *peer // who writes here
	left  int   // bytes that are still to come
	at    int   // of the vector, in bytes
	inlen int
	dst   []byte // where they arrive

	to    *peer // to whom this rank writes
	src   rdma.Buffer
	key   uint32
	where *head // what the receiver said
	limit int   // bytes that may be written
	wrote int
	done  int // long messages to that peer when this one is

	// next is the step behind this one where it sends what this one receives: each segment as
	// soon as it is there, and added, while the caches have it.
	next *exchange
}

func (m *Mesh) exchange(ctx context.Context, s steps.Step, v *vector, arm arms.Arm) *exchange {
	x := &exchange{m: m, ctx: ctx, step: s, arm: arm, v: v}
	if s.RecvFrom >= 0 {
		x.in = s.Recv.N * elem
	}
	if s.SendTo >= 0 {
		x.out = s.Send.N * elem
	}
	return x
}

// ready tells the sender that it may begin, once.
func (x *exchange) ready() error {
	if x.in <= x.m.cfg.Eager || x.from != nil {
		return nil
	}
	return x.clear(x.m.peers[x.step.RecvFrom], x.in)
}

// run takes the step.
func (x *exchange) run() error {
	m, s := x.m, x.step
	if x.out > m.cfg.Eager {
		if err := x.prepare(x.v.of(s.Send)); err != nil {
			return err
		}
		x.limit = x.out
	} else if x.out > 0 {
		if err := x.sendShort(); err != nil {
			return err
		}
	}
	if 0 < x.in && x.in <= m.cfg.Eager {
		dst := Floats(x.v.out.Bytes())[s.Recv.Off:][:s.Recv.N]
		if err := m.takeEager(x.ctx, m.peers[s.RecvFrom], x.in, func(b []byte) {
			if s.Add {
				add(dst, Floats(x.v.of(s.Recv).Bytes())[s.Recv.Off:], Floats(b))
			} else {
				copy(dst, Floats(b))
			}
		}); err != nil {
			return err
		}
	}
	if x.next != nil {
		if err := x.next.prepare(x.v.out); err != nil {
			return err
		}
	}
	if x.left > 0 || x.to != nil {
		return m.until(x.ctx, x.what(), x.turn)
	}
	return nil
}

func (x *exchange) what() string {
	switch {
	case x.to == nil:
		return fmt.Sprintf("receive %d bytes from rank %d", x.inlen, x.from.rank)
	case x.left == 0:
		return fmt.Sprintf("write %d bytes to rank %d", x.src.Len(), x.to.rank)
	}
	return fmt.Sprintf("write %d bytes to rank %d and receive from rank %d", x.src.Len(), x.to.rank, x.from.rank)
}

// hold registers a part of the user's memory until put.
func (x *exchange) hold(b rdma.Buffer) (arms.Hold, error) {
	h, err := x.arm.Get(b)
	if err == nil {
		x.holds[x.held] = h
		x.held++
	}
	return h, err
}

func (x *exchange) put() error {
	var errs []error
	for _, h := range x.holds[:x.held] {
		errs = append(errs, h.Put())
	}
	return errors.Join(errs...)
}
