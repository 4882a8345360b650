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
	"github.com/rdmaperf/rdmaperf/transports/tcp"
)

// stackEntry is one name that --transport knows.
type stackEntry struct {
	name    string
	params  string // as shown in messages
	summary string
	tier    bool // stands over another layer
	// open makes the transport. It is nil for what this version does not have.
	open func(s *stackSet, l layer) (transports.Transport, error)
	why  func(l layer) error // why open is nil
}

// stackTable is every stack, in the order in which messages list them. The first
// is the default: the best provider that needs nothing but a network.
var stackTable = []stackEntry{
	{name: "iwarp", params: "crc, nocrc, markers, p2p, checked, rev1, rev2, sndbuf=BYTES, rcvbuf=BYTES",
		summary: "user-space iWARP over TCP", open: openIWARP},
	{name: "tcp", params: "sndbuf=BYTES, rcvbuf=BYTES", summary: "plain TCP, the baseline", open: openTCP},
	{name: "mem", summary: "in-process reference device, never a network", open: openMem},
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

// stackNames lists the table for help and messages.
func stackNames() string {
	var names []string
	for _, e := range stackTable {
		if e.open != nil {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, ", ")
}

// stackSet opens stacks for one process. The zero value is ready. Safe for
// concurrent use: a server opens one per client.
type stackSet struct {
	mu     sync.Mutex
	fabric *memdev.Fabric // of mem, shared by both ends
	opened int
}

// open makes the transport that spec names. The caller closes it.
func (s *stackSet) open(spec string) (transports.Transport, error) {
	layers, err := parseStack(spec)
	if err != nil {
		return nil, usage("open transport", err, "one of "+stackNames())
	}
	for i, l := range layers {
		e := findStack(l.name)
		switch {
		case e == nil:
			return nil, usage("open transport "+strconv.Quote(spec), fmt.Errorf("unknown name %q", l.name), "one of "+stackNames())
		case e.tier == (i == len(layers)-1):
			return nil, usage("open transport "+strconv.Quote(spec), layerOrder(e), "a stack such as sched+iwarp, outermost layer first")
		}
	}
	for _, l := range layers {
		if e := findStack(l.name); e.open == nil {
			return nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "open transport " + strconv.Quote(spec), Err: e.why(l), Hint: "--transport " + defaultStack()}
		}
	}
	last := layers[len(layers)-1]
	if last.device != "" {
		return nil, usage("open transport "+strconv.Quote(spec), fmt.Errorf("%s has no devices to choose from", last.name), "--transport "+last.name)
	}
	tr, err := findStack(last.name).open(s, last)
	if err != nil {
		return nil, openFailed(spec, last, err)
	}
	return tr, nil
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

func openIWARP(_ *stackSet, l layer) (transports.Transport, error) {
	c, err := iwarpConfig(l)
	if err != nil {
		return nil, err
	}
	dev, err := iwarp.Open(c)
	if err != nil {
		return nil, err
	}
	return direct.New(dev), nil
}

func openTCP(_ *stackSet, l layer) (transports.Transport, error) {
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

func openMem(s *stackSet, l layer) (transports.Transport, error) {
	if len(l.params) > 0 {
		return nil, fmt.Errorf("%w %q", errParam, l.params[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fabric == nil {
		s.fabric = memdev.NewFabric(memdev.Config{})
	}
	s.opened++
	dev, err := s.fabric.Open(fmt.Sprintf("end%d", s.opened))
	if err != nil {
		return nil, err
	}
	return direct.New(dev), nil
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
