package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
	"github.com/rdmaperf/rdmaperf/reports"
)

// perftestPair runs one of the tools as server and as client, the client by a link of the tool's name, and returns what
// both printed.
func perftestPair(t *testing.T, tool string, serves []string, args ...string) (server, client ran) {
	t.Helper()
	port := freePort(t)
	s := start(t, append([]string{"perftest", tool, "--transport", "tcp", "-p", port}, serves...)...)
	inListen := regexp.MustCompile(inListen(t, port))
	eventually(t, "the server listens", func() bool { // a connection would be its first client
		v6, _ := os.ReadFile("/proc/net/tcp6")
		v4, _ := os.ReadFile("/proc/net/tcp")
		return inListen.Match(v6) || inListen.Match(v4)
	})
	link := filepath.Join(t.TempDir(), tool)
	must(t, os.Symlink(need(os.Executable())(t), link))
	c := exec.Command(link, append([]string{"--transport", "tcp", "-p", port}, append(args, "127.0.0.1")...)...)
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	client = ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
	if err != nil && client.code < 0 {
		t.Fatal(err)
	}
	return ran{s.wait(20 * time.Second), s.out.String(), s.errs.String()}, client
}

// inListen is the port in the state LISTEN as proc_net(5) writes it.
func inListen(t *testing.T, port string) string {
	t.Helper()
	return fmt.Sprintf(":%04X 0+:0000 0A", need(net.LookupPort("tcp", port))(t))
}

func TestPerftestMeasuresAndEnds(t *testing.T) {
	server, client := perftestPair(t, "ib_write_bw", nil, "-s", "4096", "-n", "500", "-F", "--report_gbits")
	if server.code != 0 || client.code != 0 || client.stderr != "" ||
		!strings.Contains(server.stdout, "* Waiting for client to connect... *") {
		t.Fatalf("server %+v\nclient %+v", server, client)
	}
	lines := strings.Split(strings.TrimRight(client.stdout, "\n"), "\n")
	n := len(lines)
	if n < 5 || lines[1] != "                    RDMA_Write BW Test" || strings.Trim(lines[n-1], "-") != "" ||
		lines[n-3] != " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]" ||
		!regexp.MustCompile(`^ 4096 +500 +\d+\.\d\d +\d+\.\d\d\s+\d+\.\d{6}$`).MatchString(lines[n-2]) {
		t.Errorf("client's output:\n%s", client.stdout)
	}
}

// What a server prints behind its banner is what the client does, but for the sender's depth (ctx_print_test_info), and
// both write the file of --out_json. Both ways, a side counts its own messages, and there is a peak.
func TestPerftestServersPrintTheSameBlock(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		tool, options, row string
		rows               int
	}{
		{"ib_write_bw", "-s 4096 -n 300", `^ 4096 +300 +[1-9]\d*\.\d\d +[1-9]`, 1},
		{"ib_send_bw", "-s 4096 -n 300 -b", `^ 4096 +300 +[1-9]\d*\.\d\d +[1-9]`, 1},
		{"ib_read_bw", "-s 64 -D 1 --report_gbits", `^ 64 +\d+ +0\.00`, 1},
		{"ib_send_lat", "-a -n 20", `^ \d+ +20 +\d`, 23},
	} {
		file := filepath.Join(dir, c.tool)
		options := c.options + " --out_json --out_json_file=" + file
		serves := strings.Fields(options + ".server")
		server, client := perftestPair(t, c.tool, serves, strings.Fields(options+".client")...)
		if server.code != 0 || client.code != 0 {
			t.Fatalf("%s: server %+v\nclient %+v", c.tool, server, client)
		}
		_, block, _ := strings.Cut(server.stdout, "connect... *\n************************************\n")
		ours := strings.Split(strings.TrimPrefix(client.stdout, " WARNING: BW peak won't be measured in this run.\n"), "\n")
		theirs := strings.Split(block, "\n")
		only := func(lines, others []string) (left []string) {
			for _, l := range lines {
				if !slices.Contains(others, l) {
					left = append(left, l)
				}
			}
			return left
		}
		for _, l := range append(only(ours, theirs), only(theirs, ours)...) {
			if !strings.HasPrefix(l, " TX depth ") && !strings.HasPrefix(l, " RX depth ") {
				t.Errorf("%s: one side alone prints %q", c.tool, l)
			}
		}
		rows := 0
		for _, l := range ours {
			if regexp.MustCompile(c.row).MatchString(l) {
				rows++
			}
		}
		if rows != c.rows {
			t.Errorf("%s: %d rows like %s, want %d:\n%s", c.tool, rows, c.row, c.rows, client.stdout)
		}
		for _, side := range []string{".server", ".client"} {
			b, err := os.ReadFile(file + side)
			if !json.Valid(b) {
				t.Errorf("%s%s: %v, %s", c.tool, side, err, b)
			}
		}
	}
}

func TestPerftestSamplesAndJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "o.json")
	server, client := perftestPair(t, "ib_send_lat", nil, "-n", "50", "-s", "64", "-U", "-H", "--out_json", "--out_json_file="+file)
	if server.code != 0 || client.code != 0 {
		t.Fatalf("server %+v\nclient %+v", server, client)
	}
	if got := strings.Count(client.stdout, "#, usec\n"); got != 2 || strings.Count(client.stdout, "\n50, ") != 2 {
		t.Errorf("%d lists of samples:\n%s", got, client.stdout)
	}
	// The columns' names, the samples, and the names once more above the row (print_report_lat).
	names := strings.Index(client.stdout, " #bytes #iterations")
	again := strings.LastIndex(client.stdout, "---\n #bytes #iterations")
	if samples := strings.Index(client.stdout, "#, usec\n"); names < 0 || names > samples ||
		again < strings.LastIndex(client.stdout, "\n50, ") {
		t.Errorf("samples do not lie between the names of the columns:\n%s", client.stdout)
	}
	b := need(os.ReadFile(file))(t)
	var doc struct {
		Info    map[string]any `json:"test_info"`
		Results struct {
			MsgSize   int     `json:"MsgSize"`
			Count     int     `json:"n_iterations"`
			Typical   float64 `json:"t_typical"`
			Percent99 float64 `json:"percentile_99"`
		} `json:"results"`
	}
	if err := json.Unmarshal(b, &doc); err != nil || doc.Results.MsgSize != 64 || doc.Results.Count != 50 ||
		doc.Results.Typical <= 0 || doc.Results.Percent99 < doc.Results.Typical {
		t.Errorf("%v, %s", err, b)
	}
	for name, want := range map[string]any{"test": "Send_Latency_Test", "Transport_type": "IB", "Using_SRQ": "OFF",
		"rdma_cm_QPs": "OFF", "Dual_port": "OFF", "Device": "tcp", "Max_inline_data": 0., "TX_depth": 1.} {
		if got := doc.Info[name]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestPerftestLimitsAndOneFigure(t *testing.T) {
	_, client := perftestPair(t, "ib_write_bw", nil, "-n", "100", "-w", "1e9", "--output=bandwidth")
	if client.code != 1 || !regexp.MustCompile(`^\d+\.\d{6}\n$`).MatchString(client.stdout) ||
		!strings.Contains(client.stderr, "Error: BW result is below bw limit") {
		t.Errorf("%+v", client)
	}
}

func TestPerftestHelp(t *testing.T) {
	if r := rdmaperf(t, "perftest", "ib_read_bw", "-h"); r.code != 0 || !strings.Contains(r.stdout, "  -s, --size=BYTES         size of a message") ||
		!strings.Contains(r.stdout, "that are refused:") || strings.Contains(r.stdout, "done") {
		t.Errorf("help of a test: %+v", r)
	}
	contains(t, runs(t, "perftest").stdout, "ib_write_bw")
}

// optionValues are good values of perftest's options that take one and are not refused, by letter or long name.
var optionValues = map[string]string{
	"p": "", "d": "mlx5_0", "i": "1", "m": "1024", "s": "64", "n": "100", "t": "16", "T": "104", "u": "18", "S": "3",
	"x": "1", "c": "RC", "q": "2", "I": "16", "o": "4", "r": "64", "Q": "4", "A": "FETCH_AND_ADD", "l": "4", "D": "1",
	"f": "1", "w": "1", "y": "1", "output": "bandwidth", "out_json_file": "/dev/null", "retry_count": "7",
	"force-link": "IB", "recv_post_list": "2", "cqe_poll": "16", "tclass": "104", "transport": "tcp",
}

// unknown peer is the port of a server that speaks something else and is gone at once.
func foreignPeer(t *testing.T) (port string) {
	l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "220 mail.example\r\n")
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// TestEveryOptionOfPerftestIsAnswered: run and perftest either take an option, and get as far
// as a peer or device that is not there, or refuse it in one line that names it and says why
// or what to type instead. None ends in a bare "unknown flag".
func TestEveryOptionOfPerftestIsAnswered(t *testing.T) {
	peer, took := foreignPeer(t), []int{reports.ExitOK, reports.ExitPeer, reports.ExitNotRun}
	for _, d := range perftest.Describe() {
		name, key := "--"+d.Long, d.Long
		if d.Letter != "" {
			name, key = "-"+d.Letter, d.Letter
		}
		value := cmp.Or(optionValues[key], "1")
		if key == "p" {
			value = peer
		}
		option := []string{name}
		if d.Arg != "" {
			option = append(option, value)
		}
		stack := []string{"--transport", "tcp"}
		switch key {
		case "d", "i", "m", "u", "S", "x", "R", "retry_count":
			stack = []string{"--transport", "verbs"}
		case "transport":
			stack = nil
		}
		test := "ib_write_bw"
		switch key {
		case "A":
			test, stack = "ib_atomic_bw", []string{"--transport", "iwarp"}
		case "H", "U", "report-histogram", "report-unsorted", "report-histogrm":
			test = "ib_send_lat"
		case "send_with_imm":
			test, stack = "ib_send_bw", []string{"--transport", "iwarp", "-s", "8"}
		}
		check := func(r ran, refused bool, says string, codes ...int) {
			t.Helper()
			text := strings.TrimSuffix(r.stderr, "\n")
			last := text[strings.LastIndexByte(text, '\n')+1:]
			switch {
			case !slices.Contains(codes, r.code) || !refused && strings.Contains(last, "perftest has no option"):
				t.Errorf("%s: exit %d, %q, want one of %v", name, r.code, r.stderr, codes)
			case refused && (text != last || !strings.Contains(last, says)):
				t.Errorf("%s: exit %d, %q, want one line with %q", name, r.code, r.stderr, says)
			}
		}
		base := []string{"perftest", test, "-n", "100"}
		switch key {
		case "n", "D":
			base = base[:2]
		}
		r := rdmaperf(t, append(append(append(base, stack...), option...), "127.0.0.1:"+peer)...)
		check(r, d.Verdict == perftest.Refused, d.Why, reports.ExitOK, reports.ExitFailed)
		if taken := strings.Contains(r.stderr, "127.0.0.1:"+peer) || strings.Contains(r.stderr, "verbs") || r.code == 0; !taken &&
			d.Verdict != perftest.Refused {
			t.Errorf("%s: %q, want it to be taken", name, r.stderr)
		}

		run := newRootCommand()
		c, _, _ := run.Find([]string{"run"})
		same := c.Flags().Lookup(d.Long) != nil && d.Letter == "" ||
			d.Letter != "" && c.Flags().ShorthandLookup(d.Letter) != nil
		args := append([]string{"run", "--op", "write", "--workload", "throughput"}, append(stack, option...)...)
		switch {
		// not perftest's; --output=bandwidth is in TestDestinations
		case key == "h" || key == "transport" || key == "output":
			continue
		case key == "o":
			check(rdmaperf(t, args...), true, "reads outstanding, is chosen by --tx-depth here", reports.ExitUsage)
		case key == "s" || key == "a":
			check(rdmaperf(t, append(args, "127.0.0.1:"+peer)...), false, "", took...)
		case same:
			check(rdmaperf(t, append(append(args, "-s", "64"), "127.0.0.1:"+peer)...), false, "", took...)
		default:
			advice := perftest.Advice(key)
			if len(advice) < 10 {
				t.Errorf("%s: advice %q", name, advice)
			}
			check(rdmaperf(t, append(args, "127.0.0.1:"+peer)...), true, ": "+advice, reports.ExitUsage)
		}
	}
}
