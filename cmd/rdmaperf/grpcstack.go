package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const grpcName = "grpc"

const grpcParams = "tcp, unix, bufconn, dropin, fused (what carries the calls); of dropin and fused: bpev, bp, event, busy=TIME, pollers=N, idle=TIME, ring=BYTES, send=BYTES, watch, notice; of fused: noland; " +
	"of all but fused: best, read=BYTES, write=BYTES, window=BYTES, workers=N"

// grpcForm is the form that a layer names; given is false for none.
func grpcForm(l layer) (form carrier.Form, given bool, err error) {
	for _, p := range l.params {
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

// grpcStands tells whether the layer stands over another one. Without a form it may
// do both: alone it is grpc-go on TCP, over another one the drop-in.
func grpcStands(l layer, bottom bool) (over bool, err error) {
	form, given, err := grpcForm(l)
	if !given {
		return !bottom, err
	}
	return form.OverRDMA(), err
}

func carryGRPC(l layer, below rdma.Device) (transports.Transport, error) {
	c, err := grpcConfig(l, below != nil)
	if err != nil {
		return nil, err
	}
	t, err := carrier.New(c, below)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// rdmaOnly are the parameters of the forms over RDMA, fusedOnly those of one of them,
// http2Only those of gRPC's own transport, and bpevOnly those of one polling mode.
var (
	rdmaOnly  = []string{"bpev", "bp", "event", "busy", "pollers", "idle", "ring", "send", "watch", "notice"}
	fusedOnly = []string{"noland"}
	http2Only = []string{"best", "read", "write", "window", "workers"}
	bpevOnly  = []string{"busy", "pollers", "idle"}
)

// grpcConfig reads the parameters of a grpc layer; the later of two that contradict
// each other holds.
func grpcConfig(l layer, over bool) (c carrier.Config, err error) {
	form, given, err := grpcForm(l)
	if err != nil {
		return c, err
	}
	if c.Form = form; !given && over {
		c.Form = carrier.DropIn
	}
	n, o := &c.Net, &c.Options
	for _, p := range l.params {
		key, value, valued := strings.Cut(p, "=")
		switch {
		case slices.Contains(rdmaOnly, key) && !c.Form.OverRDMA():
			return c, refused(fmt.Errorf("%q is for dropin and fused, and this is %v", p, c.Form))
		case slices.Contains(fusedOnly, key) && c.Form != carrier.Fused:
			return c, refused(fmt.Errorf("%q is for fused, and this is %v", p, c.Form))
		case slices.Contains(http2Only, key) && c.Form == carrier.Fused:
			return c, refused(fmt.Errorf("%q is for gRPC's own transport, which fused does without", p))
		}
		bare := true
		switch key {
		case "noland":
			c.NoLanding = true
		case "tcp", "unix", "bufconn", "dropin", "fused": // read above
		case "bpev", "bp", "event":
			err = n.Polling.Mode.UnmarshalText([]byte(key))
		case "watch":
			n.Arrival = grpcrdma.ArrivalWatch
		case "notice":
			n.Arrival = grpcrdma.ArrivalNotice
		case "best":
			o.Best = true
		default:
			bare = false
		}
		switch {
		case bare && valued:
			err = errors.New("it has no value")
		case bare:
		case key == "busy":
			n.Polling.BusyTime, err = pauseParam(value)
		case key == "idle":
			n.Polling.IdleSleep, err = pauseParam(value)
		case key == "pollers":
			n.Polling.Pollers, err = intParam(value, 1, bpev.MaxPollers)
		case key == "workers":
			o.Workers, err = intParam(value, 1, 1<<16)
		case key == "ring":
			n.Ring, err = sizeParam(p)
		case key == "send":
			n.SendBuffer, err = sizeParam(p)
		case key == "read":
			o.ReadBuffer, err = sizeParam(p)
		case key == "write":
			o.WriteBuffer, err = sizeParam(p)
		case key == "window":
			o.Window, err = sizeParam(p)
		default:
			err = fmt.Errorf("%w %q", errParam, p)
		}
		if errors.Is(err, errParam) {
			return c, err
		} else if err != nil {
			return c, fmt.Errorf("%w %q: %v", errParam, p, err)
		}
	}
	for _, p := range l.params {
		if key, _, _ := strings.Cut(p, "="); slices.Contains(bpevOnly, key) && n.Polling.Mode != bpev.BPEV {
			return c, refused(fmt.Errorf("%q is for the mode bpev, and this is %v", p, n.Polling.Mode))
		}
	}
	return c, nil
}

// refused marks parameters that a layer knows and that make no sense there.
func refused(err error) error { return fmt.Errorf("%w: %w", carrier.ErrConfig, err) }

// pauseParam reads a time; 0 is none at all, which Config has a negative one for.
func pauseParam(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil || d < 0 || d > time.Minute:
		return 0, errors.New("want 0 to 1m, such as 50us")
	case d == 0:
		return -1, nil
	}
	return d, nil
}

// carriesCalls tells stacks whose only operation is the call.
func carriesCalls(spec string) bool {
	layers, err := parseStack(spec)
	return err == nil && layers[0].name == grpcName
}

// thisMachine tells whether a host name is of this machine, as far as addresses tell.
func thisMachine(host string) bool {
	addrs, err := net.LookupIP(host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return len(addrs) > 0 && !slices.ContainsFunc(addrs, func(ip net.IP) bool {
		return !ip.IsLoopback() && !slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		})
	})
}

// grpcSweeps are the lists that put a grpc layer over RDMA in place of itself once
// for every value.
type grpcSweeps struct {
	modes, busy, pollers, rings []string
}

func (g *grpcSweeps) any() bool { return len(g.modes)+len(g.busy)+len(g.pollers)+len(g.rings) > 0 }

var errNoGRPC = errors.New("--mode-sweep, --busy-sweep, --poller-sweep and --ring-sweep are for a stack with grpc(dropin) or grpc(fused)")

// sweep multiplies the stacks. Busy times and pollers are of the mode bpev: stacks
// in another mode, and stacks without grpc over RDMA, stay as they are.
func (g *grpcSweeps) sweep(stacks []string) ([]string, error) {
	if !g.any() {
		return stacks, nil
	}
	var out []string
	swept := false
	for _, s := range stacks {
		layers, err := parseStack(s)
		if err != nil {
			return nil, err
		}
		if layers[0].name != grpcName || len(layers) == 1 {
			out = append(out, s)
			continue
		}
		swept = true
		variants := []layer{layers[0]}
		if len(g.modes) > 0 {
			variants = nil
			for _, m := range g.modes {
				variants = append(variants, layers[0].without("bp", "event", "bpev").with(m))
			}
		}
		variants = eachParam(variants, "ring", g.rings)
		for _, v := range variants {
			all := []layer{v}
			if c, err := grpcConfig(v, true); err == nil && c.Net.Polling.Mode == bpev.BPEV {
				all = eachParam(eachParam(all, "busy", g.busy), "pollers", g.pollers)
			}
			for _, l := range all {
				layers[0] = l
				out = append(out, stackSpec(layers))
			}
		}
	}
	if !swept {
		return nil, errNoGRPC
	}
	return out, nil
}

// pollerCounts turns a sweep in the form of a rate sweep into values of pollers=.
func pollerCounts(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	counts, err := parseCounts("poller-sweep", s)
	var out []string
	for _, n := range counts {
		out = append(out, strconv.Itoa(n))
	}
	return out, err
}
