package sched_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/conform/conformtest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// harness makes pairs of tiers over pairs of devices.
func harness(name, listen string, cfg sched.Config, open func() (a, b rdma.Device, kill func(), err error)) tested {
	var last func()
	var wrapped []rdma.Device
	pair := func(context.Context) (rdma.Device, rdma.Device, string, error) {
		a, b, kill, err := open()
		if err != nil {
			return nil, nil, "", err
		}
		last = kill
		ta, err := sched.Wrap(a, cfg)
		wrapped = append(wrapped, ta)
		if err != nil {
			return nil, nil, "", err
		}
		tb, err := sched.Wrap(b, cfg)
		return ta, tb, listen, err
	}
	h := &conform.Harness{Name: name, Open: pair, Kill: func(rdma.Device) error { last(); return nil }}
	return tested{h, func() error { return allCut(cfg, wrapped) }}
}

// tested is a harness, and what its devices have to show after a run.
type tested struct {
	*conform.Harness
	shown func() error
}

func (h tested) Close() error { return errors.Join(h.shown(), h.Harness.Close()) }

// allCut requires that sends were cut, where asked for, and that most peers took part.
func allCut(cfg sched.Config, devs []rdma.Device) error {
	sum := map[string]int64{}
	for _, d := range devs {
		for name, n := range sched.Tally(d) {
			sum[name] += n
		}
	}
	if cfg.Sends != "" && (sum["sends_cut"] == 0 || sum["send_peers"] < 4*sum["send_peers_alone"]) {
		return fmt.Errorf("cut sends: %v", sum)
	}
	return nil
}

func overMem(cfg sched.Config) tested {
	return harness("sched+mem", ":0", cfg, func() (rdma.Device, rdma.Device, func(), error) {
		f := memdev.NewFabric(memdev.Config{ReadDelay: 10 * time.Microsecond})
		a, err := f.Open("a")
		if err != nil {
			return nil, nil, nil, err
		}
		b, err := f.Open("b")
		return a, b, b.Kill, err
	})
}

func overIWARP(cfg sched.Config) tested {
	return harness("sched+iwarp", "127.0.0.1:0", cfg, func() (rdma.Device, rdma.Device, func(), error) {
		a, err := iwarp.Open(iwarp.Config{})
		if err != nil {
			return nil, nil, nil, err
		}
		b, err := iwarp.Open(iwarp.Config{})
		return a, b, b.Kill, err
	})
}

// conformance runs the whole suite beside others: it mostly waits.
func conformance(t *testing.T, name string, h tested) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		defer func() {
			if err := h.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		// Eight of these share the CPUs: a case takes longer than the usual 10 s beside the others.
		conformtest.Run(t, h.Harness, conform.Options{Strict: true, CaseTimeout: time.Minute})
	})
}

// The suite passes with every policy over the reference device and over iWARP, where completions are local. Under the
// race detector one policy stands for all, as none has a thread of its own.
func TestConformance(t *testing.T) {
	policies := sched.Policies()
	if racing || !fulltest.Asked() {
		policies = []sched.Policy{sched.Strict}
	}
	for _, p := range policies {
		conformance(t, string(p)+"+mem", overMem(sched.Config{Policy: p, Slice: 1 << 10, Window: 4 << 10}))
	}
	conformance(t, "auto+iwarp", overIWARP(sched.Config{}))
	conformance(t, "sends+iwarp", overIWARP(sched.Config{Slice: 1 << 10, Window: 8 << 10, Sends: sched.CutSends}))
	if !fulltest.Asked() {
		return
	}
	conformance(t, "auto+mem", overMem(sched.Config{}))
	conformance(t, "steady+mem", overMem(sched.Config{Steady: true}))
	conformance(t, "sends+mem", overMem(sched.Config{Slice: 1 << 10, Window: 4 << 10, Sends: sched.CutSends}))
	conformance(t, "small+iwarp", overIWARP(sched.Config{Slice: 1 << 10, Window: 8 << 10}))
}
