package mpa

import (
	"strings"
	"testing"
)

type step struct {
	from State
	on   Event
}

// Every allowed step, written out once more. What is not here must fail.
var wantSteps = map[step]State{
	{StateIdle, EventSendRequest}:   StateWaitReply,
	{StateWaitReply, EventReply}:    StateFull,
	{StateWaitReply, EventReplyRTR}: StateRTR,
	{StateWaitReply, EventReject}:   StateRejected,
	{StateRTR, EventSendRTR}:        StateFull,
	{StateIdle, EventRequest}:       StateDecide,
	{StateDecide, EventSendReply}:   StateWaitFPDU,
	{StateDecide, EventSendReject}:  StateRejected,
	{StateWaitFPDU, EventFPDU}:      StateFull,
	{StateFull, EventFPDU}:          StateFull,
	{StateIdle, EventError}:         StateFailed,
	{StateWaitReply, EventError}:    StateFailed,
	{StateRTR, EventError}:          StateFailed,
	{StateDecide, EventError}:       StateFailed,
	{StateWaitFPDU, EventError}:     StateFailed,
	{StateFull, EventError}:         StateFailed,
}

func TestStartupSteps(t *testing.T) {
	for s := range numStates + 1 {
		for e := range numEvents + 1 {
			to, allowed := wantSteps[step{s, e}]
			got, ok := s.Next(e)
			if ok != allowed {
				t.Errorf("%v on %v: allowed %t, want %t", s, e, ok, allowed)
			}
			if !allowed {
				to = StateFailed
			}
			if got != to {
				t.Errorf("%v on %v = %v, want %v", s, e, got, to)
			}
		}
	}
}

// RFC 5044 §7.1.2 rule 4, RFC 6581 §9.2: no responder sends before a good FPDU, no initiator before its RTR.
func TestNobodySendsEarly(t *testing.T) {
	type node struct {
		s                     State
		request, fpdu, rtrDue bool
	}
	seen := map[node]bool{}
	full := 0
	var walk func(n node)
	walk = func(n node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.s.MaySend() {
			full++
			if n.request && !n.fpdu {
				t.Errorf("responder may send before an fpdu came in")
			}
			if n.rtrDue {
				t.Errorf("initiator may send before its rtr")
			}
		}
		for e := range numEvents {
			next, ok := n.s.Next(e)
			if !ok {
				continue
			}
			m := node{next, n.request || e == EventRequest, n.fpdu || e == EventFPDU, n.rtrDue}
			if e == EventReplyRTR {
				m.rtrDue = true
			}
			if e == EventSendRTR {
				m.rtrDue = false
			}
			walk(m)
		}
	}
	walk(node{})
	if full == 0 {
		t.Error("no path leads to full operation")
	}
}

func TestStartupNames(t *testing.T) {
	// The first that is none, too.
	if s, e := numStates.String(), numEvents.String(); !strings.HasPrefix(s, "state ") ||
		!strings.HasPrefix(e, "event ") {
		t.Errorf("behind the last: %q and %q", s, e)
	}
	seen := map[string]bool{}
	for s := range numStates {
		seen[s.String()] = true
	}
	for e := range numEvents {
		seen["on "+e.String()] = true
	}
	for r := range RTRRead + 1 {
		seen["rtr "+r.String()] = true
	}
	if want := int(numStates) + int(numEvents) + int(RTRRead) + 1; len(seen) != want {
		t.Errorf("%d names, want %d", len(seen), want)
	}
	for _, name := range []string{State(99).String(), Event(99).String()} {
		if !strings.Contains(name, "99") {
			t.Errorf("name of an unknown value: %q", name)
		}
	}
}
