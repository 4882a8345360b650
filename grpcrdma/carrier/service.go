package carrier

import (
	"context"
	"errors"
	"math"
	"os"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	shmservice "github.com/rdmaperf/rdmaperf/grpcrdma/service"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// startService runs the process that has the device, and asks what it opened.
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

// queueBusy is how long either side of a queue polls before it sleeps: what the polling
// mode says for connections over RDMA.
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

// RunService is the process of a Service: it serves the program that started it over
// dev, which it owns, until that program or ctx ends.
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
