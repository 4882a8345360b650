package perftest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

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
	} {
		if _, err := parse(t, c.test, c.line); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.test, c.line, err, c.want)
		}
	}
}

// Every row either does something or says why not, and stands there once.
func TestOptionsAreOneTable(t *testing.T) {
	var seen []string
	for i := range options {
		o := &options[i]
		if (o.do == nil) != (o.refused != "") {
			t.Errorf("%s: both or neither done and refused", o)
		}
		for _, name := range []string{o.letter, o.long} {
			if name != "" && slices.Contains(seen, name) {
				t.Errorf("%s stands there twice", name)
			}
			seen = append(seen, name)
		}
	}
	// The letters of perftest 26.04's getopt_long.
	for _, letter := range strings.Split("wypdimsntuSxcqIoMrQAlDfBTLEJjKkXWaFegzRvhbNVCHUOZP", "") {
		if letterOption(letter) == nil {
			t.Errorf("no row for -%s", letter)
		}
		if Advice(letter) == "" {
			t.Errorf("no advice for -%s", letter)
		}
	}
}

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
		if _, err := cmd.Result(&b, c.r); err != nil || b.String() != c.want {
			t.Errorf("%s %s:\n%q, %v, want\n%q", c.test, c.line, b.String(), err, c.want)
		}
	}
	cmd, _ := parse(t, "ib_write_bw", "-w 200 --report_gbits h")
	if missed, err := cmd.Result(new(bytes.Buffer), &bw); err != nil ||
		!strings.Contains(missed, "below the limit of 200") {
		t.Errorf("limit: %q, %v", missed, err)
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
