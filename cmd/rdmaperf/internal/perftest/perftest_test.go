package perftest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/reports"
)

func parse(t *testing.T, test, line string) (*Command, error) {
	t.Helper()
	of, ok := Find(test)
	if !ok {
		t.Fatalf("no test %s", test)
	}
	return Parse(of, strings.Fields(line))
}

// Command lines as people type them mean the same to rdmaperf run.
func TestCommandLinesAreUnderstood(t *testing.T) {
	for _, c := range []struct{ test, line, want string }{
		{"ib_send_lat", "-d mlx5_0 -x 3 -R -s 64 -n 1000 host",
			"--transport verbs --workload latency --op send --no-save --quiet --verify none -q 1 -I 0 -s 64 -n 1000 " +
				"--warmup none -d mlx5_0 -x 3 -R host"},
		{"ib_write_bw", "host", "--transport verbs:best0 --workload throughput --op write --no-save --quiet " +
			"--verify none -q 1 -I 0 -s 65536 -n 5000 --warmup none -t 128 -r 512 -Q 100 host"},
		{"ib_write_bw", "--report_gbits -FNabq4 host -t16 -Q 32 -p 7",
			"--transport verbs:best0 --workload throughput --op write --no-save --quiet --verify none -q 4 -I 0 -a -n " +
				"5000 --warmup none -t 16 -r 512 -Q 16 -b -p 7 host"},
		{"ib_read_bw", "-m 1024 -u 18 --outs=16 --perform_warm_up -D 3 h",
			"--transport verbs:best0 --workload throughput --op read --no-save --quiet --verify none -q 1 -I 0 -s " +
				"65536 -D 3 --warmup auto -t 16 -r 512 -Q 16 -m 1024 -u 18 h"},
		{"ib_send_bw", "-S 3 --tclass 104 --retry_count=7 -l 4 h",
			"--transport verbs:best0 --workload throughput --op send --no-save --quiet --verify none -q 1 -I 0 -s " +
				"65536 -n 1000 --warmup none -t 128 -r 512 -Q 100 --retry_count 7 -S 3 -T 104 -l 4 h"},
		{"ib_send_lat", "-R -T 104 -x 1 h",
			"--transport verbs --workload latency --op send --no-save --quiet --verify none -q 1 -I 0 -s 2 -n 1000 " +
				"--warmup none -T 104 -R -x 1 h"},
		{"ib_atomic_lat", "-A CMP_AND_SWAP -e h",
			"--transport verbs:best0 --workload latency --op cmp_swap --no-save --quiet --verify none -q 1 -I 0 -s 8 " +
				"-n 1000 --warmup none --polling event h"},
		{"ib_write_bw", "--write_with_imm --force-link=ib -n 9 h",
			"--transport verbs:best0 --workload throughput --op write_imm --no-save --quiet --verify none -q 1 -I 0 -s " +
				"65536 -n 9 --warmup none -t 128 -r 512 -Q 100 h"},
		{"ib_send_lat", "--transport iwarp --iters 7 -- h",
			"--transport iwarp --workload latency --op send --no-save --quiet --verify none -q 1 -I 0 -s 2 -n 7 " +
				"--warmup none h"},
	} {
		cmd, err := parse(t, c.test, c.line)
		if err != nil {
			t.Errorf("%s %s: %v", c.test, c.line, err)
			continue
		}
		if got := strings.Join(cmd.RunArgs("verbs:best0", ""), " "); got != c.want {
			t.Errorf("%s %s:\n %s\nwant\n %s", c.test, c.line, got, c.want)
		}
	}
	cmd, err := parse(t, "ib_send_bw", "-d rxe0 -p 19000 -x 1 -s 64")
	if err != nil || !cmd.Server() || strings.Join(cmd.ServeArgs(), " ") != "--quiet -p 19000 -d rxe0 -x 1" {
		t.Errorf("server: %v, %v", cmd, err)
	}
}

func TestMistakesNameTheOption(t *testing.T) {
	for _, c := range []struct{ test, line, want string }{
		{"ib_send_lat", "-c UD h", "-c UD: only reliable"},
		{"ib_send_lat", "-g h", "-g: only reliable"},
		{"ib_send_lat", "--use_cuda 0 h", "--use_cuda: the memory"},
		{"ib_send_lat", "-n 4 h", "-n 4: want at least 5"},
		{"ib_send_lat", "-n", "-n needs a value"},
		{"ib_send_lat", "-@ h", "no option -@"},
		{"ib_send_lat", "--nonesuch h", "no option --nonesuch"},
		{"ib_send_lat", "--report h", "--report may be"},
		{"ib_send_lat", "--rdma_cm=1 h", "takes no value"},
		{"ib_send_lat", "-b h", "-b is for bandwidth"},
		{"ib_send_lat", "--output=bandwidth h", "not what ib_send_lat measures"},
		{"ib_write_bw", "-H h", "-H and -U are for latency"},
		{"ib_write_bw", "-a -D 3 h", "exclude each other"},
		{"ib_write_bw", "a b", "one host at most"},
		{"ib_write_bw", "-m 77 h", "-m 77: want 256, 512"},
		{"ib_write_bw", "-S 16 h", "-S 16: want 0 to 15"},
		{"ib_write_bw", "-T 256 h", "-T 256: want 0 to 255"},
		{"ib_write_bw", "-l 0 h", "-l 0: want 1 to"},
		{"ib_write_bw", "-A CMP_AND_SWAP h", "in an atomic test"},
		{"ib_write_bw", "--force-link=EIB h", "--force-link EIB: want IB or Ethernet"},
		{"ib_read_bw", "--write_with_imm h", "want a test of writes"},
	} {
		if _, err := parse(t, c.test, c.line); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.test, c.line, err, c.want)
		}
	}
}

// Every row either does something or says why not, and is given once.
func TestOptionsAreOneTable(t *testing.T) {
	var seen []string
	for i := range options {
		o := &options[i]
		if (o.do == nil) != (o.instead != "") || o.what == "" || o.quiet && o.differs == "" {
			t.Errorf("%s: %+v: done or refused with what to do instead, and what it does", o, o)
		}
		for _, name := range []string{o.letter, o.long} {
			if name != "" && slices.Contains(seen, name) {
				t.Errorf("%s is given twice", name)
			}
			seen = append(seen, name)
		}
	}
	for _, name := range strings.Fields(perftestLong) {
		name, arg := strings.CutSuffix(name, ":")
		o, err := longOption(name)
		if err != nil || o.long != name || (o.arg != "") != arg {
			t.Errorf("--%s, with a value %v: %+v, %v", name, arg, o, err)
		}
	}
	for _, letter := range strings.Split("wypdimsntuSxcqIoMrQAlDfBTLEJjKkXWaFegzRvhbNVCHUOZP", "") {
		if !slices.ContainsFunc(options, func(o option) bool { return o.letter == letter }) {
			t.Errorf("no row for -%s", letter)
		}
	}
	if got, want := len(options), len(strings.Fields(perftestLong))+2; got != want { // --report-histogram, --transport
		t.Errorf("%d rows, want %d", got, want)
	}
}

// perftestLong are the long options of perftest 6.29 (long_options in perftest_parameters.c), with a colon behind
// those that take a value; those of every build option are there.
const perftestLong = `port: ib-dev: ib-port: mtu: size: iters: tx-depth: qp-timeout: sl: gid-index: all CPU-freq
connection: qp: events vector: inline_size: outs: mcg comm_rdma_cm rdma_cm tos: hop_limit: help MGID: rx-depth:
bidirectional cq-mod: noPeak version report-cycles report-histogrm report-unsorted atomic_type: dualport post_list:
duration: margin: source_mac: dest_mac: dest_ip: source_ip: dest_port: source_port: ethertype: limit_bw:
limit_msgrate: server client mac_fwd use_rss report-counters: force-link: remote_mac: local_mac: remote_ip: local_ip:
remote_port: local_port: run_infinitely report_gbits use-srq no_lock use-null-mr report-both reversed pkey_index: tcp
burst_size: typical_pkt_size: rate_limit: rate_limit_type: rate_units: output: cpu_util out_json out_json_file:
latency_gap: flow_label: retry_count: dont_xchg_versions payload_file_path: use_cuda: use_cuda_bus_id:
use_cuda_dmabuf use_cuda_pcie_mapping use_data_direct cuda_mem_type: use_musa: use_musa_bus_id: use_musa_dmabuf
use_musa_pcie_mapping use_rocm: use_rocm_dmabuf use_neuron: use_neuron_dmabuf use_hl: use_mlu: use_mlu_dmabuf
use_opencl: opencl_platform_id: use_ib_dm_dmabuf: gpu_touch: mmap: mmap-offset: ipv6 ipv6-addr raw_ipv6
report-per-port odp use_hugepages use_old_post_send promiscuous sniffer raw_mcast mr_per_qp dlid: tclass:
wait_destroy: flows: flows_burst: reply_every: perform_warm_up vlan_en vlan_pcp: recv_post_list: aes_xts
encrypt_on_tx sig_before aes_block_size: kek_path: credentials_path: data_enc_keys_number: data_enc_key_app_path:
log_dci_streams: log_active_dci_streams: disable_pcie_relaxed use_ooo congest_type: bind_source_ip: write_with_imm
send_with_imm no_enhanced_reorder unsolicited_write connectionless cqe_poll: tph_mem: cpu_id: ph:
disable_dynamic_polling sig_offload data_validation data_validation_debug pin_cores: numa_node: disable_numa`

// Rows have perftest's widths (REPORT_FMT and REPORT_FMT_LAT), so that columns cut by
// position or by blanks are the same.
func TestResultsStandWherePerftestPutsThem(t *testing.T) {
	lat := reports.Result{SizeBytes: 64, Operations: 1000, DurationNs: 1e9,
		Latency: &reports.Latency{Count: 1000, Min: 1210, Max: 9870, P50: 1300, Mean: 1333, StdDev: 120, P99: 2000,
			P999: 9000}}
	bw := reports.Result{SizeBytes: 65536, Operations: 5000, DurationNs: 1e9,
		Throughput: &reports.Throughput{BytesPerSecond: 12.5e9, OperationsPerSecond: 190734.863281,
			PeakBytesPerSecond: 12.6e9}}
	for _, c := range []struct {
		test, line string
		r          *reports.Result
		want       string
	}{
		{"ib_send_lat", "h", &lat,
			" 64      1000          1.21           9.87         1.30     \t       1.33        \t0.12   \t\t2.00    " +
				"\t\t9.00   \n"},
		{"ib_send_lat", "-D 1 h", &lat, " 64            1000            1.33           1000.00\n"},
		{"ib_send_lat", "--output=latency h", &lat, "1.333000\n"},
		{"ib_write_bw", "h", &bw, " 65536      5000             12016.30            11920.93\t\t     0.190735\n"},
		{"ib_write_bw", "--report_gbits -N h", &bw,
			" 65536      5000             0.00               100.00 \t\t     0.190735\n"},
		{"ib_write_bw", "--output=bandwidth --report_gbits h", &bw, "100.000000\n"},
		{"ib_write_bw", "--output=message_rate h", &bw, "0.190735\n"},
	} {
		cmd, err := parse(t, c.test, c.line)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := cmd.Result(&b, c.r, new(Limits)); err != nil || b.String() != c.want {
			t.Errorf("%s %s:\n%q, %v, want\n%q", c.test, c.line, b.String(), err, c.want)
		}
	}
}

// A limit is missed where no row reached it, as in perftest.
func TestALimitIsThatOfTheBestRow(t *testing.T) {
	at := func(gbits float64) *reports.Result {
		return &reports.Result{Throughput: &reports.Throughput{BytesPerSecond: gbits / 8 * 1e9, OperationsPerSecond: 5e6}}
	}
	for _, c := range []struct{ line, want string }{
		{"-a -w 100 h", ""}, {"-a -w 101 h", "BW result is below bw limit"}, {"-y 5 h", ""},
		{"-w 1 -y 5.1 h", "Msg rate  is below msg_rate limit"}, {"-y 5.1 h", "Msg rate  is below msg_rate limit"},
	} {
		cmd, _ := parse(t, "ib_write_bw", "--report_gbits "+c.line)
		var reached Limits
		for _, r := range []*reports.Result{at(10), at(100), at(50)} {
			if err := cmd.Result(new(bytes.Buffer), r, &reached); err != nil {
				t.Fatal(err)
			}
		}
		if got := cmd.Missed(reached); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

// A document has perftest's names in its order, and its decimals; both ways, a side counts its own messages.
func TestDocumentsAreAsPerftestWritesThem(t *testing.T) {
	both := reports.Result{SizeBytes: 64, Operations: 2000, Throughput: &reports.Throughput{BytesPerSecond: 1e6,
		OperationsPerSecond: 15625}, Detail: &drive.Bidirectional{FromClient: drive.Direction{Operations: 1000}}}
	for _, c := range []struct {
		test, line string
		link       Link
		want       string
	}{
		{"ib_send_bw", "-b -l 4 --report_gbits h", Link{Device: "mlx5_0", Layer: "Ethernet", MTU: 1024, GID: 3},
			`{ "test_info": { "test": "Send_Bidirectional_Post_List_BW_Test", "Dual_port": "OFF", "Device": "mlx5_0", ` +
				`"Number_of_qps": 1, "Transport_type": "IB", "Connection_type": "RC", "Using_SRQ": "OFF", ` +
				`"PCIe_relax_order": "OFF", "ibv_wr_API": "OFF", "TX_depth": 128, "Post_List": 4, "RX_depth": 512, ` +
				`"CQ_Moderation": 100, "Mtu": 1024, "Link_type": "Ethernet", "GID_index": 3, "Max_inline_data": 0, ` +
				`"rdma_cm_QPs": "OFF", "Use_ROCm_memory": "OFF", "Use_MUSA_memory": "OFF", "Data_ex_method": "Ethernet" }, ` +
				`"results": { "MsgSize": 64, "n_iterations": 1000, "BW_peak": 0.000000, "BW_average": 0.008000, ` +
				`"MsgRate": 0.015625 } }`},
		{"ib_write_bw", "--output=message_rate -R -T 8 h", Link{Device: "siw0", GID: -1, IWARP: true},
			`{ "test_info": { "test": "RDMA_Write_BW_Test", "Dual_port": "OFF", "Device": "siw0", "Number_of_qps": 1, ` +
				`"Transport_type": "IW", "Connection_type": "RC", "Using_SRQ": "OFF", "PCIe_relax_order": "OFF", ` +
				`"ibv_wr_API": "OFF", "TX_depth": 128, "CQ_Moderation": 100, "Max_inline_data": 0, "rdma_cm_QPs": "ON", ` +
				`"Use_ROCm_memory": "OFF", "Use_MUSA_memory": "OFF", "Data_ex_method": "Ethernet", "TOS": 8 }, ` +
				`"results": { "msgRate_avg": 0.015625 } }`},
	} {
		cmd, err := parse(t, c.test, c.line)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := cmd.WriteJSON(&b, &c.link, []reports.Result{both}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(b.String()), " "); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.line, got, c.want)
		}
	}
}

// perftest looks for a peak among up to 20,000 messages and says so where it does not.
func TestAPeakIsWherePerftestHasOne(t *testing.T) {
	r := reports.Result{SizeBytes: 64, Operations: 1000, Throughput: &reports.Throughput{BytesPerSecond: 1 << 20,
		PeakBytesPerSecond: 2 << 20}}
	for line, want := range map[string]string{"-n 20000 h": "2.00", "h": "2.00", "-n 20001 h": "0.00", "-D 1 h": "0.00",
		"-N h": "0.00"} {
		cmd, _ := parse(t, "ib_write_bw", line)
		var b, warned bytes.Buffer
		if err := cmd.Result(&b, &r, new(Limits)); err != nil || strings.Fields(b.String())[2] != want {
			t.Errorf("%s: %q, %v, want a peak of %s", line, b.String(), err, want)
		}
		cmd.Warn(&warned) // into memory
		if (warned.Len() > 0) != (want == "0.00" && line != "-N h") {
			t.Errorf("%s: %q", line, warned.String())
		}
	}
}

// No command line makes the parser panic, and what it takes gives arguments.
func FuzzParse(f *testing.F) {
	f.Add("ib_write_bw", "-d mlx5_0 -x 3 -aFb --report_gbits host")
	f.Add("ib_send_lat", "-H -U -n 10 -- -h")
	f.Fuzz(func(t *testing.T, name, line string) {
		test, ok := Find(name)
		if !ok {
			test = Tests[0]
		}
		c, err := Parse(test, strings.Fields(line))
		if err != nil {
			return
		}
		if args := c.RunArgs("verbs", ""); len(args) < 10 {
			t.Errorf("%q: %q", line, args)
		}
		c.ServeArgs()
	})
}
