package mesh

import (
	"context"
	"errors"
	"fmt"

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

	// next is the step behind this one where it sends what this one receives, while the caches have it.
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

func (x *exchange) ready() error {
	if x.in <= x.m.cfg.Eager || x.from != nil {
		return nil
	}
	return x.clear(x.m.peers[x.step.RecvFrom], x.in)
}

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

// clear tells the sender where its bytes go: aside, or into the vector where that has nothing yet and registrations are
// kept, which leaves the caches more room.
func (x *exchange) clear(p *peer, n int) error {
	x.from, x.left, x.inlen, x.at = p, n, n, x.step.Recv.Off*elem
	to, key := x.m.temp, uint32(0)
	if x.step.Add && (!x.arm.Kept() || x.v.of(x.step.Recv).Addr() == x.v.out.Addr()) {
		if n > x.m.temp.Len() {
			return fmt.Errorf("%d bytes to be added, of %d reserved: %w", n, x.m.temp.Len(), rdma.ErrInvalid)
		}
		key = x.m.tempMR.RKey()
	} else {
		b, err := x.v.out.Slice(x.at, n)
		if err != nil {
			return err
		}
		h, err := x.hold(b)
		if err != nil {
			return err
		}
		to, key = b, h.RKey()
	}
	x.dst = to.Bytes()
	h := head{length: uint64(n), addr: to.Addr(), key: key}
	return p.send(x.m.request(p, kindClear, h, nil, id(p.rank, whatQuiet, 0)))
}

// prepare registers what is to be sent while the receiver gets ready.
func (x *exchange) prepare(from rdma.Buffer) (err error) {
	if x.to != nil || x.out <= x.m.cfg.Eager {
		return nil
	}
	if x.src, err = from.Slice(x.step.Send.Off*elem, x.out); err != nil {
		return err
	}
	h, err := x.hold(x.src)
	if err != nil {
		return err
	}
	p := x.m.peers[x.step.SendTo]
	p.posted++
	x.to, x.key, x.done = p, h.LKey(), p.posted
	return nil
}

func (x *exchange) turn() (bool, error) {
	if err := x.write(); err != nil {
		return false, err
	}
	for x.left > 0 && len(x.from.there) > 0 && x.mayAdd() {
		h := x.from.there[0]
		x.from.there = x.from.there[:copy(x.from.there, x.from.there[1:])]
		if h.length == 0 || h.length > uint64(x.left) || h.length%elem != 0 {
			return false, fmt.Errorf("rank %d wrote a segment of %d bytes, %d are due: %w", x.from.rank, h.length,
				x.left, rdma.ErrProtocol)
		}
		n, off := int(h.length), x.inlen-x.left
		if x.step.Add {
			add(Floats(x.v.out.Bytes()[x.at+off:][:n]), Floats(x.v.of(x.step.Recv).Bytes()[x.at+off:][:n]),
				Floats(x.dst[off:][:n]))
		}
		x.left -= n
		if err := x.pass(); err != nil {
			return false, err
		}
	}
	if err := x.pass(); err != nil {
		return false, err
	}
	return x.left == 0 && (x.to == nil || x.to.done >= x.done), nil
}

func (x *exchange) overlaps() bool {
	s := &x.step
	return s.Add && s.SendTo >= 0 && s.RecvFrom >= 0 && s.Send.Off < s.Recv.Off+s.Recv.N &&
		s.Recv.Off < s.Send.Off+s.Send.N && x.v.of(s.Send).Addr() == x.v.out.Addr()
}

// mayAdd: nothing is added to bytes that are still being sent.
func (x *exchange) mayAdd() bool { return x.to == nil || x.to.done >= x.done || !x.overlaps() }

// pass lets the next step write. A peer's clears come in order: turn has this step look for its own first.
func (x *exchange) pass() error {
	if x.next == nil {
		return nil
	}
	x.next.limit = x.inlen - x.left
	return x.next.write()
}

// write posts what may be written at once: a stack that knows how much follows can choose when to send and receive.
func (x *exchange) write() error {
	p, m, n := x.to, x.m, x.src.Len()
	if p == nil || x.wrote == n || x.where == nil && len(p.clears) == 0 {
		return nil
	}
	if x.where == nil {
		h := p.clears[0]
		p.clears = p.clears[:copy(p.clears, p.clears[1:])]
		if h.length != uint64(n) {
			return fmt.Errorf("rank %d takes %d bytes, %d are due: %w", p.rank, h.length, n, rdma.ErrProtocol)
		}
		x.where = &h
	}
	most := m.cfg.segments()
	seg := (max(m.cfg.Segment, (n+most-1)/most) + elem - 1) / elem * elem
	wrs := m.wrs[:0]
	for k := min(seg, n-x.wrote); k > 0 && x.wrote+k <= x.limit; k = min(seg, n-x.wrote) {
		what := whatQuiet
		if x.wrote+k == n {
			what = whatLast
		}
		wr := rdma.SendWR{ID: id(p.rank, whatQuiet, 0), Op: rdma.OpWrite, RemoteAddr: x.where.addr + uint64(x.wrote),
			RKey: x.where.key, NumSGE: 1}
		wr.SGE[0] = rdma.SGE{Addr: x.src.Addr() + uint64(x.wrote), Len: uint32(k), LKey: x.key}
		wrs = append(wrs, wr, m.request(p, kindThere, head{length: uint64(k)}, nil, id(p.rank, what, 0)))
		x.wrote += k
	}
	if len(wrs) == 0 {
		return nil
	}
	if _, err := p.qp.PostSend(wrs); err != nil {
		return fmt.Errorf("write to rank %d: %w", p.rank, err)
	}
	return nil
}
