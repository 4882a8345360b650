package enginetest

import (
	"context"
	"testing"

	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Device has everybody who connects to a device's listeners go through the proxy.
func (p *Tamper) Device(dev rdma.Device) rdma.Device { return tamperedDevice{dev, p} }

type tamperedDevice struct {
	rdma.Device
	p *Tamper
}

func (d tamperedDevice) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := d.Device.Listen(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	near, err := d.p.Before(l.Addr())
	return tamperedListener{l, near}, err
}

type tamperedListener struct {
	rdma.Listener
	near string
}

func (l tamperedListener) Addr() string { return l.near }

// UncheckedDevice leaves what happens on the way to TCP's checksum. The caller closes it.
func UncheckedDevice(t testing.TB) rdma.Device {
	t.Helper()
	return must(iwarp.Open(iwarp.Config{NoCRC: true}))(t)
}
