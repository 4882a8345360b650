package engine

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdmaperf/rdmaperf/internal/freemem"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Needs is what a point asks of both stacks beside its operation and size. Both sides check it before the first packet.
type Needs struct {
	Kinds transports.KindSet `json:"kinds,omitempty"` // operations that it makes beside
	Why   string             `json:"why,omitempty"`   // what for
	// Kinds are for stacks where a write's last byte may not land last
	Ordered  bool   `json:"ordered,omitempty"`
	Sessions int    `json:"sessions,omitempty"` // 0: as many as its QPs
	Message  int    `json:"message,omitempty"`  // longest, bytes; 0: its size
	Depth    int    `json:"depth,omitempty"`    // of a queue
	DepthOf  string `json:"depth_of,omitempty"` // in words
	Priority int    `json:"priority,omitempty"` // highest
	Layer    string `json:"layer,omitempty"`    // of the stack, with the parameter Param, which is put in
	Param    string `json:"param,omitempty"`
	// one operation at a time, which a provider may do, and a device time by a clock of its own
	PingPong bool `json:"ping_pong,omitempty"`
}

// Check holds a plan against one side's abilities. One error lists everything that is missing: ExitNotRun for an
// ability that the transport does not have, ExitUsage for a figure above its limit.
func Check(p *Plan, name string, caps transports.Caps) error {
	full := p.WithDefaults()
	var missing, above []string
	noOperation, seen := false, map[string]bool{}
	for _, pt := range full.Points {
		err := checkPoint(&full, pt, caps)
		if err == nil || seen[err.Error()] {
			continue
		}
		seen[err.Error()] = true
		if reports.Code(err) == reports.ExitNotRun {
			missing = append(missing, err.Error())
			k, ok := transports.ParseKind(pt.Op)
			noOperation = noOperation || ok && !caps.Kinds.Has(k)
		} else {
			above = append(above, err.Error())
		}
	}
	switch {
	case len(missing) > 0:
		hint := "another --transport"
		if noOperation {
			hint = "one of --op " + kindNames(caps.Kinds) + ", or " + hint
		}
		return &reports.ExitError{Code: reports.ExitNotRun, Operation: "check " + name,
			Err: fmt.Errorf("no %s", strings.Join(missing, ", no ")), Hint: hint}
	case len(above) > 0:
		return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + name,
			Err: fmt.Errorf("%s", strings.Join(above, ", ")), Hint: "another value, or another --transport"}
	}
	return nil
}

// checkPoint returns the first thing a point needs and caps do not have: a noun of an ability, a sentence of a limit.
func checkPoint(p *Plan, pt Point, caps transports.Caps) error {
	missing := func(format string, a ...any) error {
		return &reports.ExitError{Code: reports.ExitNotRun, Err: fmt.Errorf(format, a...)}
	}
	above := func(format string, a ...any) error {
		return &reports.ExitError{Code: reports.ExitUsage, Err: fmt.Errorf(format, a...)}
	}
	n := pt.Needs
	k, ok := transports.ParseKind(pt.Op)
	sessions, message := cmp.Or(n.Sessions, p.Qps(pt)), cmp.Or(n.Message, max(pt.Size, pt.Response))
	switch {
	case !ok: // it makes what it needs by itself
		return nil
	case !caps.Kinds.Has(k):
		return missing("operation %s", pt.Op)
	case k == transports.KindSendImm && caps.ImmAlone && pt.Size != ImmAloneSize:
		return missing("operation %s of %d bytes (it carries its immediate alone: give -s %d)", pt.Op, pt.Size,
			ImmAloneSize)
	}
	for also := transports.KindSend; also < transports.KindCall; also++ {
		if n.Kinds.Has(also) && !caps.Kinds.Has(also) && !(n.Ordered && caps.LastByteLast) {
			return missing("operation %s (%s)", also, n.Why)
		}
	}
	switch {
	case caps.Clock != nil && (!n.PingPong || p.Polling == PollingEvent || pt.Rate > 0):
		return missing("%s by the device's own clock, which latency in a closed loop with busy polling has",
			pt.Workload)
	case p.Loop == LoopProvider && n.PingPong && !caps.PingPong:
		return missing("loop in the provider")
	case p.Loop == LoopPlain && n.PingPong && caps.Clock != nil:
		return missing("plain loop by the device's own clock")
	case p.Polling == PollingEvent && k == transports.KindCall:
		return above("--polling event: how a carrier of calls waits is its layer's mode, as in grpc(fused,event)+iwarp")
	case p.Polling == PollingEvent && !caps.Events:
		return missing("event polling")
	case k == transports.KindCall && pt.Call != "" && !hasMode(caps, pt.Call):
		return missing("calls of mode %s", pt.Call)
	case k == transports.KindCall && caps.MaxCalls > 0 && max(pt.Outstanding, 1) > caps.MaxCalls:
		return above("%d calls outstanding are above the limit of %d", pt.Outstanding, caps.MaxCalls)
	case k == transports.KindCall && caps.MaxCall > 0 && uint64(message) > caps.MaxCall:
		return above("size %d of a call is above the limit of %d bytes", message, caps.MaxCall)
	case k == transports.KindCall && caps.MaxConns > 0 && sessions > caps.MaxConns:
		return above("%d connections are above the limit of %d", sessions, caps.MaxConns)
	case k != transports.KindCall && caps.MaxSessions > 0 && sessions > caps.MaxSessions:
		return above("%d QPs are above the device's limit of %d", sessions, caps.MaxSessions)
	case uint64(message) > caps.MaxMsg:
		return above("size %d is above the limit of %d bytes", message, caps.MaxMsg)
	case p.Inline > caps.MaxInline:
		return above("inline %d is above the limit of %d bytes", p.Inline, caps.MaxInline)
	case caps.MaxDepth > 0 && n.Depth > MaxUserDepth(caps):
		return above("%s is above the limit of %d", n.DepthOf, MaxUserDepth(caps))
	case caps.Priorities > 0 && n.Priority >= caps.Priorities:
		return above("high priority %d is above the limit of %d", n.Priority, caps.Priorities-1)
	}
	return nil
}

func hasMode(caps transports.Caps, name string) bool {
	m, ok := transports.ParseCallMode(name)
	return !ok || caps.CallModes.Has(m)
}

func kindNames(s transports.KindSet) string {
	var names []string
	for k := transports.KindSend; k <= transports.KindCall; k++ {
		if s.Has(k) {
			names = append(names, k.String())
		}
	}
	return strings.Join(names, ",")
}

// checkMemory refuses what does not fit before anything is made: a process that gets too much is killed without a word.
func checkMemory(point string, need int64) error {
	left := freemem.Bytes()
	if left < 0 || need <= left {
		return nil
	}
	return &reports.ExitError{Code: reports.ExitUsage, Operation: "check " + point,
		Err: fmt.Errorf("it needs %d bytes of memory, of which this machine, or the limit of this process's control "+
			"group, leaves %d", need, left),
		Hint: "a smaller --size, --tx-depth or --qp"}
}

// here is what a point needs on this machine: the client's windows, and those of a server on this machine.
func (c *Client) here(sh *Shape) int64 {
	need := int64(sh.Window()) * int64(sh.QPs)
	if c.oneMachine() {
		need *= 2
	}
	return need
}

// oneMachine tells that the server is in this process or at a loopback address.
func (c *Client) oneMachine() bool {
	addr, err := netip.ParseAddr(c.host)
	return c.host == "" || err == nil && addr.IsLoopback()
}
