package reports

import (
	"strings"
)

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

// rpcLoad is what calls that stand in one table share; sizes may differ.
type rpcLoad struct {
	call     string
	response int64 // sameSize for answers as long as their requests
}

const sameSize = -1

func rpcLoadOf(r *Result) rpcLoad {
	switch {
	case r.RPC == nil:
		return rpcLoad{}
	case r.RPC.ResponseBytes == r.SizeBytes && r.RPC.Call != callOneway:
		return rpcLoad{r.RPC.Call, sameSize}
	}
	return rpcLoad{r.RPC.Call, r.RPC.ResponseBytes}
}

// callOneway is the kind of call whose answer is no message but a count.
const callOneway = "oneway"

// rpcConditions are everything that shapes a figure of calls, but the stack.
func (l load) rpcConditions() string {
	if l.kv != (kvLoad{}) {
		return l.kvConditions()
	}
	what := "call"
	switch l.rpc.call {
	case callOneway, "stream":
		what = "stream"
	}
	parts := []string{plural(int64(l.depth), what) + " outstanding on each connection"}
	if !l.sweep {
		parts = append(parts, plural(int64(l.qps), "connection"))
	}
	switch {
	case l.rpc.call == callOneway:
		parts = append(parts, "messages to the server, which counts them at the end")
	case l.workload == "tensor":
		parts = append(parts, tensorWays[l.rpc.call])
	case l.rpc.response == sameSize:
		parts = append(parts, "answers as long as requests", "bandwidth of both directions")
	default:
		parts = append(parts, "answers of "+plural(l.rpc.response, "byte"), "bandwidth of both directions")
	}
	if l.arrivals != "" {
		parts = append(parts, "open loop with "+l.arrivals+" arrivals")
	} else {
		parts = append(parts, "closed loop")
	}
	if l.roundTrip != "" {
		parts = append(parts, l.roundTrip+" round trip")
	}
	return strings.Join(parts, ", ")
}
