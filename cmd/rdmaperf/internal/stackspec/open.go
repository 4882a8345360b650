package stackspec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Open makes the transport that spec names. The caller closes it.
func (s *Set) Open(spec string) (transports.Stack, error) {
	layers, err := Resolve(spec)
	if err != nil {
		return nil, err
	}
	if e := Find(layers[0].Name); e.mount != nil {
		return s.mount(spec, layers, e)
	}
	dev, _, err := s.build(spec, layers, 0)
	if err != nil {
		return nil, err
	}
	return direct.New(dev), nil
}

func (s *Set) mount(spec string, layers []Layer, e *Entry) (transports.Stack, error) {
	var dev rdma.Device
	var err error
	if e.elsewhere != nil {
		tr, is, err := e.elsewhere(spec, layers, EntryOf(layers[len(layers)-1]).inProcess)
		if err != nil {
			return nil, OpenError(spec, layers, layers[0], err)
		}
		if is {
			return tr, nil
		}
	}
	if len(layers) > 1 {
		if dev, _, err = s.build(spec, layers, 1); err != nil {
			return nil, err
		}
	}
	tr, err := e.mount(layers[0], dev)
	if err != nil {
		if dev != nil {
			err = errors.Join(err, dev.Close())
		}
		return nil, OpenError(spec, layers, layers[0], err)
	}
	return tr, nil
}

// OpenDevice opens the RDMA provider that spec names, bare. The caller closes it, and with it every layer below.
func (s *Set) OpenDevice(spec string) (rdma.Device, error) {
	dev, _, err := s.OpenLayers(spec)
	return dev, err
}

// OpenLayers is openDevice that also returns the provider at the bottom of the stack, which belongs to dev.
func (s *Set) OpenLayers(spec string) (dev, provider rdma.Device, err error) {
	layers, err := ResolveDevice(spec)
	if err != nil {
		return nil, nil, err
	}
	return s.build(spec, layers, 0)
}

// ResolveDevice is Resolve for what has to be an RDMA provider, with tiers of devices above it or without.
func ResolveDevice(spec string) ([]Layer, error) {
	layers, err := Resolve(spec)
	if err != nil {
		return nil, err
	}
	if e := Find(layers[0].Name); e.mount != nil {
		return nil, cli.Usage(Opening(spec), fmt.Errorf("%s is not an RDMA provider", e.Name), "one of "+Providers())
	}
	return layers, nil
}

// build opens the provider and stacks the tiers on it, up to the layer at outermost. What fails leaves nothing open.
func (s *Set) build(spec string, layers []Layer, outermost int) (dev, provider rdma.Device, err error) {
	bottom := layers[len(layers)-1]
	if dev, err = Find(bottom.Name).device(s, bottom); err != nil {
		return nil, nil, OpenError(spec, layers, bottom, err)
	}
	provider = dev
	for i := len(layers) - 2; i >= outermost; i-- {
		tier, err := Find(layers[i].Name).wrap(layers[i], dev)
		if err != nil {
			return nil, nil, OpenError(spec, layers, layers[i], errors.Join(err, dev.Close()))
		}
		dev = tier
	}
	return dev, provider, nil
}

// Resolve takes spec apart, outermost layer first, and checks that its layers exist and can stand on each other.
func Resolve(spec string) ([]Layer, error) {
	layers, err := Parse(spec)
	if err != nil {
		return nil, cli.Usage("open transport", err, "one of "+Names())
	}
	for i, l := range layers {
		e := Find(l.Name)
		switch {
		case e == nil:
			return nil, cli.Usage(Opening(spec), fmt.Errorf("unknown name %q", l.Name), "one of "+Names())
		case e.mount != nil && i > 0 && i == len(layers)-1:
			return nil, cli.Usage(Opening(spec), fmt.Errorf("%s is not an RDMA provider: it is the outermost layer",
				e.Name), "one of "+Providers())
		case e.mount != nil:
			if err := checkMount(e, l, i, len(layers)); err != nil {
				return nil, cli.Usage(Opening(spec), err, cmp.Or(e.like, "--transport "+e.Name))
			}
		case (e.wrap != nil) == (i == len(layers)-1):
			err := fmt.Errorf("%s cannot be layered over another", e.Name)
			if e.wrap != nil {
				err = fmt.Errorf("%s needs another layer below it", e.Name)
			}
			return nil, cli.Usage(Opening(spec), err, "a stack such as sched+iwarp, outermost layer first")
		case l.Device != "" && !e.Chooses:
			return nil, cli.Usage(Opening(spec), fmt.Errorf("%s has no devices to choose from", l.Name),
				"--transport "+l.Name)
		}
	}
	return layers, nil
}

func Opening(spec string) string { return "open transport " + strconv.Quote(spec) }

func checkMount(e *Entry, l Layer, at, of int) error {
	over, err := e.stands(l, at == of-1)
	switch {
	case err != nil:
		return err
	case at > 0:
		return fmt.Errorf("%s is the outermost layer: nothing can be layered over it", e.Name)
	case l.Device != "":
		return fmt.Errorf("%s has no devices to choose from", e.Name)
	case over && of == 1:
		return fmt.Errorf("%s needs an RDMA stack below it", l)
	case !over && of > 1:
		return fmt.Errorf("%s cannot be layered over another", l)
	}
	return nil
}

// OpenError is err, of layer l, as the user sees it. A layer may say its own exit code with a *reports.ExitError.
func OpenError(spec string, layers []Layer, l Layer, err error) error {
	if len(layers) > 1 {
		err = fmt.Errorf("%s: %w", l.Name, err)
	}
	if p, ok := errors.AsType[*paramError](err); ok {
		return cli.Usage(Opening(spec), err, p.hint())
	}
	if exit, ok := errors.AsType[*reports.ExitError](err); ok {
		return &reports.ExitError{Code: exit.Code, Operation: Opening(spec), Err: err, Hint: exit.Hint}
	}
	code := reports.ExitFailed
	switch {
	case errors.Is(err, rdma.ErrNoDevice), errors.Is(err, rdma.ErrNotSupported):
		code = reports.ExitNotRun
	case errors.Is(err, carrier.ErrConfig), errors.Is(err, bpev.ErrConfig),
		errors.Is(err, rdma.ErrInvalid): // such as a port that the device does not have
		code = reports.ExitUsage
	}
	return &reports.ExitError{Code: code, Operation: Opening(spec), Err: err, Hint: rdma.Advice(err)}
}

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
