package drive

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

// Member implements reports.Detail.
func (*RPC) Member(string) string { return "rpc" }

// Bidirectional is what each side sent while the other did.
type Bidirectional struct {
	FromClient Direction `json:"from_client"`
	FromServer Direction `json:"from_server"`
}

// Direction is one side's stream over its own window, by its own clock.
type Direction struct {
	Operations          int64   `json:"operations"`
	DurationNs          int64   `json:"duration_ns"`
	BytesPerSecond      float64 `json:"bytes_per_second"`
	OperationsPerSecond float64 `json:"operations_per_second"`
}

// Member implements reports.Detail.
func (*Bidirectional) Member(string) string { return "bidirectional" }
