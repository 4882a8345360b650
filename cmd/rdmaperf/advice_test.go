package main

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

func TestUnknownWordsAreAnswered(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"run --bogus", "unknown flag: --bogus; try rdmaperf run --help"},
		{"run --workloads latency", "unknown flag: --workloads; try --workload"},
		{"run --durations 3", "try --duration"},
		{"run --time 3", "unknown flag: --time; try rdmaperf run --help"},
		{"serve --bogus", "try rdmaperf serve --help"},
		{"run --junit x", "try rdmaperf conform --junit, or rdmaperf run --help"},
		{"help run2", `no command "run2"; try rdmaperf help run`},
		{"serve foo", `rdmaperf serve takes no argument "foo"; try rdmaperf serve --help`},
		{"run -n 10x", `-n, --iters "10x": want a whole number such as 1000, 10k or 1e6; try rdmaperf run --help`},
		{"run -q abc", `-q, --qp "abc": want a whole number; try`},
		{"run --rate x", `--rate "x": want a number; try`},
		{"run -q 99999999999999999999", "it is out of range"},
		{"run --polling lazily", "--polling lazily: want busy, adaptive or event; try rdmaperf run --help"},
		{"run ::1:18515", "[::1]:18515"},
		{"serve -p 99999", `--port "99999": want 0 to 65535`},
		{"serve --max-clients 0", `--max-clients "0": want 1 to 1048576`},
		{"completion tcsh", "rdmaperf completion has no command"},
		{"help nonesuch", `no command "nonesuch"; try rdmaperf --help`},
		{"man", "want one directory"},
		{"run -q 0", "--qp 0: want at least 1"},
		{"run --seed -1", "want a whole number from 0"},
		{"conform --case-timeout x", "want a time such as 10s or 500ms"},
		{"conform --explain foo", `case "foo" does not exist; try`},
		{"run localhost:http", `port "http": want 1 to 65535`},
		{"run node7:1 -p 2", "name two ports"},
		{"perftest ib_send_bw -s x", "want bytes from 1"},
		{"rnu", `unknown command "rnu" for "rdmaperf"; try rdmaperf run`},
		{"nonesuch", `unknown command "nonesuch" for "rdmaperf"; try rdmaperf --help`},
		{"run -H", "every sample is --raw here"},
		{"run --transport tcp -m 4096", "-m 4096 is for kernel verbs, and --transport tcp has none"},
		{"run --transport verbs -m 77", "--mtu 77: want 256, 512, 1024, 2048 or 4096"},
		{"run --transport iwarp -S 3", "-S 3 is for kernel verbs"},
		{"run --transport verbs -R -S 3", "rdma_cm chooses gid, mtu and sl"},
		{"run --transport mem -T 104", "-T 104: nothing of --transport mem marks packets; try verbs, tcp or iwarp"},
		{"run -T 256", `--tos "256": want 0 to 255`},
		{"run -c UD", `--connection "UD": reliable connections, RC, are the only ones`},
		{"run --tclass 104", "--tos here"},
		{"run --out_json", "--json FILE here"},
		{"run --use_cuda 0", "the memory is the host's"},
		{"run -N", "the peak costs nothing here"},
		{"run -l 0", `--post_list "0": want 1 to 65536`},
	} {
		want := reports.ExitUsage
		if strings.HasPrefix(c.args, "perftest") { // perftest's code of every failure
			want = reports.ExitFailed
		}
		r := rdmaperf(t, strings.Fields(c.args)...)
		if r.code != want || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, stderr %q, want %d and one line with %q", c.args, r.code, r.stderr, want, c.want)
		}
	}
}
