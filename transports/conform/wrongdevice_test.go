package conform_test

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// bend is one way in which a provider can be wrong above its data path. A hook changes what goes into
// a call or comes out of it, or takes its place; inner is the reference device's own object.
type bend struct {
	caps     func(c *rdma.Caps, calls int)
	newQP    func(cfg *rdma.QPConfig)
	regMR    func(access *rdma.Access)
	regBuf   func(buf *rdma.Buffer)
	freePD   func(err error) error
	close    func(err error) error
	event    func(ev rdma.Event, some bool) (rdma.Event, bool)
	listen   func(addr string) string
	addr     func(s string) string
	reject   func(data []byte) []byte
	accept   func(ctx context.Context) context.Context
	connect  func(p *rdma.ConnParam)
	result   func(p *rdma.ConnParam, err error) error // of connect
	asked    func(p *rdma.ConnParam)
	answer   func(err error) error // of accept and reject
	taken    func(err error) error // of the listener's accept
	made     func(inner rdma.QP)
	send     func(inner rdma.QP, wrs []rdma.SendWR) (int, error)
	recv     func(inner rdma.QP, wrs []rdma.RecvWR) (int, error)
	srqRecv  func(inner rdma.SRQ, wrs []rdma.RecvWR) (int, error)
	srqArm   func(limit int) int
	pingPong func(v *rdma.PingPongStep)
	modify   func(inner rdma.RawQP, to rdma.QPState, given rdma.QPAttrs) error
	drain    func(inner rdma.QP) error
	fail     func(inner rdma.QP) error
	bye      func(inner rdma.QP, ctx context.Context) error
	closeQP  func(inner rdma.QP) error
	state    func(s rdma.QPState) rdma.QPState
	wc       func(wc *rdma.WC)
	poll     func(inner rdma.CQ, dst []rdma.WC) (int, error)
	arm      func(solicited bool) bool
	wait     func(inner rdma.CQ, ctx context.Context) error
	closeCQ  func(err error) error
	closeMR  func(inner rdma.MR) error
	rkey     func(key uint32) uint32
	mrLen    func(n uint64) uint64
	kill     func(b *memdev.Device)
}

func same[T any](v T) T { return v }
func leave[T any](*T)   {}

func straight() *bend {
	return &bend{
		caps:  func(*rdma.Caps, int) {},
		newQP: leave[rdma.QPConfig], regMR: leave[rdma.Access], regBuf: leave[rdma.Buffer], wc: leave[rdma.WC],
		connect: leave[rdma.ConnParam], asked: leave[rdma.ConnParam], pingPong: leave[rdma.PingPongStep],
		freePD: same[error], close: same[error], answer: same[error], taken: same[error], closeCQ: same[error],
		listen: same[string], addr: same[string], reject: same[[]byte], accept: same[context.Context],
		srqArm: same[int], state: same[rdma.QPState], arm: same[bool], rkey: same[uint32], mrLen: same[uint64],
		event:  func(ev rdma.Event, some bool) (rdma.Event, bool) { return ev, some },
		result: func(_ *rdma.ConnParam, err error) error { return err },
		made:   func(rdma.QP) {},
		send:   rdma.QP.PostSend, recv: rdma.QP.PostRecv, srqRecv: rdma.SRQ.PostRecv, modify: rdma.RawQP.Modify,
		drain: rdma.QP.Drain, fail: rdma.QP.Fail, bye: rdma.QP.Disconnect, closeQP: rdma.QP.Close,
		poll: rdma.CQ.Poll, wait: rdma.CQ.Wait, closeMR: rdma.MR.Close, kill: (*memdev.Device).Kill,
	}
}

// bentMem is the reference device behind a bend. cfg is its own configuration.
func bentMem(change func(b *bend), cfg memdev.Config) *conform.Harness {
	open, b := memPair(cfg), straight()
	change(b)
	return &conform.Harness{Name: "bent", Addr6: "b:0", // which is none: the reference device has names
		Open: func(ctx context.Context) (rdma.Device, rdma.Device, string, error) {
			x, y, addr, err := open(ctx)
			return &bentDevice{Device: x, b: b}, &bentDevice{Device: y, b: b}, addr, err
		},
		Kill: func(dev rdma.Device) error {
			b.kill(dev.(*bentDevice).Device.(*memdev.Device))
			return nil
		}}
}

type bentDevice struct {
	rdma.Device
	b     *bend
	calls atomic.Int32
}

func (d *bentDevice) Caps() rdma.Caps {
	c := d.Device.Caps()
	d.b.caps(&c, int(d.calls.Add(1)))
	return c
}

func (d *bentDevice) FreePD(pd rdma.PD) error { return d.b.freePD(d.Device.FreePD(pd)) }
func (d *bentDevice) Close() error            { return d.b.close(d.Device.Close()) }

func (d *bentDevice) NewCQ(depth int) (rdma.CQ, error) {
	cq, err := d.Device.NewCQ(depth)
	return &bentCQ{cq, d.b}, err
}

func (d *bentDevice) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	s, err := d.Device.NewSRQ(cfg)
	return &bentSRQ{s, d.b}, err
}

func (d *bentDevice) inner(cfg *rdma.QPConfig) {
	if c, ok := cfg.SendCQ.(*bentCQ); ok {
		cfg.SendCQ = c.CQ
	}
	if c, ok := cfg.RecvCQ.(*bentCQ); ok {
		cfg.RecvCQ = c.CQ
	}
	if s, ok := cfg.SRQ.(*bentSRQ); ok {
		cfg.SRQ = s.SRQ
	}
}

func (d *bentDevice) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	d.inner(&cfg)
	d.b.newQP(&cfg)
	qp, err := d.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	d.b.made(qp)
	return &bentQP{qp, d.b}, nil
}

func (d *bentDevice) NewRawQP(cfg rdma.QPConfig) (rdma.RawQP, error) {
	d.inner(&cfg)
	qp, err := d.Device.(rdma.RawQPs).NewRawQP(cfg)
	return &bentRaw{bentQP{qp, d.b}, qp}, err
}

type bentRaw struct {
	bentQP
	raw rdma.RawQP
}

func (q *bentRaw) Modify(to rdma.QPState, given rdma.QPAttrs) error {
	return q.b.modify(q.raw, to, given)
}

func (d *bentDevice) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	d.b.regMR(&access)
	d.b.regBuf(&buf)
	mr, err := d.Device.RegMR(pd, buf, access)
	return &bentMR{mr, d.b}, err
}

func (d *bentDevice) Event() (rdma.Event, bool) { return d.b.event(d.Device.Event()) }

func (d *bentDevice) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := d.Device.Listen(ctx, d.b.listen(addr), backlog)
	return &bentListener{l, d.b}, err
}

type bentListener struct {
	rdma.Listener
	b *bend
}

func (l *bentListener) Addr() string { return l.b.addr(l.Listener.Addr()) }

func (l *bentListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	r, err := l.Listener.Accept(l.b.accept(ctx))
	if err != nil {
		return nil, l.b.taken(err)
	}
	return &bentRequest{r, l.b}, nil
}

type bentRequest struct {
	rdma.ConnRequest
	b *bend
}

func (r *bentRequest) Param() rdma.ConnParam {
	p := r.ConnRequest.Param()
	r.b.asked(&p)
	return p
}

func (r *bentRequest) Accept(ctx context.Context, qp rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	res, err := r.ConnRequest.Accept(r.b.accept(ctx), qp.(*bentQP).QP, p)
	return res, r.b.answer(err)
}

func (r *bentRequest) Reject(ctx context.Context, data []byte) error {
	return r.b.answer(r.ConnRequest.Reject(ctx, r.b.reject(data)))
}

type bentQP struct {
	rdma.QP
	b *bend
}

func (q *bentQP) Connect(ctx context.Context, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	q.b.connect(&p)
	res, err := q.QP.Connect(ctx, addr, p)
	err = q.b.result(&res, err)
	return res, err
}

func (q *bentQP) PingPong(vs []rdma.PingPongStep, dst []rdma.WC) (int, error) {
	for i := range vs {
		q.b.pingPong(&vs[i])
	}
	return q.QP.PingPong(vs, dst)
}

func (q *bentQP) PostSend(wrs []rdma.SendWR) (int, error) { return q.b.send(q.QP, wrs) }
func (q *bentQP) PostRecv(wrs []rdma.RecvWR) (int, error) { return q.b.recv(q.QP, wrs) }
func (q *bentQP) Drain() error                            { return q.b.drain(q.QP) }
func (q *bentQP) Fail() error                             { return q.b.fail(q.QP) }
func (q *bentQP) Close() error                            { return q.b.closeQP(q.QP) }
func (q *bentQP) Disconnect(ctx context.Context) error    { return q.b.bye(q.QP, ctx) }
func (q *bentQP) State() rdma.QPState                     { return q.b.state(q.QP.State()) }

type bentCQ struct {
	rdma.CQ
	b *bend
}

func (c *bentCQ) Poll(dst []rdma.WC) (n int, err error) {
	n, err = c.b.poll(c.CQ, dst)
	for i := range dst[:min(n, len(dst))] {
		c.b.wc(&dst[i])
	}
	return n, err
}

func (c *bentCQ) Arm(solicited bool) error       { return c.CQ.Arm(c.b.arm(solicited)) }
func (c *bentCQ) Wait(ctx context.Context) error { return c.b.wait(c.CQ, ctx) }
func (c *bentCQ) Close() error                   { return c.b.closeCQ(c.CQ.Close()) }

type bentSRQ struct {
	rdma.SRQ
	b *bend
}

func (s *bentSRQ) PostRecv(wrs []rdma.RecvWR) (int, error) { return s.b.srqRecv(s.SRQ, wrs) }
func (s *bentSRQ) Arm(limit int) error                     { return s.SRQ.Arm(s.b.srqArm(limit)) }
func (s *bentSRQ) Close() error                            { return s.b.closeCQ(s.SRQ.Close()) }

type bentMR struct {
	rdma.MR
	b *bend
}

func (m *bentMR) RKey() uint32    { return m.b.rkey(m.MR.RKey()) }
func (m *bentMR) Len() uint64     { return m.b.mrLen(m.MR.Len()) }
func (m *bentMR) Close() error    { return m.b.closeMR(m.MR) }
func fourPriorities(c *rdma.Caps) { c.Priorities = 4 }

func prioritized(post func(inner rdma.QP, wrs []rdma.SendWR) (int, error)) func(*bend) {
	return func(b *bend) {
		onCaps(fourPriorities)(b)
		b.send = post
	}
}

func backwards(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	own := slices.Clone(wrs)
	slices.Reverse(own)
	return inner.PostSend(own)
}

func forgetQuiet(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	for i := range wrs {
		if wrs[i].Op == rdma.OpWrite && wrs[i].Flags&rdma.Signaled == 0 {
			continue
		}
		if _, err := inner.PostSend(wrs[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// onwards executes what follows a refused request.
func onwards[Q, W any](post func(Q, []W) (int, error)) func(Q, []W) (int, error) {
	return func(inner Q, wrs []W) (int, error) {
		n, err := post(inner, wrs)
		if err != nil && n+1 < len(wrs) {
			if _, err := post(inner, wrs[n+1:]); err != nil {
				return n, err
			}
		}
		return n, err
	}
}

// invalidateFirst moves local invalidations to the front of a list. They end
// unsignalled there, so that only the effect on the others can show.
func invalidateFirst(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	own := slices.Clone(wrs)
	slices.SortStableFunc(own, func(a, b rdma.SendWR) int {
		return b2i(a.Op != rdma.OpLocalInv) - b2i(b.Op != rdma.OpLocalInv)
	})
	return inner.PostSend(own)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// reverseReads executes the operations of a list backwards under their own IDs.
func reverseReads(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	own := slices.Clone(wrs)
	if len(own) > 1 && own[0].Op != rdma.OpSend {
		n := len(own)
		if own[n-1].Op == rdma.OpSend {
			n--
		}
		for i := range n {
			id, flags := own[i].ID, own[i].Flags
			own[i] = wrs[n-1-i]
			own[i].ID, own[i].Flags = id, flags
		}
	}
	return inner.PostSend(own)
}

func lastByteFirst(inner rdma.QP, wrs []rdma.SendWR) (int, error) {
	w := wrs[0]
	if w.Op != rdma.OpWrite || w.Len() < 2 {
		return inner.PostSend(wrs)
	}
	last, n := w, w.SGE[0].Len
	last.Flags = 0
	last.RemoteAddr += uint64(n - 1)
	last.SGE[0].Addr += uint64(n - 1)
	last.SGE[0].Len = 1
	if _, err := inner.PostSend([]rdma.SendWR{last}); err != nil {
		return 0, err
	}
	time.AfterFunc(time.Millisecond, func() { _, _ = inner.PostSend([]rdma.SendWR{w}) })
	return 1, nil
}
