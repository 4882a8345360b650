package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/service"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// serviceName is the command whose process has the device of grpc(service)+X.
const serviceName = "call-service"

// mountService mounts a grpc layer whose device is opened by a process of its own.
func mountService(spec string, layers []layer, inProcess bool) (t transports.Stack, is bool, err error) {
	form, _, err := grpcForm(layers[0])
	if err != nil || form != carrier.Service {
		return nil, false, err
	}
	if inProcess {
		return nil, true, refused(fmt.Errorf("%s is of one process, and a service is another one: take iwarp or verbs", layers[len(layers)-1].name))
	}
	c, err := grpcConfig(layers[0], true)
	if err != nil {
		return nil, true, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, true, err
	}
	c.Command = []string{self, serviceName, "--transport", spec}
	tr, err := carrier.New(c, nil)
	var failed *service.FailedError
	if errors.As(err, &failed) && failed.About.Code > 0 {
		err = &reports.ExitError{Code: failed.About.Code, Operation: opening(spec), Err: err}
	}
	if err != nil {
		return nil, true, err
	}
	return tr, true, nil
}

func newCallServiceCommand() *cobra.Command {
	var spec string
	cmd := &cobra.Command{
		Use: serviceName, Hidden: true, Args: cobra.NoArgs,
		Short: "The process of grpc(service)+X that has the device",
		RunE: func(cmd *cobra.Command, _ []string) error {
			layers, err := resolve(spec)
			if err != nil {
				return err
			}
			var set stackSet
			c, err := grpcConfig(layers[0], true)
			if err != nil || c.Form != carrier.Service || len(layers) < 2 {
				return usage("run "+serviceName, fmt.Errorf("%q is no service: %v", spec, err), "rdmaperf run --transport 'grpc(service)+iwarp'")
			}
			dev, _, err := set.build(spec, layers, 1)
			if err != nil {
				code := reports.ExitFailed
				var exit *reports.ExitError
				if errors.As(err, &exit) {
					code = exit.Code
				}
				return errors.Join(err, service.Fail(err, code))
			}
			return carrier.RunService(cmd.Context(), c, dev)
		},
	}
	cmd.Flags().StringVar(&spec, "transport", "", "the stack")
	return cmd
}
