package rdma

import "strings"

// QPState is the state of a queue pair (IBTA 10.3.1, ibv_modify_qp(3)).
type QPState uint8

const (
	// QPReset: just created by a raw interface; nothing may be posted. Providers here create QPs in INIT.
	QPReset QPState = iota
	// QPInit: receives may be posted; nothing moves.
	QPInit
	// QPRTR: the peer is known and inbound messages are processed; sends are not yet.
	QPRTR
	// QPRTS: both directions work.
	QPRTS
	// QPSQD: sends already begun finish; new ones are held until Resume.
	QPSQD
	// QPErr: everything posted completes flushed; nothing moves any more.
	QPErr
	numQPStates
)

var qpStateNames = [numQPStates]string{"RESET", "INIT", "RTR", "RTS", "SQD", "ERR"}

// String is the IBTA name.
func (s QPState) String() string { return nameIn(qpStateNames[:], s, "STATE?") }

// qpTransitions is the transition table (IBTA 10.3.1 figure 124; man ibv_modify_qp): row is the current state, the bits
// are the states that may follow. Any state may go to ERR or RESET.
var qpTransitions = [numQPStates]uint8{
	QPReset: bit(QPReset) | bit(QPInit) | bit(QPErr),
	QPInit:  bit(QPReset) | bit(QPInit) | bit(QPRTR) | bit(QPErr),
	QPRTR:   bit(QPReset) | bit(QPRTS) | bit(QPErr),
	QPRTS:   bit(QPReset) | bit(QPRTS) | bit(QPSQD) | bit(QPErr),
	QPSQD:   bit(QPReset) | bit(QPSQD) | bit(QPRTS) | bit(QPErr),
	QPErr:   bit(QPReset) | bit(QPErr),
}

func bit(s QPState) uint8 { return 1 << s }

// CanTransition reports whether the table has the edge from → to.
func CanTransition(from, to QPState) bool {
	return from < numQPStates && to < numQPStates && qpTransitions[from]&bit(to) != 0
}

// CanPostRecv reports whether receives are accepted in s; in ERR they are accepted and complete flushed (IBTA C10-97).
func (s QPState) CanPostRecv() bool { return s != QPReset }

// CanPostSend reports whether sends are accepted in s: RTS, SQD (held) and ERR
// (flushed); an immediate error otherwise (IBTA C10-96).
func (s QPState) CanPostSend() bool { return s == QPRTS || s == QPSQD || s == QPErr }

// RawQPs are devices whose queue pairs can be led through their states by hand, as
// ibv_modify_qp(3) does, in place of being connected whole. It is for those who check the
// device, and tiers do not offer it: Caps.RawQP tells, and a type assertion finds it.
type RawQPs interface {
	// NewRawQP makes a queue pair in RESET. ErrNotSupported where Caps.RawQP is not set.
	NewRawQP(cfg QPConfig) (RawQP, error)
}

// RawQP is a queue pair that is its own peer: what it sends it receives.
type RawQP interface {
	QP
	// Modify moves the QP along an edge, with those attributes given; their values are a matter of the provider.
	// ErrInvalid for an edge that there is not, one that needs more attributes, or other ones; the QP is as it was
	// then. In RESET nothing is outstanding: what was posted is gone without a completion.
	Modify(to QPState, given QPAttrs) error
}

// QPAttrs are attributes of a reliable connected QP, as the mask of ibv_modify_qp(3) names them.
type QPAttrs uint32

const (
	AttrPKey QPAttrs = 1 << iota
	AttrPort
	AttrAccess
	AttrPath
	AttrPathMTU
	AttrDestQP
	AttrRQPSN
	AttrMaxDestRDAtomic
	AttrMinRNRTimer
	AttrSQPSN
	AttrTimeout
	AttrRetries
	AttrRNRRetries
	AttrMaxRDAtomic
	numQPAttrs = iota
)

var qpAttrNames = [numQPAttrs]string{"pkey_index", "port", "access_flags", "av", "path_mtu", "dest_qpn", "rq_psn",
	"max_dest_rd_atomic", "min_rnr_timer", "sq_psn", "timeout", "retry_cnt", "rnr_retry", "max_qp_rd_atomic"}

// String lists the names, comma separated.
func (a QPAttrs) String() string {
	var names []string
	for _, one := range a.Each() {
		for i, n := range qpAttrNames {
			if one == 1<<i {
				names = append(names, n)
			}
		}
	}
	return strings.Join(names, ",")
}

// Each is the attributes one by one.
func (a QPAttrs) Each() (all []QPAttrs) {
	for i := range numQPAttrs {
		if one := QPAttrs(1 << i); a&one != 0 {
			all = append(all, one)
		}
	}
	return all
}

// AttrsOf are the attributes that an edge of a reliable connected QP needs and those that it takes as well (the table
// of ibv_modify_qp(3); IBTA table 91). Edges to RESET and to ERR need none.
func AttrsOf(from, to QPState) (needs, takes QPAttrs) {
	switch [2]QPState{from, to} {
	case [2]QPState{QPReset, QPInit}:
		return AttrPKey | AttrPort | AttrAccess, 0
	case [2]QPState{QPInit, QPInit}:
		return 0, AttrPKey | AttrPort | AttrAccess
	case [2]QPState{QPInit, QPRTR}:
		return AttrPath | AttrPathMTU | AttrDestQP | AttrRQPSN | AttrMaxDestRDAtomic | AttrMinRNRTimer,
			AttrPKey | AttrAccess
	case [2]QPState{QPRTR, QPRTS}:
		return AttrSQPSN | AttrTimeout | AttrRetries | AttrRNRRetries | AttrMaxRDAtomic, AttrAccess | AttrMinRNRTimer
	case [2]QPState{QPRTS, QPRTS}:
		return 0, AttrAccess | AttrMinRNRTimer
	}
	return 0, 0
}
