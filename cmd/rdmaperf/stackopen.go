package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// open makes the transport that spec names. The caller closes it.
func (s *stackSet) open(spec string) (transports.Stack, error) {
	layers, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	if e := findStack(layers[0].name); e.mount != nil {
		return s.mount(spec, layers, e)
	}
	dev, _, err := s.build(spec, layers, 0)
	if err != nil {
		return nil, err
	}
	return direct.New(dev), nil
}

// mount makes what workloads see, over what stands below it.
func (s *stackSet) mount(spec string, layers []layer, e *stackEntry) (transports.Stack, error) {
	var dev rdma.Device
	var err error
	if e.elsewhere != nil {
		tr, is, err := e.elsewhere(spec, layers, rowOf(layers[len(layers)-1]).inProcess)
		if err != nil {
			return nil, openFailed(spec, layers, layers[0], err)
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
		return nil, openFailed(spec, layers, layers[0], err)
	}
	return tr, nil
}

// openDevice opens the stack of an RDMA provider that spec names, bare. The
// caller closes it, and with it every layer below.
func (s *stackSet) openDevice(spec string) (rdma.Device, error) {
	dev, _, err := s.openLayers(spec)
	return dev, err
}

// openLayers is openDevice that also returns the provider at the bottom of the
// stack, which belongs to dev.
func (s *stackSet) openLayers(spec string) (dev, provider rdma.Device, err error) {
	layers, err := resolve(spec)
	if err != nil {
		return nil, nil, err
	}
	if e := findStack(layers[0].name); e.mount != nil {
		return nil, nil, usage(opening(spec), fmt.Errorf("%s is not an RDMA provider", e.name), "one of "+providerNames())
	}
	return s.build(spec, layers, 0)
}

// build opens the provider and stacks the tiers on it, innermost first, up to the
// layer at outermost. What fails leaves nothing open.
func (s *stackSet) build(spec string, layers []layer, outermost int) (dev, provider rdma.Device, err error) {
	bottom := layers[len(layers)-1]
	e := findStack(bottom.name)
	if e.device == nil {
		return nil, nil, usage(opening(spec), fmt.Errorf("%s is not an RDMA provider", bottom.name), "one of "+providerNames())
	}
	if dev, err = e.device(s, bottom); err != nil {
		return nil, nil, openFailed(spec, layers, bottom, err)
	}
	provider = dev
	for i := len(layers) - 2; i >= outermost; i-- {
		tier, err := findStack(layers[i].name).wrap(layers[i], dev)
		if err != nil {
			return nil, nil, openFailed(spec, layers, layers[i], errors.Join(err, dev.Close()))
		}
		dev = tier
	}
	return dev, provider, nil
}

// resolve takes spec apart, outermost layer first, and checks that this version
// has every layer and that they can stand on each other.
func resolve(spec string) ([]layer, error) {
	layers, err := parseStack(spec)
	if err != nil {
		return nil, usage("open transport", err, "one of "+stackNames())
	}
	for i, l := range layers {
		e := findStack(l.name)
		switch {
		case e == nil:
			return nil, usage(opening(spec), fmt.Errorf("unknown name %q", l.name), "one of "+stackNames())
		case e.mount != nil && i > 0 && i == len(layers)-1:
			return nil, usage(opening(spec), fmt.Errorf("%s is not an RDMA provider: it is the outermost layer", e.name), "one of "+providerNames())
		case e.mount != nil:
			if err := checkMount(e, l, i, len(layers)); err != nil {
				return nil, usage(opening(spec), err, e.example())
			}
		case (e.wrap != nil) == (i == len(layers)-1):
			return nil, usage(opening(spec), layerOrder(e), "a stack such as sched+iwarp, outermost layer first")
		case l.device != "" && !e.chooses:
			return nil, usage(opening(spec), fmt.Errorf("%s has no devices to choose from", l.name), "--transport "+l.name)
		}
	}
	return layers, nil
}

func opening(spec string) string { return "open transport " + strconv.Quote(spec) }

func layerOrder(e *stackEntry) error {
	if e.wrap != nil {
		return fmt.Errorf("%s stands over another layer", e.name)
	}
	return fmt.Errorf("%s cannot stand over another layer", e.name)
}

// checkMount holds the place of an outermost layer against its parameters.
func checkMount(e *stackEntry, l layer, at, of int) error {
	over, err := e.stands(l, at == of-1)
	switch {
	case err != nil:
		return err
	case at > 0:
		return fmt.Errorf("%s is the outermost layer: nothing stands over it", e.name)
	case l.device != "":
		return fmt.Errorf("%s has no devices to choose from", e.name)
	case over && of == 1:
		return fmt.Errorf("%s stands over an RDMA stack", l)
	case !over && of > 1:
		return fmt.Errorf("%s cannot stand over another layer", l)
	}
	return nil
}

// example is what to try instead of a stack with the layer in a wrong place.
func (e *stackEntry) example() string {
	if e.like != "" {
		return e.like
	}
	return "--transport " + e.name
}

// openFailed is err, of layer l, as the user sees it. A layer says its own exit
// code with a *reports.ExitError, such as 77 for a device that is not there.
func openFailed(spec string, layers []layer, l layer, err error) error {
	if len(layers) > 1 {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	if p := (*paramError)(nil); errors.As(err, &p) {
		return usage(opening(spec), err, p.hint())
	}
	var exit *reports.ExitError
	if errors.As(err, &exit) {
		return &reports.ExitError{Code: exit.Code, Operation: opening(spec), Err: err, Hint: exit.Hint}
	}
	code := reports.ExitFailed
	switch {
	case errors.Is(err, rdma.ErrNoDevice), errors.Is(err, rdma.ErrNotSupported):
		code = reports.ExitNotRun
	case errors.Is(err, carrier.ErrConfig), errors.Is(err, bpev.ErrConfig):
		code = reports.ExitUsage
	case errors.Is(err, rdma.ErrInvalid): // a port or an index that the device does not have
		code = reports.ExitUsage
	}
	return &reports.ExitError{Code: code, Operation: opening(spec), Err: err, Hint: rdma.Advice(err)}
}
