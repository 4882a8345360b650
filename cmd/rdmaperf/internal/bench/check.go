package bench

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
	full := p.withDefaults()
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
	k, ok := transports.ParseKind(pt.Op)
	switch {
	case !ok || !caps.Kinds.Has(k):
		return missing("operation %s", pt.Op)
	case (k == transports.KindCall) != CallWorkload(pt.Workload):
		return missing("operation %s in the workload %s", pt.Op, pt.Workload)
	case pt.Workload == WorkloadConnect && !caps.Kinds.Has(transports.KindWrite):
		return missing("operation write (of the first round trip)")
	case pt.Workload == WorkloadParamServer && !caps.Kinds.Has(transports.KindRead):
		return missing("operation read (by which tensors are pulled)")
	case pt.Workload == WorkloadStarvation && !caps.Kinds.Has(transports.KindRead):
		return missing("operation read (which proves that data arrived)")
	case needsSend(p, pt, k, caps) && !caps.Kinds.Has(transports.KindSend):
		return missing("operation send (which proves that data arrived)")
	case p.Polling == PollingEvent && !caps.Events:
		return missing("event polling")
	case caps.MaxSessions > 0 && p.qps(pt) > caps.MaxSessions:
		return above("%d QPs are above the device's limit of %d", p.qps(pt), caps.MaxSessions)
	case uint64(pt.Size) > caps.MaxMsg && pt.Workload != WorkloadParamServer:
		return above("size %d is above the limit of %d bytes", pt.Size, caps.MaxMsg)
	case p.Inline > caps.MaxInline:
		return above("inline %d is above the limit of %d bytes", p.Inline, caps.MaxInline)
	}
	if limits := findWorkload(pt.Workload).limits; limits != nil {
		if err := limits(p, pt, caps); err != nil {
			return above("%w", err)
		}
	}
	return nil
}

// streamLimits holds the depths that were asked for against the transport's.
func streamLimits(p *Plan, _ Point, caps transports.Caps) error {
	switch limit := maxUserDepth(caps); {
	case limit == 0:
	case p.Depth > limit:
		return fmt.Errorf("depth %d is above the limit of %d", p.Depth, limit)
	case p.RecvDepth > limit:
		return fmt.Errorf("receive depth %d is above the limit of %d", p.RecvDepth, limit)
	}
	return nil
}

// needsSend tells whether the engine sends messages of its own beside the
// operation: credits, barriers, notifications.
func needsSend(p *Plan, pt Point, k transports.Kind, caps transports.Caps) bool {
	switch {
	case k == transports.KindCall:
		return false
	case pt.Bidirectional:
		return true // begin and end
	case oneSided(k):
		return false
	case pt.Workload == WorkloadParamServer || pt.Workload == WorkloadStarvation:
		return false
	case pt.Workload != WorkloadLatency:
		return true
	default:
		return k == transports.KindWrite && (!caps.LastByteLast || p.Polling == PollingEvent)
	}
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
