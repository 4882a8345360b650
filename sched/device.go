package sched

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// device is a scheduling tier over another device. It implements rdma.Device.
type device struct {
	below  rdma.Device
	cfg    Config
	disc   discipline
	caps   rdma.Caps
	sliced rdma.OpSet // what is cut
	local  bool       // completions below are local: marks are needed to know what the peer took
	ids    uint64     // where the IDs of our own work requests begin
	keep   keeper
	groups groups

	cutting bool    // sends are cut where the peer takes part
	keys    keyring // if so
	tally   tally
}

var _ rdma.Device = (*device)(nil)

// Wrap puts a tier over below, which its Close closes too. Fails with rdma.ErrInvalid for what cfg cannot be.
func Wrap(below rdma.Device, cfg Config) (rdma.Device, error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, err
	}
	if cfg.Policy == FIFO {
		return newFIFO(below, cfg), nil
	}
	caps, err := tierCaps(below.Caps(), &cfg)
	if err != nil {
		return nil, err
	}
	// Failed completions are told apart by their ID alone (ibv_poll_cq(3)), so ours begin where no user's will be.
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, &rdma.OpError{Op: "open sched", Err: err}
	}
	return &device{
		below: below, cfg: cfg, disc: disciplines[cfg.Policy], caps: caps,
		sliced: cfg.slices(),
		local:  caps.Completion == rdma.CompletionLocal,

		cutting: cfg.cutsSends(),
		ids:     binary.NativeEndian.Uint64(seed[:]),
	}, nil
}

// tierCaps are a device's limits, less what the tier's own requests need.
func tierCaps(c rdma.Caps, cfg *Config) (rdma.Caps, error) {
	if cfg.cutsSends() {
		need := rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite), Features: rdma.FeatInline,
			Inline: max(descriptorLen, creditsLen)}
		if err := c.Missing(need); err != nil {
			return c, &rdma.OpError{Op: "open sched", Object: "sends=" + string(cfg.Sends), Err: err}
		}
		if c.MaxPrivate -= offerLen; c.MaxPrivate < 0 {
			return c, &rdma.OpError{Op: "open sched", Object: "sends=" + string(cfg.Sends),
				Err: &rdma.MissingError{Gaps: []string{fmt.Sprintf("%d bytes of private data", offerLen)}}}
		}
	}
	if c.MaxQPWR <= hiddenSends || c.MaxCQE <= 2*cqSpare {
		return c, &rdma.OpError{Op: "open sched", Object: fmt.Sprintf("queues of %d work requests and %d completions",
			c.MaxQPWR, c.MaxCQE), Err: rdma.ErrNotSupported}
	}
	c.MaxQPWR -= hiddenSends
	c.MaxCQE = (c.MaxCQE - cqSpare) / 2
	c.Priorities, c.OwnReads = Priorities, true
	c.Features &^= rdma.FeatPingPong // every post and every completion is looked at here
	return c, nil
}

func (d *device) Name() string { return d.cfg.name() + "+" + d.below.Name() }

func (d *device) Caps() rdma.Caps { return d.caps }

func (d *device) AllocPD() (rdma.PD, error) { return d.below.AllocPD() }

func (d *device) FreePD(pd rdma.PD) error { return d.below.FreePD(pd) }

func (d *device) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) { return d.below.NewSRQ(cfg) }

func (d *device) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	mr, err := d.below.RegMR(pd, buf, access)
	if err != nil || !d.cutting {
		return mr, err
	}
	return d.keys.add(pd, mr), nil
}

func (d *device) Event() (rdma.Event, bool) { return d.below.Event() }

// Close closes the device below and then the tier. rdma.ErrBusy while objects are open.
func (d *device) Close() error {
	if err := d.below.Close(); err != nil {
		return err
	}
	d.keep.stop()
	return nil
}

func (d *device) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := d.below.Listen(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	return &listener{l, d}, nil
}

type listener struct {
	rdma.Listener
	dev *device
}

func (l *listener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	r, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	p, o := met(r.Param())
	return &connRequest{r, l.dev, p, o}, nil
}

type connRequest struct {
	rdma.ConnRequest
	dev   *device
	asks  rdma.ConnParam
	offer *offer // of a tier that cuts sends, or nil
}

// Param is what the peer asks, without what its tier says to this one.
func (r *connRequest) Param() rdma.ConnParam {
	p := r.asks
	p.PrivateData = slices.Clone(p.PrivateData)
	return p
}

func (r *connRequest) Reject(ctx context.Context, private []byte) error {
	if len(private) > r.dev.caps.MaxPrivate {
		return &rdma.OpError{Op: "reject", Object: r.RemoteAddr(),
			Err: fmt.Errorf("%d bytes of private data, limit %d: %w", len(private), r.dev.caps.MaxPrivate,
				rdma.ErrInvalid)}
	}
	return r.ConnRequest.Reject(ctx, private)
}

func (r *connRequest) Accept(ctx context.Context, x rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	q, ok := x.(*qp)
	if !ok || q.dev != r.dev {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: r.RemoteAddr(),
			Err: fmt.Errorf("no qp of this device: %w", rdma.ErrInvalid)}
	}
	p, offered, err := q.offered(p, r.offer != nil)
	if err != nil {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: r.RemoteAddr(), Err: err}
	}
	got, err := r.ConnRequest.Accept(ctx, q.below, p)
	if err != nil {
		return got, err
	}
	got, _ = met(got)
	q.negotiated(offered, r.offer)
	q.joined(got.ORD, r.RemoteAddr())
	return got, nil
}

// tally counts what became of long sends, for reports.
type tally struct {
	agreed atomic.Int64
	alone  atomic.Int64
	cut    atomic.Int64
	whole  atomic.Int64
}

// Tally reads what became of the long sends of a tier with [CutSends] or
// [CutOrRefuseSends] so far, by names for reports; nil for any other device.
//
//	send_peers        connections whose peer cuts sends as well
//	send_peers_alone  connections whose peer does not, or cannot on that connection
//	sends_cut         sends that went in slices
//	sends_whole       sends that went whole, for want of such a peer, of a place or of a long receive
func Tally(dev rdma.Device) map[string]int64 {
	d, ok := dev.(*device)
	if !ok || !d.cutting {
		return nil
	}
	t := &d.tally
	return map[string]int64{"send_peers": t.agreed.Load(), "send_peers_alone": t.alone.Load(),
		"sends_cut": t.cut.Load(), "sends_whole": t.whole.Load()}
}

func (d *device) Counts() []rdma.Counts {
	below := rdma.CountsOf(d.below)
	if own := Tally(d); own != nil {
		return append([]rdma.Counts{{Layer: "sched", Values: own}}, below...)
	}
	return below
}
