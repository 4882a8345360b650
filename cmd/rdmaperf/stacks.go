package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/tcp"
)

// stackEntry is one name that --transport knows. A provider has device, another
// transport has open, and what this version does not have has why.
type stackEntry struct {
	name    string
	params  string // as shown in messages
	summary string
	tier    bool // stands over another layer
	device  func(s *stackSet, l layer) (rdma.Device, error)
	open    func(l layer) (transports.Transport, error)
	why     func(l layer) error
}

// here tells what this version can run.
func (e *stackEntry) here() bool { return e.why == nil }

// stackTable is every stack, in the order in which messages list them. The first
// is the default: the best provider that needs nothing but a network.
var stackTable = []stackEntry{
	{name: "iwarp", params: "crc, nocrc, markers, p2p, checked, rev1, rev2, sndbuf=BYTES, rcvbuf=BYTES",
		summary: "user-space iWARP over TCP", device: openIWARP},
	{name: "tcp", params: "sndbuf=BYTES, rcvbuf=BYTES", summary: "plain TCP, the baseline", open: openTCP},
	{name: "mem", summary: "in-process reference device, never a network", device: openMem},
	{name: "verbs", summary: "kernel verbs", why: noVerbs},
	{name: "sched", summary: "priority scheduler tier", tier: true, why: notYet},
	{name: "lite", summary: "indirection tier", tier: true, why: notYet},
	{name: "grpc", summary: "gRPC over RDMA", tier: true, why: notYet},
}

func findStack(name string) *stackEntry {
	for i := range stackTable {
		if stackTable[i].name == name {
			return &stackTable[i]
		}
	}
	return nil
}

// defaultStack is used when no transport is named.
func defaultStack() string { return stackTable[0].name }

// stackNames lists what this version can run, for help and messages.
func stackNames() string { return namesOf((*stackEntry).here) }

// providerNames lists the RDMA providers among them.
func providerNames() string {
	return namesOf(func(e *stackEntry) bool { return e.device != nil })
}

func namesOf(match func(*stackEntry) bool) string {
	var names []string
	for i := range stackTable {
		if e := &stackTable[i]; match(e) {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, ", ")
}

// stackSet opens stacks for one process. The zero value is ready. Safe for
// concurrent use: a server opens one per client.
type stackSet struct {
	mem memdev.Config // of mem's fabric

	mu     sync.Mutex
	fabric *memdev.Fabric // of mem, shared by both ends
	opened int
}

// open makes the transport that spec names. The caller closes it.
func (s *stackSet) open(spec string) (transports.Transport, error) {
	e, l, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	if e.device != nil {
		dev, err := e.device(s, l)
		if err != nil {
			return nil, openFailed(spec, l, err)
		}
		return direct.New(dev), nil
	}
	tr, err := e.open(l)
	if err != nil {
		return nil, openFailed(spec, l, err)
	}
	return tr, nil
}

// openDevice opens the provider that spec names, bare. The caller closes it.
func (s *stackSet) openDevice(spec string) (rdma.Device, error) {
	e, l, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	if e.device == nil {
		return nil, usage("open transport "+strconv.Quote(spec), errors.New("not an RDMA provider"), "one of "+providerNames())
	}
	dev, err := e.device(s, l)
	if err != nil {
		return nil, openFailed(spec, l, err)
	}
	return dev, nil
}

// resolve finds the entry that spec names, with its layer. Tiers are not in this
// version, so a stack that passes is one layer.
func resolve(spec string) (*stackEntry, layer, error) {
	operation := "open transport " + strconv.Quote(spec)
	layers, err := parseStack(spec)
	if err != nil {
		return nil, layer{}, usage("open transport", err, "one of "+stackNames())
	}
	for i, l := range layers {
		e := findStack(l.name)
		switch {
		case e == nil:
			return nil, layer{}, usage(operation, fmt.Errorf("unknown name %q", l.name), "one of "+stackNames())
		case e.tier == (i == len(layers)-1):
			return nil, layer{}, usage(operation, layerOrder(e), "a stack such as sched+iwarp, outermost layer first")
		}
	}
	for _, l := range layers {
		if e := findStack(l.name); !e.here() {
			return nil, layer{}, &reports.ExitError{Code: reports.ExitNotRun, Operation: operation, Err: e.why(l), Hint: "--transport " + defaultStack()}
		}
	}
	last := layers[len(layers)-1]
	if last.device != "" {
		return nil, layer{}, usage(operation, fmt.Errorf("%s has no devices to choose from", last.name), "--transport "+last.name)
	}
	return findStack(last.name), last, nil
}

func layerOrder(e *stackEntry) error {
	if e.tier {
		return fmt.Errorf("%s stands over another layer", e.name)
	}
	return fmt.Errorf("%s cannot stand over another layer", e.name)
}

// errParam marks a parameter that a layer does not know.
var errParam = errors.New("unknown parameter")

func openFailed(spec string, l layer, err error) error {
	operation := "open transport " + strconv.Quote(spec)
	if errors.Is(err, errParam) {
		hint := "no parameters"
		if p := findStack(l.name).params; p != "" {
			hint = "parameters among " + p
		}
		return usage(operation, err, hint)
	}
	return &reports.ExitError{Code: reports.ExitFailed, Operation: operation, Err: err}
}

func openIWARP(_ *stackSet, l layer) (rdma.Device, error) {
	c, err := iwarpConfig(l)
	if err != nil {
		return nil, err
	}
	return iwarp.Open(c)
}

// iwarpConfig reads the parameters of an iwarp layer; the later of two that
// contradict each other holds.
func iwarpConfig(l layer) (c iwarp.Config, err error) {
	for _, p := range l.params {
		switch key, _, _ := strings.Cut(p, "="); key {
		case "crc", "nocrc":
			c.NoCRC = key == "nocrc"
		case "markers":
			c.Markers = true
		case "p2p":
			c.PeerToPeer = true
		case "checked":
			c.StoreAndForward = true
		case "rev1", "rev2":
			c.Revision = key[len("rev")] - '0'
		case "sndbuf":
			c.SendBuffer, err = sizeParam(p)
		case "rcvbuf":
			c.RecvBuffer, err = sizeParam(p)
		default:
			err = fmt.Errorf("%w %q", errParam, p)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

func openTCP(l layer) (transports.Transport, error) {
	var c tcp.Config
	for _, p := range l.params {
		var err error
		switch key, _, _ := strings.Cut(p, "="); key {
		case "sndbuf":
			c.SendBuffer, err = sizeParam(p)
		case "rcvbuf":
			c.RecvBuffer, err = sizeParam(p)
		default:
			err = fmt.Errorf("%w %q", errParam, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return tcp.New(c), nil
}

// sizeParam reads the value of "name=64K".
func sizeParam(p string) (int, error) {
	_, v, _ := strings.Cut(p, "=")
	n, err := reports.ParseSize(v)
	if err == nil && n > 1<<30 {
		err = fmt.Errorf("above the limit of 1 GiB")
	}
	if err != nil {
		return 0, fmt.Errorf("%w %q: %v", errParam, p, err)
	}
	return int(n), nil
}

func openMem(s *stackSet, l layer) (rdma.Device, error) {
	if len(l.params) > 0 {
		return nil, fmt.Errorf("%w %q", errParam, l.params[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fabric == nil {
		s.fabric = memdev.NewFabric(s.mem)
	}
	s.opened++
	return s.fabric.Open(fmt.Sprintf("end%d", s.opened))
}

func notYet(l layer) error { return fmt.Errorf("%s is not in this version", l.name) }

// noVerbs says what this build lacks, and whether it would have helped here.
func noVerbs(layer) error {
	devices, _ := filepath.Glob(filepath.Join(sysInfiniband, "*"))
	here := "and this machine has no RDMA device in " + sysInfiniband
	if len(devices) > 0 {
		names := make([]string, len(devices))
		for i, d := range devices {
			names[i] = filepath.Base(d)
		}
		here = "although this machine has " + strings.Join(names, ", ")
	} else if _, err := os.Stat(sysInfiniband); err != nil {
		here = "and this machine has no RDMA device (no " + sysInfiniband + ")"
	}
	return fmt.Errorf("not run: this build has no kernel verbs provider, %s", here)
}

const sysInfiniband = "/sys/class/infiniband"
