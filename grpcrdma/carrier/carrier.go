package carrier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	shmservice "github.com/rdmaperf/rdmaperf/grpcrdma/service"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Carrier is one side of one configuration. All methods are safe for concurrent use.
type Carrier struct {
	cfg  Config
	name string
	caps transports.Caps
	net  *grpcrdma.Net // nil without RDMA
	dev  rdma.Device
	svc  *shmservice.Client // of Service

	svcOver func() // its processor time counts no more
}

var _ transports.CallTransport = (*Carrier)(nil)

// New makes a carrier. dev is nil for forms without RDMA, and owned from success on. Errors are ErrConfig, and those of
// grpcrdma.New.
func New(cfg Config, dev rdma.Device) (*Carrier, error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, err
	}
	if (cfg.Form.OverRDMA() && cfg.Form != Service) != (dev != nil) {
		return nil, fmt.Errorf("form %v and a device: %v: %w", cfg.Form, dev != nil, ErrConfig)
	}
	c := &Carrier{cfg: cfg, dev: dev, caps: transports.Caps{Label: rdma.LabelSoft,
		Kinds:     transports.Kinds(transports.KindCall),
		CallModes: transports.CallModes(transports.CallUnary, transports.CallStream, transports.CallOneWay),
		MaxMsg:    math.MaxInt32, SameHost: cfg.Form == Unix}}
	if cfg.Form == BufConn {
		c.caps.Label, c.caps.InProcess = rdma.LabelMem, true
	}
	if cfg.Form == Service {
		if err := c.startService(); err != nil {
			return nil, err
		}
		return c, nil
	}
	if dev == nil {
		c.name = cfg.name(grpcrdma.Config{})
		return c, nil
	}
	if c.net, err = grpcrdma.New(dev, cfg.Net); err != nil {
		return nil, err
	}
	d := dev.Caps()
	c.caps.Label, c.caps.InProcess, c.caps.MaxConns = d.Label, d.Label == rdma.LabelMem, d.MaxQP
	c.cfg.Net = c.net.Config()
	c.name = c.cfg.name(c.cfg.Net) + "+" + dev.Name()
	return c, nil
}

// Name is the stack with all parameters, outermost first.
func (c *Carrier) Name() string { return c.name }

// Counts are those of the device, if there is one.
func (c *Carrier) Counts() []rdma.Counts { return rdma.CountsOf(c.dev) }

// Caps has the call for its only operation.
func (c *Carrier) Caps() transports.Caps { return c.caps }

// Close ends all byte streams over RDMA and closes the device.
func (c *Carrier) Close() error {
	if c.svc != nil {
		c.svcOver()
		return c.svc.Close()
	}
	if c.net == nil {
		return nil
	}
	return errors.Join(c.net.Close(), c.dev.Close())
}

func (c *Carrier) startService() (err error) {
	c.svc, err = shmservice.Start(context.Background(), c.cfg.Command, os.Stderr, c.queueBusy())
	if err != nil {
		return err
	}
	c.svcOver = transports.AddHelper(c.svc.Pid()) // its processor time is this side's
	about := c.svc.About()
	c.name = about.Layer + "+" + about.Device
	c.caps.Label, c.caps.MaxConns = rdma.Label(about.Label), about.MaxConns
	return nil
}

// queueBusy is how long either side of a queue polls before it sleeps, after the polling mode.
func (c *Carrier) queueBusy() time.Duration {
	p, err := c.cfg.Net.Polling.Normal()
	switch {
	case err != nil, p.Mode == bpev.Event:
		return 0
	case p.Mode == bpev.BP:
		return math.MaxInt64
	}
	return max(p.BusyTime, 0)
}

// RunService is the process of a Service over dev, which it owns. It ends with the program that started it, or with
// ctx.
func RunService(ctx context.Context, cfg Config, dev rdma.Device) error {
	n, err := grpcrdma.New(dev, cfg.Net)
	if err != nil {
		return errors.Join(err, dev.Close())
	}
	caps := dev.Caps()
	own := Config{Form: Service, Net: n.Config()}
	about := shmservice.About{Device: dev.Name(), Label: string(caps.Label), MaxConns: caps.MaxQP,
		Memory: n.ConnMemory(), Layer: own.name(n.Config())}
	err = shmservice.Run(ctx, n, about, (&Carrier{cfg: own}).queueBusy())
	return errors.Join(err, n.Close(), dev.Close())
}
