package carrier

import (
	"errors"
	"fmt"
	"math"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	shmservice "github.com/rdmaperf/rdmaperf/grpcrdma/service"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Carrier is one side of everything that one configuration carries. All methods
// are safe for concurrent use.
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

// New makes a carrier. dev is for the forms over RDMA, and is owned from success
// on; it is nil for the others. Errors are ErrConfig, and those of grpcrdma.New.
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

// Config is the configuration in use, defaults filled in.
func (c *Carrier) Config() Config { return c.cfg }

// Polling is how connections are waited for; ok is false for the forms that leave
// it to the runtime.
func (c *Carrier) Polling() (p bpev.Config, ok bool) {
	if !c.cfg.Form.OverRDMA() {
		return p, false
	}
	p, err := c.cfg.Net.Polling.Normal()
	return p, err == nil
}

// Registered is the registered memory of one connection on this side in bytes; 0
// for the forms without RDMA.
func (c *Carrier) Registered() int {
	if c.svc != nil {
		return c.svc.About().Memory
	}
	if c.net == nil {
		return 0
	}
	return c.net.ConnMemory()
}

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
