package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/access"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// victimVariants are parameters of which the wire suite wants a device besides, where the stack has them.
var victimVariants = []string{"markers", "nocrc"}

func (o *Options) checkTarget() error {
	const operation = "serve --target"
	token, err := o.guard.Token.Read()
	switch {
	case err != nil:
		return err
	case !o.target && o.transport != "":
		return cli.Usage("serve", errors.New("--transport is for --target: a client names the stack that is measured"),
			"serve without it")
	case !o.target:
		return nil
	case len(token) > 0:
		return cli.Usage(operation, errors.New("the suite knows no token"), "--allow ADDRESS instead of a token")
	case o.guard.TLS != access.TLSFlags{}:
		return cli.Usage(operation, errors.New("the suite speaks no TLS"), "serve without --tls-cert")
	case o.once, o.onceParent:
		return cli.Usage(operation, errors.New("it serves any number of suites"), "serve without --once")
	}
	return nil
}

func (o *Options) targetSpec() (string, error) {
	spec := o.transport
	if spec == "" {
		if spec = stackspec.Embedded(); o.verbs.Named() {
			spec = stackspec.Verbs
		}
	}
	stacks, err := o.verbs.Apply([]string{spec})
	if err != nil {
		return "", err
	}
	return stackspec.WithRDMACM(stacks[0])
}

func openTarget(spec, variant string) (dev rdma.Device, host string, err error) {
	if variant != "" {
		layers, err := stackspec.Parse(spec)
		if err != nil {
			return nil, "", err
		}
		bottom := &layers[len(layers)-1]
		*bottom = bottom.With(variant)
		spec = stackspec.Format(layers)
	}
	var s stackspec.Set
	dev, provider, err := s.OpenLayers(spec)
	if err != nil {
		return nil, "", err
	}
	if c := dev.Caps(); c.Label == rdma.LabelMem || c.Clock != nil {
		dev.Close()
		return nil, "", cli.Usage("open transport "+strconv.Quote(spec),
			errors.New("it is in-process only: nothing is on a wire"), "--transport "+stackspec.Embedded())
	}
	if near, ok := provider.(stackspec.Located); ok {
		host = near.ListenHost()
	}
	return dev, host, nil
}

func (o *Options) serveTarget(ctx context.Context, l net.Listener, s *engine.Server, log *slog.Logger) error {
	fail := func(err error) error { return errors.Join(err, l.Close()) }
	spec, err := o.targetSpec()
	if err != nil {
		return fail(err)
	}
	dev, _, err := openTarget(spec, "") // what is wrong with it is said now, and not to a suite
	if err != nil {
		return fail(err)
	}
	name := dev.Name()
	if err := dev.Close(); err != nil {
		return fail(err)
	}
	var variants []string
	for _, v := range victimVariants {
		dev, _, err := openTarget(spec, v)
		if reports.Code(err) == reports.ExitUsage {
			continue // the stack has no such parameter
		}
		if err == nil {
			err = dev.Close()
		}
		if err != nil {
			return fail(err)
		}
		variants = append(variants, v)
	}
	log.Info("target of wire tests listens; Ctrl-C ends it", "addr", l.Addr().String(), "transport", name)
	err = target.Serve(ctx, l, target.Config{
		Transport: spec, Variants: variants, MaxClients: o.maxClients, Log: log,
		Open: func(variant string) (rdma.Device, string, error) {
			if variant != "" && !slices.Contains(variants, variant) {
				return nil, "", fmt.Errorf("%s has no parameter %q: %w", spec, variant, rdma.ErrNotSupported)
			}
			return openTarget(spec, variant)
		},
		Allow: func(addr netip.Addr) bool {
			return len(s.Allow) == 0 || slices.ContainsFunc(s.Allow, func(p netip.Prefix) bool { return p.Contains(addr) })
		},
	})
	if err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "serve --target", Err: err}
	}
	return nil
}
