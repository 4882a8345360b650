package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// What a stack cannot do is left out with a line, and the rest is measured. If nothing is left, the first stack's error
// and exit code are the run's.
func TestRunLeavesOutWhatAStackCannotDo(t *testing.T) {
	latency := "--workload latency -s 64 -n 20 "
	for _, c := range []struct {
		args string
		code int
		want []string // measured
		said []string // lines of stderr
	}{
		{latency + "--transport tcp,grpc(tcp) --op send,call", 0, []string{"tcp send 64 x1", "grpc(tcp) call 64 x1"},
			[]string{"Left out: points of tcp, no operation call.",
				"Left out: points of grpc(tcp), no operation send."}},
		{latency + "--transport tcp,grpc(tcp) --op send", 0, []string{"tcp send 64 x1"},
			[]string{"Left out: grpc(tcp), no operation send."}},
		{latency + "--transport mem,lite+mem --op write --qp-sweep 1,64", 0,
			[]string{"mem write 64 x1", "lite+mem write 64 x1", "mem write 64 x64"},
			[]string{"Left out: points of lite+mem, 64 QPs are above the device's limit of 62."}},
		{latency + "--transport lite+mem --op write --qp-sweep 63,64", 2, nil,
			[]string{"rdmaperf: check lite+mem: 63 QPs are above the device's limit of 62, 64 QPs are above the " +
				"device's limit of 62; try another value, or another --transport"}},
		{latency + "--transport grpc(tcp),grpc(unix) --op send", 2, nil,
			[]string{"rdmaperf: check grpc(tcp): no operation send; try "}},
		{"--workload register --pattern threads --register-threads 64 --arms cache -s 4K,2G -D 2ms --transport mem", 0,
			[]string{"mem threads 4096 x1"},
			[]string{"Left out: 1 of 2 points of register, 137438953472 bytes are above the limit here, "}},
		{"--workload register --pattern threads --register-threads 64 --arms cache -s 2G -D 2ms --transport mem",
			77, nil,
			[]string{"rdmaperf: register cache 2 GiB repeated, 64 threads: 137438953472 bytes are above the limit " +
				"here, "}},
	} {
		r := rdmaperf(t, append([]string{"run", "--no-save", "--format", "json"}, strings.Fields(c.args)...)...)
		doc, got := new(reports.Document), []string(nil)
		if r.stdout != "" {
			doc = document(t, []byte(r.stdout))
		}
		for _, res := range doc.Results {
			stack, _, _ := strings.Cut(res.Stack, "(k=4)")
			if below, ok := strings.CutPrefix(res.Stack, stack+"(k=4)"); ok {
				stack += below
			}
			got = append(got, fmt.Sprintf("%s %s %d x%v", stack, res.Op, res.SizeBytes, res.QPs))
		}
		lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
		if r.code != c.code || !slices.Equal(got, c.want) || !slices.EqualFunc(lines, c.said, strings.HasPrefix) {
			t.Errorf("%s: exit %d, measured %q, said %q; want %d, %q, %q", c.args, r.code, got, lines, c.code, c.want,
				c.said)
		}
	}
}
