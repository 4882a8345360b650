// Package perftest reads the command lines of perftest's tools for reliable connections, and prints results as they do
// (perftest 6.29, src/perftest_parameters.c and .h).
// Every option of perftest is the same, differs in a way that is said, or is refused with the reason. Both sides must
// be rdmaperf. Figures differ where nothing is trimmed from the longest samples, and latency is from the post until the
// arrival.
package perftest

import (
	"slices"
	"strconv"
)

// Command is a command line of one of the tools, understood.
type Command struct {
	Test Test
	Host string // of the server; "": this is the server

	Help, Version bool

	Gbits     bool
	Output    string // "", "bandwidth", "message_rate" or "latency": this figure alone
	JSON      bool   // --out_json
	JSONFile  string // where
	CPUUtil   bool
	NoPeak    bool
	Unsorted  bool // every sample in the order of time
	Histogram bool // every sample from the shortest to the longest
	LimitBW   float64
	LimitRate float64
	Remarks   []string // what is accepted and done otherwise, for stderr

	port       string
	device     string
	stack      string   // --transport, rdmaperf's own
	runFlags   []string // of rdmaperf run
	serveFlags []string // of rdmaperf serve
	size       string
	all        bool
	iters      string
	duration   string
	tx, rx     int
	cqMod      int
	inline     int
	qps        int
	reads      int
	mtu        int
	timeout    int
	retry      int
	sl, tos    int
	postList   int
	gid        int
	both       bool
	events     bool
	cm         bool
	warm       bool
}

func newCommand(t Test) *Command {
	c := &Command{Test: t, JSONFile: "perftest_out.json", tx: 128, rx: 512, cqMod: 100, qps: 1, gid: -1}
	if t.latency {
		c.tx, c.cqMod = 1, 1
	}
	return c
}

// Link is what a side stands on.
type Link struct {
	Device string // of RDMA, else the stack
	Layer  string // IB or Ethernet; "": there is no device
	MTU    int    // bytes; 0: there is no device
	GID    int    // index; -1: none, or rdma_cm chooses
	IWARP  bool
	Stack  string
}

// Server tells whether the command line is the server's.
func (c *Command) Server() bool { return c.Host == "" }

// ServerRows tells whether the server prints rows: not that of latency whose client does everything.
func (c *Command) ServerRows() bool { return !c.Test.latency || !c.Test.oneSided }

// GID is the entry of the port's GID table that was named, -1 for none; CM tells that rdma_cm connects.
func (c *Command) GID() (index int, cm bool) { return c.gid, c.cm }

// MTU is the path MTU that was asked for in bytes, 0 for the port's.
func (c *Command) MTU() int { return c.mtu }

// Transport is the stack to measure: the one named, kernel verbs where a device or a GID is, or chosen.
func (c *Command) Transport(chosen string) string {
	switch {
	case c.stack != "":
		return c.stack
	case c.device != "" || c.gid >= 0:
		return "verbs"
	}
	return chosen
}

// RunArgs are the arguments of rdmaperf run that do the same; samples is the file for every sample, "" for none.
func (c *Command) RunArgs(chosen, samples string) []string {
	t := &c.Test
	workload := "throughput"
	if t.latency {
		workload = "latency"
	}
	args := []string{"--transport", c.Transport(chosen), "--workload", workload, "--op", t.op, "--no-save", "--quiet",
		"--verify", "none", // as perftest, which compares nothing
		"-q", strconv.Itoa(c.qps), "-I", strconv.Itoa(c.inline)}
	switch {
	case c.all:
		args = append(args, "-a")
	case c.size != "":
		args = append(args, "-s", c.size)
	default:
		args = append(args, "-s", strconv.Itoa(t.size))
	}
	switch {
	case c.duration != "":
		args = append(args, "-D", c.duration)
	case c.iters != "":
		args = append(args, "-n", c.iters)
	default:
		args = append(args, "-n", strconv.Itoa(t.iters))
	}
	if c.warm {
		args = append(args, "--warmup", "auto")
	} else {
		args = append(args, "--warmup", "none")
	}
	if !t.latency {
		depth := c.tx
		if t.oneSided && c.reads > 0 {
			depth = min(depth, c.reads) // what is outstanding on the wire is the lesser of both
		}
		args = append(args, "-t", strconv.Itoa(depth), "-r", strconv.Itoa(c.rx), "-Q",
			strconv.Itoa(max(1, min(c.cqMod, depth))))
		if c.both {
			args = append(args, "-b")
		}
	}
	for _, f := range []struct {
		flag string
		n    int
	}{{"-m", c.mtu}, {"-u", c.timeout}, {"--retry_count", c.retry}, {"-S", c.sl}, {"-T", c.tos}, {"-l", c.postList}} {
		if f.n > 0 {
			args = append(args, f.flag, strconv.Itoa(f.n))
		}
	}
	if c.events {
		args = append(args, "--polling", "event")
	}
	if c.port != "" {
		args = append(args, "-p", c.port)
	}
	if samples != "" {
		args = append(args, "--raw="+samples)
	}
	return append(append(args, c.runFlags...), c.Host)
}

// ServeArgs are the arguments of rdmaperf serve that do the same.
func (c *Command) ServeArgs() []string {
	args := []string{"--quiet"}
	if c.port != "" {
		args = append(args, "-p", c.port)
	}
	return append(args, c.serveFlags...)
}

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
