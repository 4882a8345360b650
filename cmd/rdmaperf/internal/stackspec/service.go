package stackspec

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/service"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// CallService is the command whose process has the device of grpc(service)+X.
const CallService = "call-service"

func mountService(spec string, layers []Layer, inProcess bool) (t transports.Stack, is bool, err error) {
	form, _, err := grpcForm(layers[0])
	if err != nil || form != carrier.Service {
		return nil, false, err
	}
	if inProcess {
		return nil, true, Refused(fmt.Errorf("%s is of one process, and a service is another one: take iwarp or verbs",
			layers[len(layers)-1].Name))
	}
	c, err := GRPCConfig(layers[0], true)
	if err != nil {
		return nil, true, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, true, err
	}
	c.Command = []string{self, CallService, "--transport", spec}
	tr, err := carrier.New(c, nil)
	if failed, ok := errors.AsType[*service.FailedError](err); ok && failed.About.Code > 0 {
		err = &reports.ExitError{Code: failed.About.Code, Operation: Opening(spec), Err: err}
	}
	if err != nil {
		return nil, true, err
	}
	return tr, true, nil
}

// RunCallService is the process that has the device of a grpc(service) stack, until ctx ends.
func RunCallService(ctx context.Context, spec string) error {
	layers, err := Resolve(spec)
	if err != nil {
		return err
	}
	var set Set
	c, err := GRPCConfig(layers[0], true)
	if err != nil || c.Form != carrier.Service || len(layers) < 2 {
		return cli.Usage("run "+CallService, fmt.Errorf("%q is no service: %v", spec, err),
			"rdmaperf run --transport 'grpc(service)+iwarp'")
	}
	dev, _, err := set.build(spec, layers, 1)
	if err != nil {
		return errors.Join(err, service.Fail(err, reports.Code(err)))
	}
	return carrier.RunService(ctx, c, dev)
}
