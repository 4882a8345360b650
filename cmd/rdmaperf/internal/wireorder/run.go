// Package wireorder shows in which order a tier puts the slices of two requests on the wire, as in the published
// example of sRDMA (APNet'23, doi 10.1145/3600061.3600082). It notes the posts to the device below the tier, which
// sends in that order (IBTA 10.8.3.1, RFC 5040 §5.5).
package wireorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
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

// Run writes both requests, of size bytes each, over a connection of dev to itself, of which tap is below, and compares
// what arrived. Its waits end with ctx.
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
	mr, err := dev.RegMR(0, buf, rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteRead)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mr.Close()) }()
	ends, err := pairs.OpenLoop(ctx, dev)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ends.Disconnect()) }()
	return exchange(ctx, ends.QPs[0][0], ends.CQs[0], tap, mr, buf, size)
}

func exchange(ctx context.Context, qp rdma.QP, cq rdma.CQ, tap *Tap, mr rdma.MR, buf rdma.Buffer,
	size int) (*Order, error) {
	target := mr.Addr() + 2*uint64(size)
	for i, r := range Requests {
		w := rdma.SendWR{ID: uint64(i), Op: rdma.OpWrite, Flags: rdma.Signaled, Priority: r.Priority, NumSGE: 1,
			RKey: mr.RKey(), RemoteAddr: target + uint64(i*size)}
		w.SGE[0] = rdma.SGE{Addr: mr.Addr() + uint64(i*size), Len: uint32(size), LKey: mr.LKey()}
		if _, err := qp.PostSend([]rdma.SendWR{w}); err != nil {
			return nil, fmt.Errorf("post %s: %w", r.Name, err)
		}
	}
	o := &Order{}
	var wcs [4]rdma.WC
	for len(o.Completions) < len(Requests) {
		n, err := cq.Poll(wcs[:])
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
	b := buf.Bytes() // a completion may be local: what was written is on its way
	for !bytes.Equal(b[:2*size], b[2*size:]) {
		if ctx.Err() != nil {
			return nil, errors.New("what arrived differs from what was sent")
		}
		runtime.Gosched()
	}
	return o, nil
}

// Tap is a device that notes the writes that are posted to it, and is safe for concurrent use.
type Tap struct {
	rdma.Device
	mu    sync.Mutex
	wires []Write
}

// Write is one write with bytes, as it was posted to the device.
type Write struct {
	RemoteAddr, Len uint64
}

// NewTap puts one over a device, which it owns.
func NewTap(below rdma.Device) *Tap { return &Tap{Device: below} }

// Writes are those noted so far.
func (t *Tap) Writes() []Write {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.wires)
}

func (t *Tap) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	q, err := t.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	return &tapQP{q, t}, nil
}

func (t *Tap) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := t.Device.Listen(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	return &tapListener{l}, nil
}

type tapQP struct {
	rdma.QP
	tap *Tap
}

func (q *tapQP) PostSend(wrs []rdma.SendWR) (int, error) {
	n, err := q.QP.PostSend(wrs)
	q.tap.mu.Lock()
	for i := range wrs[:n] {
		if w := &wrs[i]; w.Op == rdma.OpWrite && w.Len() > 0 {
			q.tap.wires = append(q.tap.wires, Write{w.RemoteAddr, w.Len()})
		}
	}
	q.tap.mu.Unlock()
	return n, err
}

type tapListener struct{ rdma.Listener }

func (l *tapListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	r, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return &tapRequest{r}, nil
}

type tapRequest struct{ rdma.ConnRequest }

// Accept hands the device below its own QP.
func (r *tapRequest) Accept(ctx context.Context, q rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	own, ok := q.(*tapQP)
	if !ok {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: r.RemoteAddr(),
			Err: fmt.Errorf("no qp of this device: %w", rdma.ErrInvalid)}
	}
	return r.ConnRequest.Accept(ctx, own.QP, p)
}
