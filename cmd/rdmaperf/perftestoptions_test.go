package main

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
	"github.com/rdmaperf/rdmaperf/reports"
)

// optionValues are good values of perftest's options that take one, by letter or long name.
var optionValues = map[string]string{
	"p": "", "d": "mlx5_0", "i": "1", "m": "1024", "s": "64", "n": "100", "t": "16", "T": "104", "L": "64", "u": "18",
	"S": "3", "x": "1",
	"c": "RC", "q": "2", "I": "16", "o": "4", "M": "ff::1", "r": "64", "Q": "4", "A": "FETCH_AND_ADD", "l": "4",
	"D": "1", "f": "1",
	"B": "0:1:2:3:4:5", "E": "0:1:2:3:4:5", "J": "192.0.2.1", "j": "192.0.2.1", "K": "7", "k": "7", "Y": "0x800",
	"X": "1", "w": "1", "y": "1", "W": "port_rcv_data",
	"output": "bandwidth", "out_json_file": "/dev/null", "retry_count": "7", "force-link": "IB", "rate_limit": "1",
	"rate_limit_type": "SW", "rate_units": "g",
	"burst_size": "1", "typical_pkt_size": "64", "latency_gap": "10", "recv_post_list": "2", "tclass": "104",
	"flow_label": "1", "pkey_index": "0",
	"dlid": "1", "bind_source_ip": "192.0.2.1", "wait_destroy": "1", "mmap": "/dev/zero", "mmap-offset": "0",
	"payload_file_path": "/dev/null",
	"use_cuda":          "0", "use_cuda_bus_id": "0", "flows": "2", "transport": "tcp",
}

// stranger is the port of a server that speaks something else and is gone at once.
func stranger(t *testing.T) (port string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	peer := stranger(t)
	for _, d := range perftest.Describe() {
		name, key := "--"+d.Long, d.Long
		if d.Letter != "" {
			name, key = "-"+d.Letter, d.Letter
		}
		value, takes := optionValues[key]
		if key == "p" {
			value = peer
		}
		option := []string{name}
		if takes {
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
		}
		check := func(r ran, refused bool, says string) {
			t.Helper()
			text := strings.TrimSuffix(r.stderr, "\n")
			last := text[strings.LastIndexByte(text, '\n')+1:]
			switch {
			case !refused && r.code != reports.ExitOK && r.code != reports.ExitPeer && r.code != reports.ExitNotRun:
				t.Errorf("%s: exit %d, %q, want it to be taken", name, r.code, r.stderr)
			case refused && (r.code != reports.ExitUsage || text != last || !strings.Contains(last, says)):
				t.Errorf("%s: exit %d, %q, want 2 and one line with %q", name, r.code, r.stderr, says)
			}
		}
		base := []string{"perftest", test, "-n", "100"}
		switch key {
		case "n", "D":
			base = base[:2]
		}
		check(rdmaperf(t, append(append(append(base, stack...), option...), "127.0.0.1:"+peer)...),
			d.Verdict == "refused", d.Why)

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
			check(rdmaperf(t, args...), true, "reads outstanding, is chosen by --tx-depth here")
		case key == "s" || key == "a":
			check(rdmaperf(t, append(args, "127.0.0.1:"+peer)...), false, "")
		case same:
			check(rdmaperf(t, append(append(args, "-s", "64"), "127.0.0.1:"+peer)...), false, "")
		default:
			advice := perftest.Advice(key)
			if len(advice) < 10 {
				t.Errorf("%s: advice %q", name, advice)
			}
			check(rdmaperf(t, append(args, "127.0.0.1:"+peer)...), true, ": "+advice)
		}
	}
}
