package mpa

import "fmt"

// State is where one side of a connection stands in the startup of MPA (RFC 5044 §7.1.2, RFC 6581 §9.3).
type State uint8

// The states. Both sides begin in StateIdle; StateFull, StateRejected and StateFailed end the startup.
const (
	StateIdle      State = iota // TCP is up, no frame sent or received
	StateWaitReply              // initiator: the Request is out
	StateRTR                    // initiator: accepted peer-to-peer, only the RTR may be sent
	StateDecide                 // responder: a good Request is in, the upper layer decides
	StateWaitFPDU               // responder: accepted, silent until a good FPDU has arrived
	StateFull                   // full operation, FPDUs both ways
	StateRejected               // refused; MPA has ended and TCP is the upper layer's
	StateFailed                 // broken; the connection must be closed

	numStates
)

var stateNames = [numStates]string{
	"idle", "wait reply", "rtr", "decide", "wait fpdu", "full operation", "rejected", "failed",
}

// String names the state.
func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Event is what moves the startup of one side.
type Event uint8

// The events.
const (
	EventSendRequest Event = iota // initiator sent its Request
	EventReply                    // initiator got an accepting Reply, client-server model
	EventReplyRTR                 // initiator got an accepting Reply, peer-to-peer model
	EventReject                   // initiator got a refusing Reply
	EventSendRTR                  // initiator sent the negotiated RTR
	EventRequest                  // responder got a good Request
	EventSendReply                // responder sent an accepting Reply
	EventSendReject               // responder sent a refusing Reply
	EventFPDU                     // a good FPDU arrived
	EventError                    // bad frame, bad FPDU, timeout or lost connection

	numEvents
)

var eventNames = [numEvents]string{
	"send request", "reply", "reply with rtr", "reject", "send rtr",
	"request", "send reply", "send reject", "fpdu", "error",
}

// String names the event.
func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return fmt.Sprintf("event %d", uint8(e))
}

// transitions holds every allowed step. Nothing leads to StateIdle, 0, which marks what is not allowed.
var transitions = [numStates][numEvents]State{
	StateIdle: {
		EventSendRequest: StateWaitReply,
		EventRequest:     StateDecide,
		EventError:       StateFailed,
	},
	StateWaitReply: {
		EventReply:    StateFull,
		EventReplyRTR: StateRTR,
		EventReject:   StateRejected,
		EventError:    StateFailed,
	},
	StateRTR: {
		EventSendRTR: StateFull,
		EventError:   StateFailed,
	},
	StateDecide: {
		EventSendReply:  StateWaitFPDU,
		EventSendReject: StateRejected,
		EventError:      StateFailed,
	},
	StateWaitFPDU: {
		EventFPDU:  StateFull, // RFC 5044 §7.1.2 rule 4
		EventError: StateFailed,
	},
	StateFull: {
		EventFPDU:  StateFull,
		EventError: StateFailed,
	},
}

// Next is the state after e. ok is false when e must not happen in s: the connection fails.
func (s State) Next(e Event) (next State, ok bool) {
	if s >= numStates || e >= numEvents || transitions[s][e] == StateIdle {
		return StateFailed, false
	}
	return transitions[s][e], true
}

// MaySend reports whether this side may send any FPDU or marker now. In StateRTR it may send the RTR and nothing else.
func (s State) MaySend() bool { return s == StateFull }
