package conform

import "fmt"

// Area is a part of the requirements of the specifications and man pages, written down before any case was.
type Area struct {
	Name         string // in words
	Requirements int    // that the catalogue has
	By           string // what shows those that are covered
	Absent       []Absence
}

// Absence is requirements that nothing shows to a user, with the reason.
type Absence struct {
	What   string
	Count  int
	Reason string
}

const (
	noModify = "a QP is connected whole or is its own peer (rdma.RawQP), and both ends are ready at once"
	noObject = "rdma.Device has no such object"
)

// Areas is the catalogue by areas. Covered ones were mapped to cases by hand.
var Areas = []Area{
	{"devices and ports", 7, "dev", []Absence{{"events of a port that goes down and up", 1, noObject}}},
	{"states of a QP", 15, "qps", []Absence{
		{"messages for a responder in INIT or RTR", 2, noModify},
		{"ibv_query_qp after connecting", 1, "ORD and IRD are checked by cm/ird-ord"}}},
	{"order", 15, "ord", nil},
	{"sends, inline data, immediate data", 28, "snd, inl, imm, wim, --wire", nil},
	{"writes and reads", 19, "rdw, rdr", nil},
	{"atomics and fences", 14, "atm, fen, dth, --wire", nil},
	{"shared receive queues, RNR", 14, "srq, rnr", []Absence{
		{"a shared queue of another size while it is used", 1, noObject}}},
	{"protection, kinds of memory", 17, "acc, ci/lab/bad-input.sh", []Absence{
		{"a device address other than the process's, or zero", 2, noObject},
		{"registering again with other rights", 1, noObject}}},
	{"invalidation", 8, "inv", nil},
	{"memory windows", 13, "", []Absence{{"all of them, unsupported by name in group mw", 13, noObject}}},
	{"flush, CQ overrun, events", 21, "flu, cqo, evt", []Absence{
		{"a CQ of another size while it is used", 1, noObject},
		{"acknowledging events", 2, noObject},
		{"many CQs on one channel", 1, noObject},
		{"a device that is taken away", 1, "hangs or ends kernels"}}},
	{"unreliable datagrams and connections", 10, "", []Absence{{"all of them", 10, "reliable connections only"}}},
	{"long messages", 7, "lrg, --wire", nil},
	{"connection management", 20, "cm, --wire, ci/lab/rping-interop.sh, ci/lab/rdmacm.sh", []Absence{
		{"TIMEWAIT", 1, "rdma.Device does not tell of it"}}},
	{"death of a peer", 6, "dth", nil},
	{"streams, calls and handles above a device", 12, "grpc and lite suites", nil},
	{"iWARP on the wire", 70, "--wire", nil},
}

// Scope counts the catalogue: its requirements, and how many of them are shown.
func Scope() (covered, all int) {
	for _, a := range Areas {
		all += a.Requirements
		covered += a.covered()
	}
	return covered, all
}

func (a *Area) covered() int {
	n := a.Requirements
	for _, x := range a.Absent {
		n -= x.Count
	}
	return n
}

// ScopeText is Scope in one line.
func ScopeText() string {
	covered, all := Scope()
	return fmt.Sprintf("%d of %d requirements of the catalogue are covered, over all suites", covered, all)
}
