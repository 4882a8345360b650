package main

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Results of every workload say how much of their data was compared and what the machine did
// meanwhile, and none is verified of which nothing was compared.
func TestEveryWorkloadSaysWhatItCompared(t *testing.T) {
	args := map[string]string{
		"latency":     "iwarp -n 50 --op send,write,read,fetch_add",
		"throughput":  "iwarp -n 500 --op send,write,read,fetch_add",
		"hol":         "iwarp -D 50ms --bulk-size 64K",
		"incast":      "iwarp -n 100 --clients 2",
		"connect":     "iwarp -n 10",
		"paramserver": "iwarp -n 1 --compute-ratio 0 --ps-arm fifo",
		"starvation":  "iwarp -D 50ms",
		"rpc":         "grpc(tcp) -n 50",
		"kv":          "grpc(tcp) -n 50 --records 50 --ycsb c",
		"tensor":      "grpc(tcp) -n 5 -s 64K",
		"register":    "iwarp -s 64K --register-threads 1 -D 30ms",
		"allreduce":   "iwarp -s 4K --ranks 2 -n 5",
		"regions":     "iwarp -n 200 --regions 4",
		"softrdma":    "iwarp -n 20",
		"sharing":     "iwarp -n 200 --users 2",
		"locks":       "lite+iwarp -n 50 --contenders 1",
		"qos":         "lite+iwarp -D 300ms",
		"mixed":       "iwarp -n 200",
		"think":       "lite+iwarp -n 20 --think-time 0",
		"clients":     "mem --machines 2 -s 4K",
	}
	for _, name := range workload.Names(catalogue.All()) {
		t.Run(name, func(t *testing.T) {
			if args[name] == "" {
				t.Fatal("how is it run here?")
			}
			results := measure(t, append([]string{"run", "--workload", name, "--quiet", "--no-save", "--transport"},
				strings.Fields(args[name])...)...).Results
			messages, whole := int64(0), int64(0)
			for _, res := range results {
				if d := res.Disturbance; d == nil || d.Verdict == "" || d.Client == nil && d.Server == nil {
					t.Errorf("%s %s: what the machine did: %+v", res.Workload, res.Op, d)
				}
				v := res.Verification
				if v == nil || !res.Verified || v.Mode == reports.VerifyNone || v.Numbers < v.Whole ||
					v.Whole > v.Messages || (v.Numbers > 0) != (v.Bytes > 0) {
					t.Errorf("%s %s: verified %v, %+v", res.Workload, res.Op, res.Verified, v)
					continue
				}
				messages, whole = messages+v.Messages, whole+v.Whole
			}
			if len(results) == 0 || messages == 0 || whole == 0 {
				t.Errorf("%d results, %d of %d messages", len(results), whole, messages)
			}
		})
	}
}
