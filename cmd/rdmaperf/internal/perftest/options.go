package perftest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

type option struct {
	letter, long string
	arg          string // name of its value; "": it takes none
	what         string // what it does there
	do           func(c *Command, value string) error
	differs      string // how what do does is not what perftest does; "": the same
	quiet        bool   // differs without a change of what is measured: in the table alone
	instead      string // of a refused one: why, and what to do instead
}

// String is the name that a user types most: the letter, else the long one.
func (o *option) String() string {
	if o.letter != "" {
		return "-" + o.letter
	}
	return "--" + o.long
}

// options is every option of perftest, and rdmaperf's own.
var options = slices.Concat(letterOptions, longOptions, deviceOptions, rawOptions, []option{
	{long: "transport", arg: "STACK", what: "rdmaperf's own: measure this stack, such as tcp, iwarp or sched+verbs",
		do: func(c *Command, s string) error { c.stack = s; return nil }},
})

const (
	Same    = "same"
	Differs = "differs"
	Refused = "refused"
)

// Described is one option for a table or a help text.
type Described struct {
	Letter, Long, Arg string
	What              string // it does there
	Verdict           string // Same, Differs or Refused
	Why               string // how it differs, or what to do instead
	Own               bool   // rdmaperf's, not perftest's
}

// Describe lists every option of perftest and what becomes of it.
func Describe() []Described {
	var list []Described
	for i := range options {
		o := &options[i]
		d := Described{Letter: o.letter, Long: o.long, Arg: o.arg, What: o.what, Verdict: Same, Own: o.long == "transport"}
		switch {
		case o.do == nil:
			d.Verdict, d.Why = Refused, o.instead
		case o.differs != "":
			d.Verdict, d.Why = Differs, o.differs
		}
		list = append(list, d)
	}
	return list
}

// Advice is what to tell a user who types an option of perftest that run does not have, by letter or long name.
func Advice(name string) string {
	if a := advice[name]; a != "" {
		return a
	}
	for i := range options {
		o := &options[i]
		switch {
		case o.letter != name && o.long != name:
		case o.do == nil:
			return o.instead
		case o.differs != "":
			return o.differs
		default:
			return "rdmaperf perftest takes perftest's command lines"
		}
	}
	return ""
}

var advice = map[string]string{
	"H": "every sample is --raw here", "U": "every sample is --raw here",
	"report-histogram": "every sample is --raw here", "report-unsorted": "every sample is --raw here",
	"e": "--polling event here", "events": "--polling event here",
	"N":      "the peak costs nothing here, and is always taken",
	"noPeak": "the peak costs nothing here, and is always taken",
	"A":      "--op fetch_add or cmp_swap here", "atomic_type": "--op fetch_add or cmp_swap here",
	"write_with_imm": "--op write_imm here", "send_with_imm": "--op send_imm here",
	"tclass": "--tos here", "report-histogrm": "every sample is --raw here",
	"w": "--fail-if 'bw<10Gb/s' here", "limit_bw": "--fail-if 'bw<10Gb/s' here", "y": "--fail-if 'rate<3M' here",
	"limit_msgrate": "--fail-if 'rate<3M' here",
	"out_json":      "--json FILE here", "out_json_file": "--json FILE here",
	"perform_warm_up": "--warmup here, which is on by default", "f": "--warmup here", "margin": "--warmup here",
	"cpu_util": "CPU of both sides is in every result", "W": "--counters here", "report-counters": "--counters here",
	"rate_limit": "--rate here, for latency", "V": "rdmaperf version", "outs": "--tx-depth here",
	"F": "the CPU's frequency is in the document", "CPU-freq": "the CPU's frequency is in the document",
	"z": "both sides agree over TCP", "comm_rdma_cm": "both sides agree over TCP",
}

func nothing(*Command, string) error { return nil }

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
	noRaw    = "raw Ethernet is not measured: use a traffic generator, such as TRex"
	noDevice = "the memory is the host's: use perftest for memory of a device"
	noCrypto = "neither encryption nor signatures of a device are measured"
	noDC     = "only reliable connections are measured, and no DC"
	byRate   = "rates are limited in latency, as rdmaperf run --rate"
)

var deviceOptions = []option{
	{long: "run_infinitely", what: "go on, with a row every -D seconds",
		instead: "rdmaperf run --run-infinitely does that"},
	{long: "rate_limit", arg: "RATE", what: "limit the rate of messages", instead: byRate},
	{long: "rate_limit_type", arg: "TYPE", what: "who limits: HW, SW or PP", instead: byRate},
	{long: "rate_units", arg: "UNIT", what: "unit of --rate_limit", instead: byRate},
	{long: "burst_size", arg: "N", what: "messages at once under --rate_limit", instead: byRate},
	{long: "typical_pkt_size", arg: "BYTES", what: "size for which a device limits", instead: byRate},
	{long: "latency_gap", arg: "NS", what: "wait between two posts",
		instead: "a gap is inside perftest's figure; rdmaperf run " +
			"--rate leaves time between operations without counting it"},
	{long: "use-srq", what: "shared receive queue", instead: "receives are posted to each queue pair; use perftest"},
	{long: "flow_label", arg: "LIST", what: "flow labels of queue pairs", instead: "the flow label cannot be set"},
	{long: "pkey_index", arg: "N", what: "partition key", instead: "the first partition key is taken"},
	{long: "dlid", arg: "LID", what: "LID of the peer", instead: "the LID is the peer's own"},
	{long: "reversed", what: "the server sends", instead: "the client sends: start the server on the other host"},
	{long: "bind_source_ip", arg: "ADDRESS", what: "address to connect from",
		instead: "the source address is the routing table's"},
	{long: "wait_destroy", arg: "SECONDS", what: "wait before the end", instead: "queue pairs end with their session"},
	{long: "use_hugepages", what: "memory of huge pages",
		instead: "pages are the system's: let it have transparent huge pages"},
	{long: "odp", what: "on-demand paging", instead: "rdmaperf run --workload register measures on-demand paging"},
	{long: "use-null-mr", what: "a registration without memory", instead: "there is always memory behind a message"},
	{long: "payload_file_path", arg: "FILE", what: "the bytes to send",
		instead: "the bytes come from --seed in rdmaperf run"},
	{long: "no_lock", what: "queues without locks", instead: "thread domains are the provider's"},
	{long: "no_enhanced_reorder", what: "receives in order",
		instead: "what is received in which order is the provider's choice"},
	{long: "use_ooo", what: "placement out of order",
		instead: "what is placed in which order is the provider's choice"},
	{long: "unsolicited_write", what: "writes with immediate without a receive",
		instead: "SRD alone has these; " + onlyRC},
	{long: "connectionless", what: "a server of multicast alone", instead: onlyRC + ", and no multicast"},
	{long: "data_validation", what: "compare what arrives", instead: "rdmaperf run compares, --verify all every byte"},
	{long: "data_validation_debug", what: "print what is compared",
		instead: "rdmaperf run compares, --verify all every byte"},
	{long: "pin_cores", arg: "LIST", what: "CPUs to run on",
		instead: "taskset -c LIST rdmaperf perftest does that, or rdmaperf run --pin"},
	{long: "numa_node", arg: "N", what: "NUMA node to run on",
		instead: "numactl --cpunodebind N rdmaperf perftest does that"},
	{long: "congest_type", arg: "TYPE", what: "congestion control of hns",
		instead: "the device's own congestion control is used"},
	{long: "tph_mem", arg: "TYPE", what: "TPH, kind of memory", instead: "TLP processing hints are not asked for"},
	{long: "cpu_id", arg: "CPU", what: "TPH, CPU", instead: "TLP processing hints are not asked for"},
	{long: "ph", arg: "HINT", what: "TPH, hint", instead: "TLP processing hints are not asked for"},
	{long: "log_dci_streams", arg: "N", what: "streams of a DC initiator", instead: noDC},
	{long: "log_active_dci_streams", arg: "N", what: "active streams of a DC initiator", instead: noDC},
	{long: "aes_xts", what: "encrypt by AES-XTS", instead: noCrypto},
	{long: "encrypt_on_tx", what: "encrypt what is sent", instead: noCrypto},
	{long: "sig_before", what: "sign ahead of encrypting", instead: noCrypto},
	{long: "aes_block_size", arg: "BYTES", what: "block of AES-XTS", instead: noCrypto},
	{long: "kek_path", arg: "FILE", what: "key of keys", instead: noCrypto},
	{long: "credentials_path", arg: "FILE", what: "credentials of the device", instead: noCrypto},
	{long: "data_enc_keys_number", arg: "N", what: "keys for data", instead: noCrypto},
	{long: "data_enc_key_app_path", arg: "FILE", what: "program that makes keys", instead: noCrypto},
	{long: "sig_offload", what: "T10-DIF by the device", instead: noCrypto},
	{long: "mmap", arg: "FILE", what: "memory of a file", instead: noDevice},
	{long: "mmap-offset", arg: "BYTES", what: "where in that file", instead: noDevice},
	{long: "use_cuda", arg: "N", what: "memory of a CUDA device", instead: noDevice},
	{long: "use_cuda_bus_id", arg: "ID", what: "CUDA device by its PCIe address", instead: noDevice},
	{long: "use_cuda_dmabuf", what: "CUDA memory by DMA-BUF", instead: noDevice},
	{long: "use_cuda_pcie_mapping", what: "CUDA memory by PCIe BAR1", instead: noDevice},
	{long: "use_data_direct", what: "CUDA memory by Data-Direct", instead: noDevice},
	{long: "cuda_mem_type", arg: "N", what: "kind of CUDA memory", instead: noDevice},
	{long: "use_musa", arg: "N", what: "memory of a MUSA device", instead: noDevice},
	{long: "use_musa_bus_id", arg: "ID", what: "MUSA device by its PCIe address", instead: noDevice},
	{long: "use_musa_dmabuf", what: "MUSA memory by DMA-BUF", instead: noDevice},
	{long: "use_musa_pcie_mapping", what: "MUSA memory by PCIe BAR1", instead: noDevice},
	{long: "use_rocm", arg: "N", what: "memory of a ROCm device", instead: noDevice},
	{long: "use_rocm_dmabuf", what: "ROCm memory by DMA-BUF", instead: noDevice},
	{long: "use_neuron", arg: "N", what: "memory of a Neuron core", instead: noDevice},
	{long: "use_neuron_dmabuf", what: "Neuron memory by DMA-BUF", instead: noDevice},
	{long: "use_hl", arg: "N", what: "memory of a Habana device", instead: noDevice},
	{long: "use_mlu", arg: "N", what: "memory of an MLU", instead: noDevice},
	{long: "use_mlu_dmabuf", what: "MLU memory by DMA-BUF", instead: noDevice},
	{long: "use_opencl", arg: "N", what: "memory of an OpenCL device", instead: noDevice},
	{long: "opencl_platform_id", arg: "N", what: "platform of OpenCL", instead: noDevice},
	{long: "use_ib_dm_dmabuf", arg: "DEVICE", what: "memory of an RDMA device", instead: noDevice},
	{long: "gpu_touch", arg: "HOW", what: "touch the memory by the GPU", instead: noDevice},
}

var rawOptions = []option{
	{letter: "Z", long: "server", what: "raw Ethernet: be the server", instead: noRaw},
	{letter: "P", long: "client", what: "raw Ethernet: be the client", instead: noRaw},
	{letter: "B", long: "source_mac", arg: "MAC", what: "raw Ethernet: source", instead: noRaw},
	{letter: "E", long: "dest_mac", arg: "MAC", what: "raw Ethernet: destination", instead: noRaw},
	{letter: "J", long: "dest_ip", arg: "ADDRESS", what: "raw Ethernet: destination", instead: noRaw},
	{letter: "j", long: "source_ip", arg: "ADDRESS", what: "raw Ethernet: source", instead: noRaw},
	{letter: "K", long: "dest_port", arg: "PORT", what: "raw Ethernet: destination", instead: noRaw},
	{letter: "k", long: "source_port", arg: "PORT", what: "raw Ethernet: source", instead: noRaw},
	{letter: "Y", long: "ethertype", arg: "TYPE", what: "raw Ethernet: type", instead: noRaw},
	{letter: "G", long: "use_rss", what: "raw Ethernet: spread what is received", instead: noRaw},
	{long: "remote_mac", arg: "MAC", what: "raw Ethernet: as -E", instead: noRaw},
	{long: "local_mac", arg: "MAC", what: "raw Ethernet: as -B", instead: noRaw},
	{long: "remote_ip", arg: "ADDRESS", what: "raw Ethernet: as -J", instead: noRaw},
	{long: "local_ip", arg: "ADDRESS", what: "raw Ethernet: as -j", instead: noRaw},
	{long: "remote_port", arg: "PORT", what: "raw Ethernet: as -K", instead: noRaw},
	{long: "local_port", arg: "PORT", what: "raw Ethernet: as -k", instead: noRaw},
	{long: "tcp", what: "raw Ethernet: TCP packets", instead: noRaw},
	{long: "promiscuous", what: "raw Ethernet: receive everything", instead: noRaw},
	{long: "sniffer", what: "raw Ethernet: see everything", instead: noRaw},
	{long: "raw_ipv6", what: "raw Ethernet: IPv6 packets", instead: noRaw},
	{long: "raw_mcast", what: "raw Ethernet: multicast", instead: noRaw},
	{long: "flows", arg: "N", what: "raw Ethernet: flows", instead: noRaw},
	{long: "flows_burst", arg: "N", what: "raw Ethernet: packets of a flow at once", instead: noRaw},
	{long: "reply_every", arg: "N", what: "raw Ethernet: packets of an answer", instead: noRaw},
	{long: "vlan_en", what: "raw Ethernet: a VLAN tag", instead: noRaw},
	{long: "vlan_pcp", arg: "N", what: "raw Ethernet: priority of the VLAN", instead: noRaw},
	{long: "report-per-port", what: "a table of either port", instead: "one port at a time: measure each"},
}
