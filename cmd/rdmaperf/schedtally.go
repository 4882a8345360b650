package main

import (
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// talliedTier is an open sched tier that counts what becomes of long sends.
type talliedTier struct {
	rdma.Device
	of *stackSet
}

// tallied notes a tier that counts; any other device comes back as it is.
func (s *stackSet) tallied(dev rdma.Device) rdma.Device {
	if sched.Tally(dev) == nil {
		return dev
	}
	t := &talliedTier{dev, s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tiers = append(s.tiers, t)
	return t
}

// Close closes the tier, which is counted no more.
func (t *talliedTier) Close() error {
	if err := t.Device.Close(); err != nil {
		return err
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.tiers = slices.DeleteFunc(t.of.tiers, func(x *talliedTier) bool { return x == t })
	return nil
}

// countersOf is the reader of what a stack counts, by its full name: of what is below
// it, and of its sched tier.
func (s *stackSet) countersOf(stack string) func() []reports.DeviceCounters {
	below := countersOf(stack)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.tiers, func(t *talliedTier) bool { return strings.HasSuffix(stack, t.Name()) }) {
		return below
	}
	return func() (all []reports.DeviceCounters) {
		if below != nil {
			all = below()
		}
		sum := map[string]int64{}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range s.tiers {
			if strings.HasSuffix(stack, t.Name()) {
				for name, n := range sched.Tally(t.Device) {
					sum[name] += n
				}
			}
		}
		return append(all, reports.DeviceCounters{Device: "sched", Counters: sum})
	}
}
