package perftest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports"
)

// option is a row of the table of options.
type option struct {
	letter, long string
	arg          bool
	do           func(c *Command, value string) error // nil: refused
	refused      string                               // why
	remark       string                               // what is done otherwise, said to the user
	silent       string                               // why nothing has to be done, in the table only
}

// String is the name that a user types most: the letter, else the long one.
func (o *option) String() string {
	if o.letter != "" {
		return "-" + o.letter
	}
	return "--" + o.long
}

func nothing(*Command, string) error { return nil }

// number reads a whole number into a field.
func number(field func(*Command) *int, least, most int) func(*Command, string) error {
	return func(c *Command, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return fmt.Errorf("want %d to %d", least, most)
		}
		*field(c) = n
		return nil
	}
}

func set(field func(*Command) *bool) func(*Command, string) error {
	return func(c *Command, _ string) error {
		*field(c) = true
		return nil
	}
}

// mark is -T of rdma_cm and --tclass of other connections: one octet of every packet.
func mark(c *Command, s string) error {
	return number(func(c *Command) *int { return &c.tos }, 0, 255)(c, s)
}

// both passes a flag on to run and serve.
func both(flag string) func(*Command, string) error {
	return func(c *Command, s string) error {
		if s == "" {
			return errors.New("want a value")
		}
		c.runFlags = append(c.runFlags, flag, s)
		c.serveFlags = append(c.serveFlags, flag, s)
		return nil
	}
}

func positive(field func(*Command) *float64) func(*Command, string) error {
	return func(c *Command, s string) error {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= 0) {
			return errors.New("want a number from 0")
		}
		*field(c) = v
		return nil
	}
}

const (
	onlyRC   = "only reliable connections are measured"
	noRaw    = "raw Ethernet is not measured"
	noDevice = "the memory is the host's"
)

// options is every option of perftest, its letters in the order of its option table,
// then its long names.
var options = []option{
	{letter: "p", long: "port", arg: true, do: func(c *Command, s string) error {
		if n, err := strconv.Atoi(s); err != nil || n < 1 || n > 65535 {
			return errors.New("want 1 to 65535")
		}
		c.port = s
		return nil
	}},
	{letter: "d", long: "ib-dev", arg: true, do: func(c *Command, s string) error {
		c.device = s
		return both("-d")(c, s)
	}},
	{letter: "i", long: "ib-port", arg: true, do: both("-i")},
	{letter: "m", long: "mtu", arg: true, do: func(c *Command, s string) error {
		if !slices.Contains([]string{"256", "512", "1024", "2048", "4096"}, s) {
			return errors.New("want 256, 512, 1024, 2048 or 4096")
		}
		return number(func(c *Command) *int { return &c.mtu }, 256, 4096)(c, s)
	}},
	{letter: "s", long: "size", arg: true, do: func(c *Command, s string) error {
		if n, err := reports.ParseSize(s); err != nil || n < 1 {
			return errors.New("want bytes from 1, such as 64 or 64K")
		}
		c.size = s
		return nil
	}},
	{letter: "n", long: "iters", arg: true, do: func(c *Command, s string) error {
		if n, err := strconv.ParseInt(s, 10, 40); err != nil || n < 5 {
			return errors.New("want at least 5") // MIN_ITER
		}
		c.iters = s
		return nil
	}},
	{letter: "t", long: "tx-depth", arg: true, do: number(func(c *Command) *int { return &c.tx }, 1, 16384)},
	{letter: "T", long: "tos", arg: true, do: mark},
	{letter: "L", long: "hop_limit", arg: true, refused: "the hop limit cannot be set"},
	{letter: "u", long: "qp-timeout", arg: true, do: number(func(c *Command) *int { return &c.timeout }, 1, 31)},
	{letter: "S", long: "sl", arg: true, do: number(func(c *Command) *int { return &c.sl }, 0, 15)},
	{letter: "x", long: "gid-index", arg: true, do: func(c *Command, s string) error {
		if err := number(func(c *Command) *int { return &c.gid }, 0, 255)(c, s); err != nil {
			return err
		}
		return both("-x")(c, s)
	}},
	{letter: "c", long: "connection", arg: true, do: func(_ *Command, s string) error {
		if s != "RC" {
			return errors.New(onlyRC)
		}
		return nil
	}},
	{letter: "q", long: "qp", arg: true, do: number(func(c *Command) *int { return &c.qps }, 1, 4096)},
	{letter: "I", long: "inline_size", arg: true, do: number(func(c *Command) *int { return &c.inline }, 0, 1<<20)},
	{letter: "o", long: "outs", arg: true, do: number(func(c *Command) *int { return &c.reads }, 1, 255)},
	{letter: "M", long: "MGID", arg: true, refused: onlyRC + ", and no multicast"},
	{letter: "r", long: "rx-depth", arg: true, do: number(func(c *Command) *int { return &c.rx }, 1, 32768)},
	{letter: "Q", long: "cq-mod", arg: true, do: number(func(c *Command) *int { return &c.cqMod }, 1, 1024)},
	{letter: "A", long: "atomic_type", arg: true, do: func(c *Command, s string) error {
		op := map[string]string{"FETCH_AND_ADD": "fetch_add", "CMP_AND_SWAP": "cmp_swap"}[s]
		if op == "" || c.Test.title[:3] != "Ato" {
			return errors.New("want FETCH_AND_ADD or CMP_AND_SWAP, in an atomic test")
		}
		c.Test.op, c.Test.title = op, "Atomic "+s
		return nil
	}},
	{letter: "l", long: "post_list", arg: true, do: number(func(c *Command) *int { return &c.postList }, 1, 32768)},
	{letter: "D", long: "duration", arg: true, do: func(c *Command, s string) error {
		if n, err := strconv.Atoi(s); err != nil || n < 1 {
			return errors.New("want seconds from 1")
		}
		c.duration = s
		return nil
	}},
	{letter: "f", long: "margin", arg: true, do: nothing,
		remark: "nothing is cut from the window; a warm-up is --perform_warm_up"},
	{letter: "a", long: "all", do: set(func(c *Command) *bool { return &c.all })},
	{letter: "F", long: "CPU-freq", do: nothing, silent: "there is no check of the CPU frequency"},
	{letter: "e", long: "events", do: set(func(c *Command) *bool { return &c.events })},
	{letter: "g", long: "mcg", refused: onlyRC + ", and no multicast"},
	{letter: "z", long: "comm_rdma_cm", do: nothing, remark: "sides agree over TCP"},
	{letter: "R", long: "rdma_cm", do: func(c *Command, _ string) error {
		c.cm = true
		c.runFlags = append(c.runFlags, "-R")
		return nil
	}},
	{letter: "v", long: "mac_fwd", refused: noRaw},
	{letter: "h", long: "help", do: set(func(c *Command) *bool { return &c.Help })},
	{letter: "b", long: "bidirectional", do: set(func(c *Command) *bool { return &c.both })},
	{letter: "N", long: "noPeak", do: set(func(c *Command) *bool { return &c.NoPeak })},
	{letter: "V", long: "version", do: set(func(c *Command) *bool { return &c.Version })},
	{letter: "C", long: "report-cycles", refused: "times are in us; the clock's cycles are not read"},
	{letter: "H", long: "report-histogram", do: set(func(c *Command) *bool { return &c.Histogram })},
	{long: "report-histogrm", do: set(func(c *Command) *bool { return &c.Histogram })}, // as perftest spells it
	{letter: "U", long: "report-unsorted", do: set(func(c *Command) *bool { return &c.Unsorted })},
	{letter: "O", long: "dualport", refused: "one port at a time"},
	{letter: "Z", long: "server", refused: noRaw},
	{letter: "P", long: "client", refused: noRaw},
	{letter: "B", long: "source_mac", arg: true, refused: noRaw},
	{letter: "E", long: "dest_mac", arg: true, refused: noRaw},
	{letter: "J", long: "dest_ip", arg: true, refused: noRaw},
	{letter: "j", long: "source_ip", arg: true, refused: noRaw},
	{letter: "K", long: "dest_port", arg: true, refused: noRaw},
	{letter: "k", long: "source_port", arg: true, refused: noRaw},
	{letter: "Y", long: "ethertype", arg: true, refused: noRaw},
	{letter: "G", long: "use_rss", refused: noRaw},
	{letter: "X", long: "vector", arg: true, refused: "the completion vector cannot be chosen"},
	{letter: "w", long: "limit_bw", arg: true, do: positive(func(c *Command) *float64 { return &c.LimitBW })},
	{letter: "y", long: "limit_msgrate", arg: true, do: positive(func(c *Command) *float64 { return &c.LimitRate })},
	{letter: "W", long: "report-counters", arg: true,
		refused: "device counters are in the results of rdmaperf run --counters"},

	{long: "report_gbits", do: set(func(c *Command) *bool { return &c.Gbits })},
	{long: "output", arg: true, do: func(c *Command, s string) error {
		if !slices.Contains([]string{"bandwidth", "message_rate", "latency"}, s) {
			return errors.New("want bandwidth, message_rate or latency")
		}
		c.Output = s
		return nil
	}},
	{long: "out_json", do: set(func(c *Command) *bool { return &c.JSON })},
	{long: "out_json_file", arg: true, do: func(c *Command, s string) error {
		c.JSON, c.JSONFile = true, s
		return nil
	}},
	{long: "cpu_util", do: set(func(c *Command) *bool { return &c.CPUUtil })},
	{long: "perform_warm_up", do: set(func(c *Command) *bool { return &c.warm })},
	{long: "retry_count", arg: true, do: number(func(c *Command) *int { return &c.retry }, 1, 7)},
	{long: "dont_xchg_versions", do: nothing, silent: "versions are the control protocol's"},
	{long: "ipv6", do: nothing, silent: "addresses of both families are taken"},
	{long: "ipv6-addr", do: nothing, silent: "addresses of both families are taken"},
	{long: "use_old_post_send", do: nothing, silent: "there is one way to post"},
	{long: "disable_pcie_relaxed", do: nothing, remark: "relaxed ordering is never asked for"},
	{long: "force-link", arg: true, do: nothing, remark: "the link layer is the port's"},
	{long: "mr_per_qp", do: nothing, remark: "every queue pair has a registration of its own"},
	{long: "report-both", do: nothing, remark: "-b shows each direction in rdmaperf run"},

	{long: "run_infinitely", refused: "rdmaperf run --run-infinitely does that"},
	{long: "rate_limit", arg: true, refused: "rates are limited in latency, as rdmaperf run --rate"},
	{long: "rate_limit_type", arg: true, refused: "see --rate_limit"},
	{long: "rate_units", arg: true, refused: "see --rate_limit"},
	{long: "burst_size", arg: true, refused: "see --rate_limit"},
	{long: "typical_pkt_size", arg: true, refused: "see --rate_limit"},
	{long: "latency_gap", arg: true,
		refused: "a gap is inside perftest's figure; rdmaperf run --rate leaves time between operations without " +
			"counting it"},
	{long: "use-srq", refused: "shared receive queues are not measured"},
	{long: "recv_post_list", arg: true, do: nothing, remark: "rdmaperf chooses the lists of its posts itself"},
	{long: "tclass", arg: true, do: mark},
	{long: "flow_label", arg: true, refused: "the flow label cannot be set"},
	{long: "pkey_index", arg: true, refused: "the partition key cannot be chosen"},
	{long: "dlid", arg: true, refused: "the LID is the peer's own"},
	{long: "reversed", refused: "the client sends"},
	{long: "bind_source_ip", arg: true, refused: "the source address is the routing table's"},
	{long: "wait_destroy", arg: true, refused: "queue pairs end with their session"},
	{long: "use_hugepages", refused: "pages are the system's"},
	{long: "odp", refused: "on-demand paging is not used here"},
	{long: "mmap", arg: true, refused: noDevice},
	{long: "mmap-offset", arg: true, refused: noDevice},
	{long: "use-null-mr", refused: noDevice},
	{long: "payload_file_path", arg: true, refused: "the bytes come from --seed in rdmaperf run"},
	{long: "no_lock", refused: "thread domains are the provider's"},
	{long: "use_cuda", arg: true, refused: noDevice},
	{long: "use_cuda_bus_id", arg: true, refused: noDevice},
	{long: "use_cuda_dmabuf", refused: noDevice},
	{long: "use_rocm", arg: true, refused: noDevice},
	{long: "use_hl", arg: true, refused: noDevice},
	{long: "tcp", refused: noRaw},
	{long: "promiscuous", refused: noRaw},
	{long: "raw_ipv6", refused: noRaw},
	{long: "raw_mcast", refused: noRaw},
	{long: "report-per-port", refused: "one port at a time"},
	{long: "flows", arg: true, refused: noRaw},

	// rdmaperf's own: what to measure where there is no device, or beside one.
	{long: "transport", arg: true, do: func(c *Command, s string) error { c.stack = s; return nil }},
}

// Advice is what a user of perftest should know who types an option of a tool, by letter
// or long name, at rdmaperf run, which has no such option.
func Advice(name string) string {
	if a := advice[name]; a != "" {
		return a
	}
	for i := range options {
		o := &options[i]
		if o.letter != name && o.long != name {
			continue
		}
		switch {
		case o.do == nil:
			return o.refused
		case o.remark != "":
			return o.remark
		case o.silent != "":
			return o.silent
		}
		return "rdmaperf perftest takes perftest's command lines"
	}
	return ""
}

// advice is for options that run has by another name.
var advice = map[string]string{
	"H": "every sample is --raw here", "U": "every sample is --raw here",
	"report-histogram": "every sample is --raw here", "report-unsorted": "every sample is --raw here",
	"e": "--polling event here", "events": "--polling event here",
	"N":      "the peak costs nothing here, and is always taken",
	"noPeak": "the peak costs nothing here, and is always taken",
	"A":      "--op fetch_add or cmp_swap here", "atomic_type": "--op fetch_add or cmp_swap here",
	"tclass": "--tos here", "report-histogrm": "every sample is --raw here",
	"w": "--fail-if 'bw<10Gb/s' here", "limit_bw": "--fail-if 'bw<10Gb/s' here", "y": "--fail-if 'rate<3M' here",
	"limit_msgrate": "--fail-if 'rate<3M' here",
	"out_json":      "--json FILE here", "out_json_file": "--json FILE here",
	"perform_warm_up": "--warmup here, which is on by default", "f": "--warmup here", "margin": "--warmup here",
	"cpu_util": "CPU of both sides is in every result", "W": "--counters here", "report-counters": "--counters here",
	"rate_limit": "--rate here, for latency", "V": "rdmaperf version", "outs": "--tx-depth here",
}

// Described is one option for a table.
type Described struct {
	Letter, Long string
	Verdict      string // done, accepted or refused
	Why          string // what is done otherwise, or why not
}

// Describe lists every option of perftest and what becomes of it.
func Describe() []Described {
	var list []Described
	for i := range options {
		o := &options[i]
		d := Described{Letter: o.letter, Long: o.long, Verdict: "done"}
		switch {
		case o.do == nil:
			d.Verdict, d.Why = "refused", o.refused
		case o.remark != "":
			d.Verdict, d.Why = "accepted", o.remark
		case o.silent != "":
			d.Verdict, d.Why = "accepted", o.silent
		}
		list = append(list, d)
	}
	return list
}
