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
func (s *stackSet) open(spec string) (transports.Transport, error) {
	layers, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	bottom := layers[len(layers)-1]
	if e := findStack(bottom.name); len(layers) == 1 && e.open != nil {
		tr, err := e.open(bottom)
		if err != nil {
			return nil, openFailed(spec, layers, bottom, err)
		}
		return tr, nil
	}
	if e := findStack(layers[0].name); e.carry != nil {
		return s.carry(spec, layers, e)
	}
	dev, _, err := s.build(spec, layers, 0)
	if err != nil {
		return nil, err
	}
	return direct.New(dev), nil
}

// carry makes a transport of calls, over what stands below it.
func (s *stackSet) carry(spec string, layers []layer, e *stackEntry) (transports.Transport, error) {
	var dev rdma.Device
	var err error
	if len(layers) > 1 {
		if dev, _, err = s.build(spec, layers, 1); err != nil {
			return nil, err
		}
	}
	tr, err := e.carry(layers[0], dev)
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
	if e := findStack(layers[0].name); e.carry != nil {
		return nil, nil, usage(opening(spec), fmt.Errorf("%s carries calls and is no RDMA device", e.name), "one of "+providerNames())
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
		dev = s.tallied(tier)
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
		case e.carry != nil:
			if err := checkCarrier(e, l, i, len(layers)); err != nil {
				return nil, usage(opening(spec), err, "grpc(tcp), grpc(unix), grpc(bufconn), grpc(dropin)+iwarp or grpc(fused)+iwarp")
			}
		case e.over == (i == len(layers)-1):
			return nil, usage(opening(spec), layerOrder(e), "a stack such as sched+iwarp, outermost layer first")
		case l.device != "" && !e.chooses:
			return nil, usage(opening(spec), fmt.Errorf("%s has no devices to choose from", l.name), "--transport "+l.name)
		}
	}
	for _, l := range layers {
		if e := findStack(l.name); !e.here() {
			return nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: opening(spec), Err: e.why(l), Hint: "--transport " + embeddedStack()}
		}
	}
	return layers, nil
}

func opening(spec string) string { return "open transport " + strconv.Quote(spec) }

func layerOrder(e *stackEntry) error {
	if e.over {
		return fmt.Errorf("%s stands over another layer", e.name)
	}
	return fmt.Errorf("%s cannot stand over another layer", e.name)
}

// checkCarrier holds the place of a layer that carries calls against its parameters.
func checkCarrier(e *stackEntry, l layer, at, of int) error {
	over, err := e.stands(l, at == of-1)
	switch {
	case err != nil:
		return err
	case at > 0:
		return fmt.Errorf("%s is the outermost layer: nothing stands over calls", e.name)
	case over && of == 1:
		return fmt.Errorf("%s stands over an RDMA stack", l)
	case !over && of > 1:
		return fmt.Errorf("%s cannot stand over another layer", l)
	}
	return nil
}

// errParam marks a parameter that a layer does not know.
var errParam = errors.New("unknown parameter")

// openFailed is err, of layer l, as the user sees it. A layer says its own exit
// code with a *reports.ExitError, such as 77 for a device that is not there.
func openFailed(spec string, layers []layer, l layer, err error) error {
	if len(layers) > 1 {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	if errors.Is(err, errParam) {
		hint := "no parameters"
		if p := findStack(l.name).params; p != "" {
			hint = "parameters among " + p
		}
		return usage(opening(spec), err, hint)
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
