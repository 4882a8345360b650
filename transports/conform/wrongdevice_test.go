package conform_test

import (
	"context"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// bend is one way in which a provider can be wrong above its data path. A nil
// hook leaves the call alone; inner is the reference device's own object.
type bend struct {
	caps     func(c *rdma.Caps, calls int)
	newCQ    func(depth int) int
	newQP    func(cfg *rdma.QPConfig)
	newSRQ   func(cfg *rdma.SRQConfig)
	regMR    func(access *rdma.Access)
	regBuf   func(buf *rdma.Buffer)
	freePD   func(err error) error
	close    func(err error) error
	event    func(ev rdma.Event, some bool) (rdma.Event, bool)
	listen   func(addr *string)
	addr     func(s string) string
	reject   func(data []byte) []byte
	accept   func(ctx *context.Context, p *rdma.ConnParam)
	connect  func(ctx *context.Context, p *rdma.ConnParam)
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

// bentMem is the reference device behind a bend. cfg is its own configuration.
func bentMem(b *bend, cfg memdev.Config) *conform.Harness {
	open := memPair(cfg)
	return &conform.Harness{Name: "bent", Addr6: "b:0", // which is none: the reference device has names
		Open: func(ctx context.Context) (rdma.Device, rdma.Device, string, error) {
			x, y, addr, err := open(ctx)
			return &bentDevice{Device: x, b: b}, &bentDevice{Device: y, b: b}, addr, err
		},
		Kill: func(dev rdma.Device) error {
			inner := dev.(*bentDevice).Device.(*memdev.Device)
			if b.kill != nil {
				b.kill(inner)
			} else {
				inner.Kill()
			}
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
	if d.b.caps != nil {
		d.b.caps(&c, int(d.calls.Add(1)))
	}
	return c
}

func (d *bentDevice) FreePD(pd rdma.PD) error { return through(d.b.freePD, d.Device.FreePD(pd)) }
func (d *bentDevice) Close() error            { return through(d.b.close, d.Device.Close()) }

func through(hook func(error) error, err error) error {
	if hook != nil {
		return hook(err)
	}
	return err
}

func (d *bentDevice) NewCQ(depth int) (rdma.CQ, error) {
	if d.b.newCQ != nil {
		depth = d.b.newCQ(depth)
	}
	cq, err := d.Device.NewCQ(depth)
	if err != nil {
		return nil, err
	}
	return &bentCQ{cq, d.b}, nil
}

func (d *bentDevice) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	if d.b.newSRQ != nil {
		d.b.newSRQ(&cfg)
	}
	s, err := d.Device.NewSRQ(cfg)
	if err != nil {
		return nil, err
	}
	return &bentSRQ{s, d.b}, nil
}

// inner takes the bends off what a QP is made with.
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
	if d.b.newQP != nil {
		d.b.newQP(&cfg)
	}
	qp, err := d.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	if d.b.made != nil {
		d.b.made(qp)
	}
	return &bentQP{qp, d.b}, nil
}

func (d *bentDevice) NewRawQP(cfg rdma.QPConfig) (rdma.RawQP, error) {
	d.inner(&cfg)
	qp, err := d.Device.(rdma.RawQPs).NewRawQP(cfg)
	if err != nil {
		return nil, err
	}
	return &bentRaw{bentQP{qp, d.b}, qp}, nil
}

type bentRaw struct {
	bentQP
	raw rdma.RawQP
}

func (q *bentRaw) Modify(to rdma.QPState, given rdma.QPAttrs) error {
	if q.b.modify != nil {
		return q.b.modify(q.raw, to, given)
	}
	return q.raw.Modify(to, given)
}

func (d *bentDevice) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	if d.b.regMR != nil {
		d.b.regMR(&access)
	}
	if d.b.regBuf != nil {
		d.b.regBuf(&buf)
	}
	mr, err := d.Device.RegMR(pd, buf, access)
	if err != nil {
		return nil, err
	}
	return &bentMR{mr, d.b}, nil
}

func (d *bentDevice) Event() (rdma.Event, bool) {
	ev, some := d.Device.Event()
	if d.b.event != nil {
		return d.b.event(ev, some)
	}
	return ev, some
}

func (d *bentDevice) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	if d.b.listen != nil {
		d.b.listen(&addr)
	}
	l, err := d.Device.Listen(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	return &bentListener{l, d.b}, nil
}

type bentListener struct {
	rdma.Listener
	b *bend
}

func (l *bentListener) Addr() string {
	if l.b.addr != nil {
		return l.b.addr(l.Listener.Addr())
	}
	return l.Listener.Addr()
}

func (l *bentListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	if l.b.accept != nil {
		l.b.accept(&ctx, nil)
	}
	r, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, through(l.b.taken, err)
	}
	return &bentRequest{r, l.b}, nil
}

type bentRequest struct {
	rdma.ConnRequest
	b *bend
}

func (r *bentRequest) Param() rdma.ConnParam {
	p := r.ConnRequest.Param()
	if r.b.asked != nil {
		r.b.asked(&p)
	}
	return p
}

func (r *bentRequest) Accept(ctx context.Context, qp rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	if r.b.accept != nil {
		r.b.accept(&ctx, &p)
	}
	res, err := r.ConnRequest.Accept(ctx, qp.(*bentQP).QP, p)
	return res, through(r.b.answer, err)
}

func (r *bentRequest) Reject(ctx context.Context, data []byte) error {
	if r.b.reject != nil {
		data = r.b.reject(data)
	}
	return through(r.b.answer, r.ConnRequest.Reject(ctx, data))
}

type bentQP struct {
	rdma.QP
	b *bend
}

func (q *bentQP) Connect(ctx context.Context, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	if q.b.connect != nil {
		q.b.connect(&ctx, &p)
	}
	res, err := q.QP.Connect(ctx, addr, p)
	if q.b.result != nil {
		err = q.b.result(&res, err)
	}
	return res, err
}

func (q *bentQP) PostSend(wrs []rdma.SendWR) (int, error) {
	if q.b.send != nil {
		return q.b.send(q.QP, wrs)
	}
	return q.QP.PostSend(wrs)
}

func (q *bentQP) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if q.b.recv != nil {
		return q.b.recv(q.QP, wrs)
	}
	return q.QP.PostRecv(wrs)
}

func (q *bentQP) PingPong(vs []rdma.PingPongStep, dst []rdma.WC) (int, error) {
	for i := range vs {
		if q.b.pingPong != nil {
			q.b.pingPong(&vs[i])
		}
	}
	return q.QP.PingPong(vs, dst)
}

func (q *bentQP) Drain() error { return inner(q.b.drain, q.QP, q.QP.Drain) }
func (q *bentQP) Fail() error  { return inner(q.b.fail, q.QP, q.QP.Fail) }
func (q *bentQP) Close() error { return inner(q.b.closeQP, q.QP, q.QP.Close) }

func inner(hook func(rdma.QP) error, qp rdma.QP, plain func() error) error {
	if hook != nil {
		return hook(qp)
	}
	return plain()
}

func (q *bentQP) Disconnect(ctx context.Context) error {
	if q.b.bye != nil {
		return q.b.bye(q.QP, ctx)
	}
	return q.QP.Disconnect(ctx)
}

func (q *bentQP) State() rdma.QPState {
	if q.b.state != nil {
		return q.b.state(q.QP.State())
	}
	return q.QP.State()
}

type bentCQ struct {
	rdma.CQ
	b *bend
}

func (c *bentCQ) Poll(dst []rdma.WC) (n int, err error) {
	if c.b.poll != nil {
		n, err = c.b.poll(c.CQ, dst)
	} else {
		n, err = c.CQ.Poll(dst)
	}
	for i := 0; i < n && c.b.wc != nil; i++ {
		c.b.wc(&dst[i])
	}
	return n, err
}

func (c *bentCQ) Arm(solicited bool) error {
	if c.b.arm != nil {
		solicited = c.b.arm(solicited)
	}
	return c.CQ.Arm(solicited)
}

func (c *bentCQ) Wait(ctx context.Context) error {
	if c.b.wait != nil {
		return c.b.wait(c.CQ, ctx)
	}
	return c.CQ.Wait(ctx)
}

func (c *bentCQ) Close() error { return through(c.b.closeCQ, c.CQ.Close()) }

type bentSRQ struct {
	rdma.SRQ
	b *bend
}

func (s *bentSRQ) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if s.b.srqRecv != nil {
		return s.b.srqRecv(s.SRQ, wrs)
	}
	return s.SRQ.PostRecv(wrs)
}

func (s *bentSRQ) Arm(limit int) error {
	if s.b.srqArm != nil {
		limit = s.b.srqArm(limit)
	}
	return s.SRQ.Arm(limit)
}

func (s *bentSRQ) Close() error { return through(s.b.closeCQ, s.SRQ.Close()) }

type bentMR struct {
	rdma.MR
	b *bend
}

func (m *bentMR) RKey() uint32 {
	if m.b.rkey != nil {
		return m.b.rkey(m.MR.RKey())
	}
	return m.MR.RKey()
}

func (m *bentMR) Len() uint64 {
	if m.b.mrLen != nil {
		return m.b.mrLen(m.MR.Len())
	}
	return m.MR.Len()
}

func (m *bentMR) Close() error {
	if m.b.closeMR != nil {
		return m.b.closeMR(m.MR)
	}
	return m.MR.Close()
}
