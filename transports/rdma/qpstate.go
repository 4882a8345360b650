package rdma

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
func (s QPState) String() string {
	if s < numQPStates {
		return qpStateNames[s]
	}
	return "STATE?"
}

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
