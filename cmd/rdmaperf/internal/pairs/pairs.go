// Package pairs opens both ends of a stack in one process: two devices with connections, or two nodes of LITE. Their
// writes are streamed by [Writes]. Both ends share the processors. A pair owns what it opened; a Writes is one
// goroutine's.
package pairs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const connectTimeout = 20 * time.Second

// ListenAt is where two devices of this machine meet.
func ListenAt(dev rdma.Device) string {
	if c := dev.Caps(); c.Label == rdma.LabelMem || c.Clock != nil {
		return ":0"
	}
	if l, ok := dev.(interface{ ListenHost() string }); ok && l.ListenHost() != "" {
		return l.ListenHost() + ":0"
	}
	return "127.0.0.1:0"
}

// Below is the stack without its first layer.
func Below(spec string) string {
	layers := reports.Layers(spec)
	return strings.Join(layers[min(1, len(layers)-1):], "+")
}

// NoTier is the error of a stack that is not LITE with a node in the process of its user.
func NoTier(s transports.Stack, pt engine.Point) error {
	if _, ok := s.(*stack.Stack); !ok {
		return unfit("lite+iwarp", "%s is for LITE in its users' process", pt.Workload)
	}
	return nil
}

// NoThreads is NoTier for a workload of several threads.
func NoThreads(s transports.Stack, pt engine.Point) error {
	if err := NoTier(s, pt); err != nil {
		return err
	}
	if s.Caps().Clock != nil {
		return unfit("lite+iwarp", "several threads have no time together by the clock of a model")
	}
	return nil
}

// NoDevice is the error of a stack that is no RDMA device.
func NoDevice(s transports.Stack, pt engine.Point) error {
	if !direct.Is(s) {
		return unfit("iwarp", "%s needs a device, with no layer of sessions or calls over it", pt.Workload)
	}
	return nil
}

// NoPair is the error of a stack that is neither a device nor LITE with a node in the process of its user.
func NoPair(s transports.Stack, pt engine.Point) error {
	if NoTier(s, pt) == nil || direct.Is(s) {
		return nil
	}
	return unfit("iwarp,lite+iwarp", "%s needs a device, or LITE in its users' process", pt.Workload)
}

func unfit(instead, format string, a ...any) error {
	return &reports.ExitError{Code: reports.ExitNotRun, Err: fmt.Errorf(format, a...), Hint: "--transport " + instead}
}

// Clock is what times by the clock of a device, by the host's where it has none, and how results name it.
func Clock(of *rdma.Clock) (now func() int64, name string) {
	if of != nil {
		return of.Now, "the model's"
	}
	return func() int64 { return time.Now().UnixNano() }, "CLOCK_MONOTONIC"
}

// Nodes are two nodes, the first of which manages the cluster.
type Nodes struct {
	Devs  [2]rdma.Device
	Nodes [2]*lite.Node
}

// OpenNodes opens them over the layers below LITE. arena is what each registers beside its own needs, in bytes.
func OpenNodes(ctx context.Context, r *engine.Run, arena [2]int) (_ *Nodes, err error) {
	if err := NoTier(r.Stack, r.Point); err != nil {
		return nil, err
	}
	p := &Nodes{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	cfg := r.Stack.(*stack.Stack).NodeConfig()
	cfg.Timeout = time.Minute // large regions are zeroed at their node
	for i := range p.Nodes {
		if p.Devs[i], err = r.Open.Device(Below(strings.TrimSpace(r.Plan.Transport))); err != nil {
			return nil, err
		}
		if p.Devs[i].Caps().Clock != nil {
			// Signs of life by the host's clock would disturb what is timed by another.
			cfg.Beat, cfg.DeadAfter = time.Hour, 3*time.Hour
		}
		cfg.Arena, cfg.Listen, cfg.Manager = 64<<20+arena[i], ListenAt(p.Devs[i]), ""
		if i > 0 {
			cfg.Manager = p.Nodes[0].Addr()
		}
		if p.Nodes[i], err = lite.Open(ctx, p.Devs[i], cfg); err != nil {
			return nil, err
		}
	}
	return p, p.Nodes[0].Await(ctx, len(p.Nodes))
}

func (p *Nodes) Close() error {
	var errs []error
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		if p.Nodes[i] != nil {
			errs = append(errs, p.Nodes[i].Close())
		}
		if p.Devs[i] != nil {
			errs = append(errs, p.Devs[i].Close())
		}
	}
	return errors.Join(errs...)
}

// Devices are two devices with connections between them.
type Devices struct {
	Devs [2]rdma.Device
	CQs  [2]rdma.CQ
	QPs  [2][]rdma.QP
}

// OpenReceiving opens them with n connections, of which each has depth requests under way and that many receives posted
// at most. All of one end complete into one queue.
func OpenReceiving(ctx context.Context, r *engine.Run, n, depth, receives int) (_ *Devices, err error) {
	p := &Devices{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	for i := range p.Devs {
		if p.Devs[i], err = r.Open.Device(r.Plan.Transport); err != nil {
			return nil, err
		}
	}
	if err := p.join(ctx, ListenAt(p.Devs[1]), n, depth, receives); err != nil {
		return nil, err
	}
	return p, nil
}

// OpenLoop is a connection of a device with itself, of up to 16 requests under way: Disconnect ends it, and the device
// stays its owner's.
func OpenLoop(ctx context.Context, dev rdma.Device) (*Devices, error) {
	p := &Devices{Devs: [2]rdma.Device{dev, dev}}
	if err := p.join(ctx, "127.0.0.1:0", 1, 16, 0); err != nil {
		return nil, errors.Join(err, p.Disconnect())
	}
	return p, nil
}

func (p *Devices) join(ctx context.Context, at string, n, depth, receives int) (err error) {
	for i, dev := range p.Devs {
		if p.CQs[i], err = dev.NewCQ(n*(depth+receives) + 8); err != nil {
			return err
		}
	}
	l, err := p.Devs[1].Listen(ctx, at, 16)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for range n {
		if err := p.connect(ctx, l, depth, receives); err != nil {
			return err
		}
	}
	return nil
}

func (p *Devices) connect(ctx context.Context, l rdma.Listener, depth, receives int) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var ends [2]rdma.QP
	for i := range ends {
		q, err := p.Devs[i].NewQP(rdma.QPConfig{SendCQ: p.CQs[i], RecvCQ: p.CQs[i], SendDepth: depth,
			RecvDepth: receives})
		if err != nil {
			return err
		}
		ends[i], p.QPs[i] = q, append(p.QPs[i], q)
	}
	joined := make(chan error, 1)
	go func() {
		req, err := l.Accept(ctx)
		if err == nil {
			_, err = req.Accept(ctx, ends[1], rdma.ConnParam{IRD: 1, ORD: 1})
		}
		joined <- err
	}()
	_, err := ends[0].Connect(ctx, l.Addr(), rdma.ConnParam{IRD: 1, ORD: 1})
	if err != nil {
		cancel()
	}
	return errors.Join(err, <-joined)
}

// Disconnect closes the connections and their queues, so that nobody touches what is registered any more.
func (p *Devices) Disconnect() error {
	var errs []error
	for i := range p.QPs {
		for _, q := range p.QPs[i] {
			errs = append(errs, q.Close())
		}
		if p.QPs[i] = nil; p.CQs[i] != nil {
			errs = append(errs, p.CQs[i].Close())
			p.CQs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// Close closes everything. Registrations must have been closed.
func (p *Devices) Close() error {
	errs := []error{p.Disconnect()}
	for _, d := range p.Devs {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}
