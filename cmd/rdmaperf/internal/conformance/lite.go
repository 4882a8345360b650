package conformance

import (
	"context"
	"errors"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/lite/suite"
)

func checkLite(ctx context.Context, spec string, o conform.Options) (conform.Report, error) {
	layers, err := stackspec.Resolve(spec)
	if err != nil {
		return conform.Report{}, err
	}
	var c stackspec.LITEConfig
	if err = stackspec.LITEParams.Read(layers[0], &c); err == nil && (c.Peer || c.Daemon) {
		err = stackspec.Refused(
			errors.New("the cases of the tier are for LITE inside the process: name it without rpc= and daemon"))
	}
	if err != nil {
		return conform.Report{}, stackspec.OpenError(spec, layers, layers[0], err)
	}
	at, err := stackspec.Survey(stackspec.Format(layers[1:]))
	if err != nil {
		return notHere(spec, err, o, suite.Catalogue)
	}
	var s stackspec.Set // all nodes of a device that cannot leave the process share it
	open := func(int) (suite.Node, error) {
		dev, provider, err := s.OpenLayers(at.Spec)
		if err != nil {
			return suite.Node{}, err
		}
		n := suite.Node{Device: dev, Listen: at.Listen}
		if m, ok := provider.(stackspec.Mortal); ok {
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
