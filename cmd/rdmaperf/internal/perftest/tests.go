package perftest

import "slices"

// Test is one of perftest's tools.
type Test struct {
	Name     string
	title    string // as its banner has it
	op       string // of --op
	latency  bool
	size     int // default -s, bytes
	iters    int // default -n
	oneSided bool
	receives bool // the server has a receive queue in use
}

// Tests are the tools that measure reliable connections.
var Tests = []Test{
	{Name: "ib_send_lat", title: "Send", op: "send", latency: true, size: 2, iters: 1000, receives: true},
	{Name: "ib_send_bw", title: "Send", op: "send", size: 65536, iters: 1000, receives: true},
	{Name: "ib_write_lat", title: "RDMA_Write", op: "write", latency: true, size: 2, iters: 1000},
	{Name: "ib_write_bw", title: "RDMA_Write", op: "write", size: 65536, iters: 5000},
	{Name: "ib_read_lat", title: "RDMA_Read", op: "read", latency: true, size: 2, iters: 1000, oneSided: true},
	{Name: "ib_read_bw", title: "RDMA_Read", op: "read", size: 65536, iters: 1000, oneSided: true},
	{Name: "ib_atomic_lat", title: "Atomic FETCH_AND_ADD", op: "fetch_add", latency: true, size: 8, iters: 1000,
		oneSided: true},
	{Name: "ib_atomic_bw", title: "Atomic FETCH_AND_ADD", op: "fetch_add", size: 8, iters: 1000, oneSided: true},
}

// Find returns the test of a name.
func Find(name string) (Test, bool) {
	i := slices.IndexFunc(Tests, func(t Test) bool { return t.Name == name })
	if i < 0 {
		return Test{}, false
	}
	return Tests[i], true
}

// Names lists the tests.
func Names() []string {
	var names []string
	for _, t := range Tests {
		names = append(names, t.Name)
	}
	return names
}
