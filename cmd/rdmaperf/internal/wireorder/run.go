package wireorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Request is one of the two: B, which is posted first, and G, which is more urgent.
type Request struct {
	Name     string
	Priority uint8
}

// Requests are both, in the order of their posts.
var Requests = [2]Request{{"B", 0}, {"G", 1}}

// Part is what went to the device at once: bytes [Off, Off+Len) of a request.
type Part struct {
	Name     string
	Off, Len int
}

// Order is what was seen.
type Order struct {
	Wire        []Part
	Completions []string // names, in order
}

// Names are those of the parts on the wire: "B G G B".
func (o *Order) Names() string {
	names := make([]string, len(o.Wire))
	for i, p := range o.Wire {
		names[i] = p.Name
	}
	return strings.Join(names, " ")
}

// Run writes both requests, of size bytes each, over a connection of dev to itself, of
// which tap is below. It compares what arrived. Its waits end with ctx.
func Run(ctx context.Context, dev rdma.Device, tap *Tap, size int) (o *Order, err error) {
	buf, err := rdma.Alloc(4 * size) // two sources, two destinations
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	for i, b := range []byte{'B', 'G'} {
		part := buf.Bytes()[i*size : (i+1)*size]
		for k := range part {
			part[k] = b ^ byte(k)
		}
	}
	pd, err := dev.AllocPD()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dev.FreePD(pd)) }()
	mr, err := dev.RegMR(pd, buf, rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteRead)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mr.Close()) }()
	near, far, err := connect(ctx, dev, pd)
	defer func() { err = errors.Join(err, near.close(), far.close()) }()
	if err != nil {
		return nil, err
	}
	return exchange(ctx, near, tap, mr, buf, size)
}

// end is one end of the connection.
type end struct {
	cq rdma.CQ
	qp rdma.QP
}

func (e *end) close() (err error) {
	if e.qp != nil {
		err = e.qp.Close()
	}
	if e.cq != nil {
		err = errors.Join(err, e.cq.Close())
	}
	return err
}

// connect joins two QPs of dev. What it made is in the ends also beside an error.
func connect(ctx context.Context, dev rdma.Device, pd rdma.PD) (near, far *end, err error) {
	near, far = new(end), new(end)
	for _, e := range []*end{near, far} {
		if e.cq, err = dev.NewCQ(64); err != nil {
			return near, far, err
		}
		if e.qp, err = dev.NewQP(rdma.QPConfig{PD: pd, SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 16,
			RecvDepth: 4}); err != nil {
			return near, far, err
		}
	}
	l, err := dev.Listen(ctx, "127.0.0.1:0", 1)
	if err != nil {
		return near, far, err
	}
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			_, err = r.Accept(ctx, far.qp, rdma.ConnParam{IRD: 4, ORD: 4})
		}
		accepted <- err
	}()
	_, err = near.qp.Connect(ctx, l.Addr(), rdma.ConnParam{IRD: 4, ORD: 4})
	if err != nil {
		l.Close() // and with it the wait for a request
	}
	return near, far, errors.Join(err, <-accepted)
}

// exchange posts both requests and takes their completions.
func exchange(ctx context.Context, near *end, tap *Tap, mr rdma.MR, buf rdma.Buffer, size int) (*Order, error) {
	target := mr.Addr() + 2*uint64(size)
	for i, r := range Requests {
		w := rdma.SendWR{ID: uint64(i), Op: rdma.OpWrite, Flags: rdma.Signaled, Priority: r.Priority, NumSGE: 1,
			RKey: mr.RKey(), RemoteAddr: target + uint64(i*size)}
		w.SGE[0] = rdma.SGE{Addr: mr.Addr() + uint64(i*size), Len: uint32(size), LKey: mr.LKey()}
		if _, err := near.qp.PostSend([]rdma.SendWR{w}); err != nil {
			return nil, fmt.Errorf("post %s: %w", r.Name, err)
		}
	}
	o := &Order{}
	var wcs [4]rdma.WC
	for len(o.Completions) < len(Requests) {
		n, err := near.cq.Poll(wcs[:])
		if err != nil {
			return nil, err
		}
		for _, wc := range wcs[:n] {
			if wc.Status != rdma.StatusSuccess || wc.ID >= uint64(len(Requests)) {
				return nil, fmt.Errorf("completion %d: %w", wc.ID, &rdma.StatusError{WC: wc})
			}
			o.Completions = append(o.Completions, Requests[wc.ID].Name)
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%d of %d completions: %w", len(o.Completions), len(Requests), err)
		}
		runtime.Gosched()
	}
	for _, w := range tap.Writes() {
		if at := w.RemoteAddr - target; at < uint64(2*size) {
			o.Wire = append(o.Wire, Part{Requests[at/uint64(size)].Name, int(at % uint64(size)), int(w.Len)})
		}
	}
	return o, arrived(ctx, buf, size)
}

// arrived waits until both destinations hold what was written: a completion may be local.
func arrived(ctx context.Context, buf rdma.Buffer, size int) error {
	b := buf.Bytes()
	for !bytes.Equal(b[:2*size], b[2*size:4*size]) {
		if ctx.Err() != nil {
			return errors.New("what arrived differs from what was sent")
		}
		runtime.Gosched()
	}
	return nil
}
