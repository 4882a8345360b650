package main

import (
	"context"
	"errors"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/lite/suite"
)

// checkLite runs the suite of the tier over one stack, each case on fresh devices.
func checkLite(ctx context.Context, spec string, o conform.Options) (conform.Report, error) {
	layers, err := resolve(spec)
	if err != nil {
		return conform.Report{}, err
	}
	var c liteConfig
	if err = liteParams.read(layers[0], &c); err == nil && (c.peer || c.daemon) {
		err = refused(errors.New("the cases of the tier are for LITE inside the process: name it without rpc= and daemon"))
	}
	if err != nil {
		return conform.Report{}, openFailed(spec, layers, layers[0], err)
	}
	at, err := survey(stackSpec(layers[1:]))
	if reports.Code(err) == reports.ExitUsage {
		return conform.Report{}, err
	}
	if err != nil {
		if o.Cases == nil {
			o.Cases = suite.Catalogue()
		}
		return conform.NotRunReport(spec, err, o), nil
	}
	var s stackSet // all nodes of a device that cannot leave the process share it
	open := func(int) (suite.Node, error) {
		dev, provider, err := s.openLayers(at.spec)
		if err != nil {
			return suite.Node{}, err
		}
		n := suite.Node{Device: dev, Listen: at.listen}
		if m, ok := provider.(mortal); ok {
			n.Kill = m.Kill
		}
		return n, nil
	}
	rep := suite.Run(ctx, spec, open, suite.Options{Options: o, Config: c.Node()})
	if rep.Err != nil && !errors.Is(rep.Err, conform.ErrUsage) {
		return rep, rep.Err
	}
	return rep, nil
}
