package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/interop"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

type callStack struct {
	carrier.Config
	top   stackspec.Layer
	below string // the device's stack; empty without RDMA
}

func parseCalls(spec string) (c callStack, err error) {
	layers, err := stackspec.Resolve(spec)
	if err != nil {
		return c, err
	}
	c.top = layers[0]
	if c.Config, err = stackspec.GRPCConfig(c.top, len(layers) > 1); err != nil {
		return c, stackspec.OpenError(spec, layers, c.top, err)
	}
	if c.Options != (carrier.Options{}) {
		return c, cli.Usage(stackspec.Opening(spec), fmt.Errorf("%v: conformance is of gRPC's own defaults", c.top),
			"the form alone, as in grpc(dropin)+iwarp")
	}
	if c.Form == carrier.BufConn {
		return c, cli.Usage(stackspec.Opening(spec), fmt.Errorf("%v: in-process only, but a case needs two processes",
			c.top), "grpc(tcp) or grpc(unix)")
	}
	if len(layers) > 1 {
		c.below = stackspec.Format(layers[1:])
	}
	return c, nil
}

func checkGRPC(ctx context.Context, spec string, o conform.Options) (conform.Report, error) {
	c, err := parseCalls(spec)
	if err != nil {
		return conform.Report{}, err
	}
	child := spec
	var at stackspec.Site
	if c.below != "" {
		if at, err = stackspec.Survey(c.below); err != nil {
			return notHere(spec, err, o, interop.Catalogue)
		}
		child = c.top.String() + "+" + at.Spec
	}
	self, err := os.Executable()
	if err != nil {
		return conform.Report{}, &reports.ExitError{Code: reports.ExitFailed, Operation: "check conformance of " + spec,
			Err: err}
	}
	kids := childrenOf(self, child, o.CaseTimeout)
	return interop.Run(ctx, spec, c.Form, kids, interop.Options{Options: o, Shared: at.InProcess}), nil
}

const childName = "conform-child"

func childrenOf(self, spec string, limit time.Duration) interop.Children {
	return func(args ...string) *exec.Cmd {
		return exec.Command(self, append([]string{childName, "--transport", spec, "--case-timeout", limit.String(),
			"--answer", "3"}, args...)...)
	}
}

type childFlags struct {
	transport string
	limit     time.Duration
	only, at  string
	answer    uint
}

func NewChildCommand() *cobra.Command {
	var f childFlags
	cmd := &cobra.Command{
		Use: childName + " serve|linger|case [ID]", Hidden: true, Args: cobra.RangeArgs(1, 2),
		Short: "A process of 'rdmaperf conform --transport grpc(…)'",
		RunE:  func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.transport, "transport", "", "the stack")
	fl.DurationVar(&f.limit, "case-timeout", 0, "deadline of one case")
	fl.UintVar(&f.answer, "answer", 0, "descriptor for what it says to its parent")
	fl.StringVar(&f.only, "only", "", "variant to serve")
	fl.StringVar(&f.at, "at", "", "address to serve at")
	return cmd
}

func (f *childFlags) run(cmd *cobra.Command, args []string) (result error) {
	c, err := parseCalls(f.transport)
	if err != nil {
		return err
	}
	if f.answer <= 2 || f.limit <= 0 {
		return cli.Usage("run "+childName, errors.New("it is for 'rdmaperf conform' to start"), "rdmaperf conform")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	answer := os.NewFile(uintptr(f.answer), "answer")
	x := interop.Ends{Form: c.Form, Listen: "127.0.0.1:0", Limit: f.limit, In: cmd.InOrStdin(), Out: answer}
	if c.below != "" {
		at, err := stackspec.Survey(c.below)
		if err != nil {
			return err
		}
		x.Listen = at.Listen
		var s stackspec.Set // both ends of a device that cannot leave the process share it
		near, end, err := openNet(&s, c)
		if err != nil {
			return err
		}
		defer func() { result = errors.Join(result, end()) }()
		x.Near = near
		if at.InProcess {
			far, end, err := openNet(&s, c)
			if err != nil {
				return err
			}
			defer func() { result = errors.Join(result, end()) }()
			x.Far = far
		}
	}
	switch what := args[0]; {
	case what == "serve":
		return interop.Serve(cmd.Context(), x, f.only, f.at)
	case what == "linger":
		return interop.Linger(cmd.Context(), x)
	case what == "case" && len(args) == 2:
		return interop.RunCase(cmd.Context(), x, childrenOf(self, f.transport, f.limit), args[1])
	}
	return cli.Usage("run "+childName, fmt.Errorf("unknown role %q", args), "rdmaperf conform")
}

func openNet(s *stackspec.Set, c callStack) (n *grpcrdma.Net, end func() error, err error) {
	dev, err := s.OpenDevice(c.below)
	if err != nil {
		return nil, nil, err
	}
	if n, err = grpcrdma.New(dev, c.Net); err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	return n, func() error { return errors.Join(n.Close(), dev.Close()) }, nil
}
