package mesh

import (
	"context"
	"errors"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Barrier returns when all ranks have called it (dissemination, Hensgen, Finkel and Manber 1988).
func (m *Mesh) Barrier(ctx context.Context) error {
	for k := 1; k < m.cfg.Size; k *= 2 {
		to, from := m.peers[(m.cfg.Rank+k)%m.cfg.Size], m.peers[(m.cfg.Rank+m.cfg.Size-k)%m.cfg.Size]
		if err := m.sendEager(ctx, to, nil); err != nil {
			return err
		}
		if err := m.takeEager(ctx, from, 0, func([]byte) {}); err != nil {
			return err
		}
	}
	return nil
}

// Reduce takes the steps of a list on the vector in, and leaves the sum in out. The arm registers what a rendezvous
// sends or receives, and short messages where that is kept.
func (m *Mesh) Reduce(ctx context.Context, list []steps.Step, in, out rdma.Buffer, arm arms.Arm) (err error) {
	if len(list) == 0 {
		copy(out.Bytes(), in.Bytes())
	}
	v := &vector{in: in, out: out, has: m.spans[:0]}
	defer func() {
		m.spans = v.has[:0]
		if err != nil {
			err = errors.Join(err, m.backAll())
		}
	}()
	var next *exchange
	for i, s := range list {
		x := next
		if next = nil; x == nil {
			x = m.exchange(ctx, s, v, arm)
		}
		err = x.ready()
		// What the next step replaces was sent and added before anybody has what goes there, so its sender may begin.
		// What is added arrives where this step's bytes do, and waits.
		if err == nil && i+1 < len(list) && !list[i+1].Add {
			next = m.exchange(ctx, list[i+1], v, arm)
			err = next.ready()
			if x.in > m.cfg.Eager && next.step.Send == s.Recv {
				x.next = next
			}
		}
		if err == nil {
			err = x.run()
		}
		if err = errors.Join(err, x.put()); err != nil {
			if next != nil {
				err = errors.Join(err, next.put())
			}
			return err
		}
		v.fill(s)
	}
	return m.returned(ctx)
}

// vector is what is added up: in until out has something.
type vector struct {
	in, out rdma.Buffer
	has     []steps.Span // of out
}

func (v *vector) of(s steps.Span) rdma.Buffer {
	for _, h := range v.has {
		if h.Off <= s.Off && s.Off+s.N <= h.Off+h.N {
			return v.out
		}
	}
	return v.in
}

func (v *vector) fill(s steps.Step) {
	if s.RecvFrom >= 0 && s.Recv.N > 0 {
		v.has = append(v.has, s.Recv)
	}
}

// add puts a + b into dst, which may be one of them. All have the length of dst or more.
func add(dst, a, b []float32) {
	n := addVectors(dst, a, b)
	dst, a, b = dst[n:], a[n:len(dst)], b[n:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}
