package main

import (
	"cmp"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
	"github.com/rdmaperf/rdmaperf/reports"
)

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
