package perftest

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

var letterOptions = []option{
	{letter: "p", long: "port", arg: "PORT", what: "TCP port to listen on or to connect to (18515)",
		do: func(c *Command, s string) error {
			if n, err := strconv.Atoi(s); err != nil || n < 1 || n > 65535 {
				return errors.New("want 1 to 65535")
			}
			c.port = s
			return nil
		}},
	{letter: "d", long: "ib-dev", arg: "DEVICE", what: "RDMA device (the first one)",
		do: func(c *Command, s string) error {
			c.device = s
			return both("-d")(c, s)
		}, differs: "without it the first device with an ACTIVE port, and without any device iwarp in user space",
		quiet: true},
	{letter: "i", long: "ib-port", arg: "PORT", what: "port of the device (1)", do: both("-i"),
		differs: "without it the first ACTIVE port", quiet: true},
	{letter: "m", long: "mtu", arg: "BYTES", what: "path MTU, 256 to 4096 (that of the port)",
		do: func(c *Command, s string) error {
			if !slices.Contains([]string{"256", "512", "1024", "2048", "4096"}, s) {
				return errors.New("want 256, 512, 1024, 2048 or 4096")
			}
			return number(func(c *Command) *int { return &c.mtu }, 256, 4096)(c, s)
		}},
	{letter: "s", long: "size", arg: "BYTES", what: "size of a message (65536 for bandwidth, 2 for latency)",
		do: func(c *Command, s string) error {
			if n, err := reports.ParseSize(s); err != nil || n < 1 {
				return errors.New("want bytes from 1, such as 64 or 64K")
			}
			c.size = s
			return nil
		}},
	{letter: "n", long: "iters", arg: "N", what: "messages of each queue pair, at least 5 (1000; ib_write_bw 5000)",
		do: func(c *Command, s string) error {
			if n, err := strconv.ParseInt(s, 10, 40); err != nil || n < 5 {
				return errors.New("want at least 5") // MIN_ITER
			}
			c.iters = s
			return nil
		}},
	{letter: "t", long: "tx-depth", arg: "N", what: "messages outstanding on a queue pair (128)",
		do: number(func(c *Command) *int { return &c.tx }, 1, 16384)},
	{letter: "T", long: "tos", arg: "N", what: "type of service of connections by rdma_cm", do: mark,
		differs: "without -R it is the traffic class, as --tclass is", quiet: true},
	{letter: "L", long: "hop_limit", arg: "N", what: "hop limit",
		instead: "packets have the kernel's hop limit; set it by the route"},
	{letter: "u", long: "qp-timeout", arg: "N", what: "local ACK timeout, 4.096 us * 2^N (14)",
		do: number(func(c *Command) *int { return &c.timeout }, 1, 31)},
	{letter: "S", long: "sl", arg: "N", what: "service level (0)",
		do: number(func(c *Command) *int { return &c.sl }, 0, 15)},
	{letter: "x", long: "gid-index", arg: "N", what: "entry of the port's GID table",
		do: func(c *Command, s string) error {
			if err := number(func(c *Command) *int { return &c.gid }, 0, 255)(c, s); err != nil {
				return err
			}
			return both("-x")(c, s)
		}, differs: "without it the entry of the address by which the host is reached", quiet: true},
	{letter: "c", long: "connection", arg: "TYPE", what: "type of connection (RC)",
		do: func(_ *Command, s string) error {
			if s != "RC" {
				return errors.New(onlyRC)
			}
			return nil
		}, differs: "RC alone; UC, UD, XRC, DC and SRD are refused", quiet: true},
	{letter: "q", long: "qp", arg: "N", what: "queue pairs (1)",
		do: number(func(c *Command) *int { return &c.qps }, 1, 4096)},
	{letter: "I", long: "inline_size", arg: "BYTES", what: "messages up to this size are posted inline",
		do:      number(func(c *Command) *int { return &c.inline }, 0, 1<<20),
		differs: "0 without it, where perftest takes 220 or 236 for latency of sends and writes", quiet: true},
	{letter: "o", long: "outs", arg: "N", what: "reads and atomics outstanding (as many as the device can)",
		do: number(func(c *Command) *int { return &c.reads }, 1, 255)},
	{letter: "M", long: "MGID", arg: "GID", what: "multicast group", instead: onlyRC + ", and no multicast"},
	{letter: "r", long: "rx-depth", arg: "N", what: "receives posted (512)",
		do: number(func(c *Command) *int { return &c.rx }, 1, 32768)},
	{letter: "Q", long: "cq-mod", arg: "N", what: "one completion for so many messages (100)",
		do: number(func(c *Command) *int { return &c.cqMod }, 1, 1024)},
	{letter: "A", long: "atomic_type", arg: "TYPE", what: "FETCH_AND_ADD or CMP_AND_SWAP (FETCH_AND_ADD)",
		do: func(c *Command, s string) error {
			op := map[string]string{"FETCH_AND_ADD": "fetch_add", "CMP_AND_SWAP": "cmp_swap"}[s]
			if op == "" || !strings.HasPrefix(c.Test.title, "Ato") {
				return errors.New("want FETCH_AND_ADD or CMP_AND_SWAP, in an atomic test")
			}
			c.Test.op, c.Test.title = op, "Atomic "+s
			return nil
		}},
	{letter: "l", long: "post_list", arg: "N", what: "messages posted by one call (1)",
		do:      number(func(c *Command) *int { return &c.postList }, 1, 32768),
		differs: "the most of a call; without it a call has as many as there is room for", quiet: true},
	{letter: "D", long: "duration", arg: "SECONDS", what: "measure for a time instead of a number of messages",
		do: func(c *Command, s string) error {
			if n, err := strconv.Atoi(s); err != nil || n < 1 {
				return errors.New("want seconds from 1")
			}
			c.duration = s
			return nil
		}, differs: "the whole time is measured: perftest leaves -f seconds out at either end", quiet: true},
	{letter: "f", long: "margin", arg: "SECONDS", what: "leave so much of -D out at either end (2)", do: nothing,
		differs: "nothing is left out of the window; a warm-up is --perform_warm_up"},
	{letter: "a", long: "all", what: "all sizes from 2 to 8 MiB", do: set(func(c *Command) *bool { return &c.all }),
		differs: "rows are printed when all are measured, and the file of --out_json has all sizes, as a list",
		quiet:   true},
	{letter: "F", long: "CPU-freq", what: "no warning of CPUs that change their frequency", do: nothing},
	{letter: "e", long: "events", what: "sleep until the completion queue has an event",
		do: set(func(c *Command) *bool { return &c.events })},
	{letter: "g", long: "mcg", what: "send to a multicast group", instead: onlyRC + ", and no multicast"},
	{letter: "z", long: "comm_rdma_cm", what: "exchange what both sides must know by rdma_cm", do: nothing,
		differs: "sides agree over TCP"},
	{letter: "R", long: "rdma_cm", what: "connect queue pairs by rdma_cm", do: func(c *Command, _ string) error {
		c.cm = true
		c.runFlags = append(c.runFlags, "-R")
		return nil
	}},
	{letter: "v", long: "mac_fwd", what: "forward MAC addresses", instead: noRaw},
	{letter: "h", long: "help", what: "print this help", do: set(func(c *Command) *bool { return &c.Help }),
		differs: "exit code 0", quiet: true},
	{letter: "b", long: "bidirectional", what: "both sides send at once",
		do: set(func(c *Command) *bool { return &c.both })},
	{letter: "N", long: "noPeak", what: "no BW peak", do: set(func(c *Command) *bool { return &c.NoPeak })},
	{letter: "V", long: "version", what: "print the version", do: set(func(c *Command) *bool { return &c.Version }),
		differs: "rdmaperf's own version, exit code 0", quiet: true},
	{letter: "C", long: "report-cycles", what: "times in cycles of the CPU",
		instead: "times are in us; the clock's cycles are not read"},
	{letter: "H", long: "report-histogram", what: "print every sample, from the shortest to the longest",
		do:      set(func(c *Command) *bool { return &c.Histogram }),
		differs: "with the longest two, which perftest leaves out; perftest spells it --report-histogrm", quiet: true},
	{letter: "U", long: "report-unsorted", what: "print every sample, in the order of time",
		do: set(func(c *Command) *bool { return &c.Unsorted })},
	{letter: "O", long: "dualport", what: "both ports of a device at once",
		instead: "one port at a time: measure each, or both by two processes"},
	{letter: "X", long: "vector", arg: "N", what: "completion vector of -e",
		instead: "the completion vector is the provider's choice; move its interrupt by /proc/irq"},
	{letter: "w", long: "limit_bw", arg: "LIMIT", what: "fail where no BW average is at least this, in the table's unit",
		do: positive(func(c *Command) *float64 { return &c.LimitBW })},
	{letter: "y", long: "limit_msgrate", arg: "MILLIONS", what: "fail where no message rate is at least this",
		do:      positive(func(c *Command) *float64 { return &c.LimitRate }),
		differs: "also without -w, where perftest looks at it with -w alone", quiet: true},
	{letter: "W", long: "report-counters", arg: "LIST", what: "print how counters of the device changed",
		instead: "device counters are in the results of rdmaperf run --counters"},
}

var longOptions = []option{
	{long: "report-histogrm", what: "as -H", do: set(func(c *Command) *bool { return &c.Histogram })},
	{long: "report_gbits", what: "bandwidth in Gb/s instead of MiB/s",
		do: set(func(c *Command) *bool { return &c.Gbits })},
	{long: "output", arg: "FIGURE", what: "print one figure alone: bandwidth, message_rate or latency",
		do: func(c *Command, s string) error {
			if !slices.Contains([]string{"bandwidth", "message_rate", "latency"}, s) {
				return errors.New("want bandwidth, message_rate or latency")
			}
			c.Output = s
			return nil
		}},
	{long: "out_json", what: "write the report to perftest_out.json here",
		do: set(func(c *Command) *bool { return &c.JSON })},
	{long: "out_json_file", arg: "FILE", what: "the file of --out_json", do: func(c *Command, s string) error {
		c.JSONFile = s
		return nil
	}},
	{long: "cpu_util", what: "show how busy this machine's CPUs were, with -D",
		do:      set(func(c *Command) *bool { return &c.CPUUtil }),
		differs: "of this process, where perftest counts all user time of the machine", quiet: true},
	{long: "perform_warm_up", what: "messages ahead of the window that do not count",
		do:      set(func(c *Command) *bool { return &c.warm }),
		differs: "in every test, sends and latency too", quiet: true},
	{long: "retry_count", arg: "N", what: "transport retries (7)",
		do: number(func(c *Command) *int { return &c.retry }, 1, 7), differs: "6 without it", quiet: true},
	{long: "dont_xchg_versions", what: "do not exchange versions", do: nothing,
		differs: "versions are the control protocol's, which is exchanged", quiet: true},
	{long: "ipv6", what: "take an IPv6 GID", do: nothing, differs: "the host's address decides", quiet: true},
	{long: "ipv6-addr", what: "take the host's IPv6 address", do: nothing,
		differs: "addresses of both families are taken", quiet: true},
	{long: "use_old_post_send", what: "post by ibv_post_send",
		do: nothing, differs: "there is one way to post", quiet: true},
	{long: "disable_pcie_relaxed", what: "registrations without relaxed ordering", do: nothing,
		differs: "relaxed ordering is never asked for", quiet: true},
	{long: "force-link", arg: "LINK", what: "take the link for IB or Ethernet", do: func(_ *Command, s string) error {
		if s = strings.ToUpper(s); !strings.HasPrefix(s, "IB") && !strings.HasPrefix(s, "ETHERNET") { // str_link_layer
			return errors.New("want IB or Ethernet")
		}
		return nil
	}, differs: "the link layer is the port's"},
	{long: "mr_per_qp", what: "a registration for each queue pair", do: nothing,
		differs: "every queue pair has a registration of its own, always", quiet: true},
	{long: "report-both", what: "with -b, a table of either direction", do: nothing,
		differs: "-b shows each direction in rdmaperf run"},
	{long: "recv_post_list", arg: "N", what: "receives posted by one call", do: nothing,
		differs: "rdmaperf chooses the lists of its receives itself"},
	{long: "cqe_poll", arg: "N", what: "completions taken by one call", do: nothing,
		differs: "a call takes what there is"},
	{long: "disable_dynamic_polling", what: "always take as many completions by one call", do: nothing,
		differs: "a call takes what there is", quiet: true},
	{long: "tclass", arg: "N", what: "traffic class", do: mark},
	{long: "write_with_imm", what: "writes with immediate", do: immediate("write", "RDMA_Write_imm")},
	{long: "send_with_imm", what: "sends with immediate", do: immediate("send", "Send_imm"),
		differs: "over iwarp it carries the immediate alone: -s 8", quiet: true},
	{long: "disable_numa", what: "do not bind to the device's NUMA node", do: nothing,
		differs: "nothing is bound to a NUMA node", quiet: true},
}

// mark is -T of rdma_cm and --tclass of other connections: one octet of every packet.
func mark(c *Command, s string) error {
	return number(func(c *Command) *int { return &c.tos }, 0, 255)(c, s)
}

// immediate has a test's messages carry one.
func immediate(op, title string) func(*Command, string) error {
	return func(c *Command, _ string) error {
		if c.Test.op != op {
			return errors.New("want a test of " + op + "s")
		}
		c.Test.op, c.Test.title, c.Test.receives = op+"_imm", title, true
		return nil
	}
}
