package engine

import (
	"fmt"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Check holds a plan against one side's abilities before the first packet. It
// lists everything that is missing in one error: ExitNotRun for an ability the
// transport does not have, ExitUsage for a figure above its limit.
func Check(p *Plan, name string, caps transports.Caps) error {
	full := p.WithDefaults()
	var missing, above []string
	seen := map[string]bool{}
	for _, pt := range full.Points {
		err := checkPoint(&full, pt, caps)
		if err == nil || seen[err.Error()] {
			continue
		}
		seen[err.Error()] = true
		if reports.Code(err) == reports.ExitNotRun {
			missing = append(missing, err.Error())
		} else {
			above = append(above, err.Error())
		}
	}
	switch {
	case len(missing) > 0:
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + name,
			Err:  fmt.Errorf("no %s", strings.Join(missing, ", no ")),
			Hint: "one of --op " + kindNames(caps.Kinds) + ", or another --transport"}
	case len(above) > 0:
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + name,
			Err: fmt.Errorf("%s", strings.Join(above, ", ")), Hint: "a value within the limit"}
	}
	return nil
}

// checkPoint returns the first thing a point needs and caps do not have. The
// message of a missing ability is a noun, that of a limit a sentence.
func checkPoint(p *Plan, pt Point, caps transports.Caps) error {
	missing := func(format string, a ...any) error {
		return &reports.ExitError{Code: reports.ExitNotRun, Err: fmt.Errorf(format, a...)}
	}
	above := func(format string, a ...any) error {
		return &reports.ExitError{Code: reports.ExitUsage, Err: fmt.Errorf(format, a...)}
	}
	w := p.Workloads.Of(pt)
	k, ok := transports.ParseKind(pt.Op)
	switch {
	case w == nil:
		return missing("workload %s", pt.Workload)
	case w.Runner != nil:
		if w.Limits != nil {
			return w.Limits(p, pt, caps)
		}
		return nil
	case !ok || !caps.Kinds.Has(k):
		return missing("operation %s", pt.Op)
	case k == transports.KindSendImm && caps.ImmAlone && pt.Size != ImmAloneSize:
		return missing("operation %s of %d bytes (it carries its immediate alone: give -s %d)", pt.Op, pt.Size, ImmAloneSize)
	case (k == transports.KindCall) != w.OfCalls():
		return missing("operation %s in the workload %s", pt.Op, pt.Workload)
	}
	for _, n := range w.Needs {
		if !caps.Kinds.Has(n.Kind) {
			return missing("operation %s (%s)", n.Kind, n.Why)
		}
	}
	switch {
	case w.Sends != nil && w.Sends(p, pt, k, caps) && !caps.Kinds.Has(transports.KindSend):
		return missing("operation send (which proves that data arrived)")
	case caps.Clock != nil && (!w.Clocked || p.Polling == PollingEvent || pt.Rate > 0):
		return missing("%s by the device's own clock, which latency in a closed loop with busy polling has", pt.Workload)
	case p.Loop == LoopProvider && w.PingPong && !caps.PingPong:
		return missing("loop in the provider")
	case p.Loop == LoopPlain && w.PingPong && caps.Clock != nil:
		return missing("plain loop by the device's own clock")
	case p.Polling == PollingEvent && !caps.Events:
		return missing("event polling")
	case caps.MaxSessions > 0 && p.Qps(pt) > caps.MaxSessions:
		return above("%d QPs are above the device's limit of %d", p.Qps(pt), caps.MaxSessions)
	case uint64(pt.Size) > caps.MaxMsg && !w.Divided:
		return above("size %d is above the limit of %d bytes", pt.Size, caps.MaxMsg)
	case p.Inline > caps.MaxInline:
		return above("inline %d is above the limit of %d bytes", p.Inline, caps.MaxInline)
	}
	if w.Limits != nil {
		if err := w.Limits(p, pt, caps); err != nil {
			return above("%w", err)
		}
	}
	return nil
}

// StreamLimits holds the depths that were asked for against the transport's.
func StreamLimits(p *Plan, _ Point, caps transports.Caps) error {
	switch limit := MaxUserDepth(caps); {
	case limit == 0:
	case p.Depth > limit:
		return fmt.Errorf("depth %d is above the limit of %d", p.Depth, limit)
	case p.RecvDepth > limit:
		return fmt.Errorf("receive depth %d is above the limit of %d", p.RecvDepth, limit)
	}
	return nil
}

// StreamSends: credits and a barrier, and in both directions a begin and an end.
func StreamSends(_ *Plan, pt Point, k transports.Kind, _ transports.Caps) bool {
	return pt.Bidirectional || !OneSided(k)
}

// PingPongSends: notifications of writes.
func PingPongSends(p *Plan, _ Point, k transports.Kind, caps transports.Caps) bool {
	return k == transports.KindWrite && (!caps.LastByteLast || p.Polling == PollingEvent)
}

func kindNames(s transports.KindSet) string {
	var names []string
	for k := transports.KindSend; k < transports.KindCall; k++ {
		if s.Has(k) {
			names = append(names, k.String())
		}
	}
	return strings.Join(names, ",")
}
