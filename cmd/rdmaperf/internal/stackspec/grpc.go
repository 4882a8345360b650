package stackspec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/service"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const GRPC = "grpc"

var grpcParams = params[carrier.Config]{
	formParam("tcp", "alone", "grpc-go on TCP"),
	formParam("unix", "", "grpc-go on a unix socket"),
	formParam("bufconn", "", "grpc-go on memory that both ends share"),
	formParam("dropin", "over a layer", "grpc-go on a byte stream over RDMA"),
	formParam("fused", "", "the fused channel, without HTTP/2, over RDMA"),
	formParam("service", "", "fused, by queues in shared memory to a process of its own that has the device"),
	modeParam(bpev.BPEV, "on", "poll for busy=, then sleep until an event, with pollers in the background"),
	modeParam(bpev.BP, "", "poll for ever"),
	modeParam(bpev.Event, "", "sleep until an event"),
	{paramDoc{"busy", pauseOf, bpev.DefaultBusyTime.String(), "of bpev: how long a caller polls before it sleeps"},
		func(c *carrier.Config, v value) { c.Net.Polling.BusyTime = v.d }},
	{paramDoc{"pollers", countOf(1, bpev.MaxPollers), "1", "of bpev: threads that poll for all connections"},
		func(c *carrier.Config, v value) { c.Net.Polling.Pollers = v.n }},
	{paramDoc{"idle", pauseOf, bpev.DefaultIdleSleep.String(), "of bpev: pause of a background poller"},
		func(c *carrier.Config, v value) { c.Net.Polling.IdleSleep = v.d }},
	{paramDoc{"ring", sizeOf, "256K", "of dropin, fused, service: receive ring of a connection; 32K of it until a " +
		"writer has to wait, unless it is watched"},
		func(c *carrier.Config, v value) { c.Net.Ring = v.n }},
	{paramDoc{"send", sizeOf, "half the ring", "of dropin, fused, service: send buffer of a connection"},
		func(c *carrier.Config, v value) { c.Net.SendBuffer = v.n }},
	{paramDoc{"watch", switchOf, "", "of dropin, fused, service: arrivals are seen in memory"},
		func(c *carrier.Config, v value) { c.Net.Arrival = grpcrdma.ArrivalWatch }},
	{paramDoc{"notice", switchOf, "", "of dropin, fused, service: arrivals are reported by completions"},
		func(c *carrier.Config, v value) { c.Net.Arrival = grpcrdma.ArrivalNotice }},
	{paramDoc{"noland", switchOf, "", "of fused: long messages come through the ring"},
		func(c *carrier.Config, _ value) { c.NoSink = true }},
	{paramDoc{"best", switchOf, "", "of all but fused and service: the gRPC options that were fastest in measurements"},
		func(c *carrier.Config, _ value) { c.Options.Best = true }},
	{paramDoc{"read", sizeOf, "gRPC's", "of all but fused and service: bytes read at once"},
		func(c *carrier.Config, v value) { c.Options.ReadBuffer = v.n }},
	{paramDoc{"write", sizeOf, "gRPC's", "of all but fused and service: bytes gathered before a write"},
		func(c *carrier.Config, v value) { c.Options.WriteBuffer = v.n }},
	{paramDoc{"window", sizeOf, "gRPC's", "of all but fused and service: flow control window, fixed"},
		func(c *carrier.Config, v value) { c.Options.Window = v.n }},
	{paramDoc{"workers", countOf(1, 1<<16), "gRPC's",
		"of all but fused and service: goroutines of a server that wait for calls"},
		func(c *carrier.Config, v value) { c.Options.Workers = v.n }},
}

func formParam(name, def, help string) param[carrier.Config] {
	return param[carrier.Config]{paramDoc{name, switchOf, def, help}, func(*carrier.Config, value) {}}
}

func modeParam(mode bpev.Mode, def, help string) param[carrier.Config] {
	return param[carrier.Config]{paramDoc{mode.String(), switchOf, def, "of dropin, fused, service: " + help},
		func(c *carrier.Config, _ value) { c.Net.Polling.Mode = mode }}
}

func grpcForm(l Layer) (form carrier.Form, given bool, err error) {
	for _, p := range l.Params {
		f, ok := carrier.ParseForm(p)
		switch {
		case !ok:
		case given && f != form:
			return form, given, fmt.Errorf("the forms %v and %v exclude each other", form, f)
		default:
			form, given = f, true
		}
	}
	return form, given, nil
}

// grpcOver says whether the layer is over another one. Without a form it may do both.
func grpcOver(l Layer, bottom bool) (over bool, err error) {
	form, given, err := grpcForm(l)
	if !given {
		return !bottom, err
	}
	return form.OverRDMA(), err
}

func mountGRPC(l Layer, below rdma.Device) (transports.Stack, error) {
	c, err := GRPCConfig(l, below != nil)
	if err != nil {
		return nil, err
	}
	return stackOf(carrier.New(c, below))
}

// What some forms, and one polling mode, alone have.
var (
	rdmaOnly  = []string{"bpev", "bp", "event", "busy", "pollers", "idle", "ring", "send", "watch", "notice"}
	fusedOnly = []string{"noland"}
	http2Only = []string{"best", "read", "write", "window", "workers"}
	bpevOnly  = []string{"busy", "pollers", "idle"}
)

// GRPCConfig reads the parameters of a grpc layer.
func GRPCConfig(l Layer, over bool) (carrier.Config, error) {
	var a carrier.Config
	form, given, err := grpcForm(l)
	if err != nil {
		return a, err
	}
	if a.Form = form; !given && over {
		a.Form = carrier.DropIn
	}
	for _, p := range l.Params {
		key, _, _ := strings.Cut(p, "=")
		switch {
		case slices.Contains(rdmaOnly, key) && !a.Form.OverRDMA():
			return a, Refused(fmt.Errorf("%q is for dropin, fused and service, and this is %v", p, a.Form))
		case slices.Contains(fusedOnly, key) && a.Form != carrier.Fused:
			return a, Refused(fmt.Errorf("%q is for fused, and this is %v", p, a.Form))
		case slices.Contains(http2Only, key) && a.Form.Frames():
			return a, Refused(fmt.Errorf("%q is for gRPC's own transport, which %v does without", p, a.Form))
		}
	}
	if err := grpcParams.Read(l, &a); err != nil {
		return a, err
	}
	for _, p := range l.Params {
		if key, _, _ := strings.Cut(p, "="); slices.Contains(bpevOnly, key) && a.Net.Polling.Mode != bpev.BPEV {
			return a, Refused(fmt.Errorf("%q is for the mode bpev, and this is %v", p, a.Net.Polling.Mode))
		}
	}
	return a, nil
}

// Refused marks parameters that a layer knows and that make no sense there.
func Refused(err error) error { return fmt.Errorf("%w: %w", carrier.ErrConfig, err) }

// PollsIdle tells stacks whose connections poll also while no call is under way.
func PollsIdle(spec string) bool {
	layers, err := Parse(spec)
	if err != nil || layers[0].Name != GRPC {
		return false
	}
	_, is := layers[0].Param("bp")
	return is
}

// CallsOnly tells stacks whose only operation is the call.
func CallsOnly(spec string) bool {
	layers, err := Parse(spec)
	if err != nil {
		return false
	}
	e := Find(layers[0].Name)
	return e != nil && e.calls != nil && e.calls(layers[0])
}

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
