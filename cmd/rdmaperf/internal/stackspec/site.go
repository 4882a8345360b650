package stackspec

import (
	"context"
	"net"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Located is a provider whose devices have addresses of their own: loopback does not lead to an adapter.
type Located interface{ ListenHost() string }

// Mortal is a provider that can die on purpose.
type Mortal interface{ Kill() }

// Site is a stack as its conformance needs it.
type Site struct {
	Spec      string // with the device chosen
	Listen    string // where its listeners are put
	Listen6   string // the same of IPv6; "" where there is none
	InProcess bool   // both ends must share a process
	CanDie    bool
	OnSockets bool // its data goes through the kernel's TCP/IP
}

// Survey opens a stack once: what is wrong with spec is found here, and not by every case.
func Survey(spec string) (Site, error) {
	spec, err := ChooseDevice(spec, false)
	if err != nil {
		return Site{}, err
	}
	var probe Set
	dev, provider, err := probe.OpenLayers(spec)
	if err != nil {
		return Site{}, err
	}
	at := Site{Spec: spec, Listen: "127.0.0.1:0"}
	if c := dev.Caps(); c.Label == rdma.LabelMem || c.Clock != nil {
		at.Listen, at.InProcess = ":0", true
	}
	if near, ok := provider.(Located); ok && near.ListenHost() != "" {
		at.Listen = net.JoinHostPort(near.ListenHost(), "0")
	}
	if !at.InProcess {
		at.Listen6 = listens6(dev)
	}
	_, at.CanDie = provider.(Mortal)
	at.OnSockets = probe.onSockets
	return at, dev.Close()
}

func listens6(dev rdma.Device) string {
	const loopback = "[::1]:0"
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	l, err := dev.Listen(ctx, loopback, 1)
	if err != nil || l.Close() != nil {
		return ""
	}
	return loopback
}
