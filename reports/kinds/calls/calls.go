package calls

import (
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Of is what calls were, of any workload that stands on them; else nil.
func Of(r *reports.Result) *RPC {
	switch d := r.Detail.(type) {
	case *RPC:
		return d
	case interface{ CallDetail() *RPC }:
		return d.CallDetail()
	}
	return nil
}

// RPC is what a workload of calls was: the carrier's part that sweeps change, and
// what both sides used beside the calls. Latency is that of the whole call, and
// Throughput counts the payload of both directions.
type RPC struct {
	Call          string `json:"call"` // unary, stream (exchanges on one), oneway (messages to the server)
	RequestBytes  int64  `json:"request_bytes"`
	ResponseBytes int64  `json:"response_bytes"`
	Connections   int    `json:"connections"`
	Outstanding   int    `json:"outstanding"` // calls on each connection

	Form      string `json:"form"`           // tcp, unix, dropin, fused, bufconn
	Mode      string `json:"mode,omitempty"` // bp, event, bpev; of the forms over RDMA
	BusyNs    int64  `json:"busy_ns,omitempty"`
	Pollers   int    `json:"pollers,omitempty"`
	RingBytes int64  `json:"ring_bytes,omitempty"`

	// RegisteredBytes is the registered memory of one connection on one side.
	RegisteredBytes int64 `json:"registered_bytes,omitempty"`

	Idle     *IdleCPU  `json:"idle,omitempty"`
	Resident *Resident `json:"resident,omitempty"`
}

// IdleCPU is the processor time of both sides while all connections stood and
// nothing was called.
type IdleCPU struct {
	DurationNs    int64   `json:"duration_ns"`
	ClientSeconds float64 `json:"client_seconds"`
	ServerSeconds float64 `json:"server_seconds"`
}

// Resident is the resident memory of both processes behind the window, after a
// collection, and how much of it came with each connection.
type Resident struct {
	ClientBytes         int64   `json:"client_bytes"`
	ServerBytes         int64   `json:"server_bytes"`
	ClientPerConnection float64 `json:"client_bytes_per_connection"`
	ServerPerConnection float64 `json:"server_bytes_per_connection"`
}

// Share is what calls that stand in one table have in common; sizes may differ.
type Share struct {
	call     string
	response int64 // sameSize for answers as long as their requests
}

const sameSize = -1

// callOneway is the kind of call whose answer is no message but a count.
const callOneway = "oneway"

// ShareOf is what a result of calls shares with others of one table.
func ShareOf(r *reports.Result) any {
	c := Of(r)
	if c.ResponseBytes == r.SizeBytes && c.Call != callOneway {
		return Share{c.Call, sameSize}
	}
	return Share{c.Call, c.ResponseBytes}
}

// Kind is that of calls of one size, tensorKind of calls that carry tensors.
var (
	Kind       = callKind(Results, answerWords)
	TensorKind = callKind(TensorResults, func(c Share) []string { return []string{tensorWays[c.call]} })
)

// tensorWays is what each kind of call of the workload tensor carries.
var tensorWays = map[string]string{
	"push":     "a tensor to the server, answered by a note",
	"pull":     "a tensor to the client, asked for by a note",
	"exchange": "a tensor each way, bandwidth of both directions",
}

// callKind is what workloads of calls have in common; payload says what the calls
// carry.
func callKind(of *reports.Workload, payload func(c Share) []string) *reports.Kind {
	return &reports.Kind{
		Workload:      of.Name,
		Results:       of,
		Share:         ShareOf,
		What:          func(l reports.Load) string { return l.Workload + " " + l.Share.(Share).call },
		Conditions:    func(l reports.Load) string { return callConditions(l, payload(l.Share.(Share))) },
		Connection:    "connection",
		Sleeps:        Sleeps,
		Usage:         Usage,
		SideBySide:    []*reports.SideBySide{callSides},
		OwnSideBySide: true,
		PageTables:    PageTables,
		Sections:      []*reports.PageSection{gainSection, Section},
		OwnSweep:      true,
		LatencyCard:   func(k reports.Condition) string { return view.Capital(k.What()) },
	}
}

// Sleeps tells calls whose carrier waits in the kernel for each message: by the mode event,
// or as the runtime's network poller does. The other modes poll for some time first.
func Sleeps(r *reports.Result) bool {
	m := Of(r).Mode
	return m == "" || m == "event"
}

// answerWords say how long answers are.
func answerWords(c Share) []string {
	switch {
	case c.call == callOneway:
		return []string{"messages to the server, which counts them at the end"}
	case c.response == sameSize:
		return []string{"answers as long as requests", "bandwidth of both directions"}
	}
	return []string{"answers of " + view.Plural(c.response, "byte"), "bandwidth of both directions"}
}

// callConditions are everything that shapes a figure of calls, but the stack.
func callConditions(l reports.Load, payload []string) string {
	what := "call"
	switch l.Share.(Share).call {
	case callOneway, "stream":
		what = "stream"
	}
	parts := []string{view.Plural(int64(l.Depth), what) + " outstanding on each connection"}
	if !l.Sweep {
		parts = append(parts, view.Plural(int64(l.QPs), "connection"))
	}
	parts = append(append(parts, payload...), l.Loop())
	if l.RoundTrip != "" {
		parts = append(parts, l.RoundTrip+" round trip")
	}
	return strings.Join(parts, ", ")
}

// plainCalls tells whether a result is of calls and of nothing that stands on them.
func plainCalls(r *reports.Result) bool {
	_, ok := reports.LoadOf(r).Share.(Share)
	return ok
}
