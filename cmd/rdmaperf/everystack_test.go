package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
)

// everyStack are one of each kind, in one process and in two.
const everyStack = "iwarp tcp mem sched+iwarp regcache+mem model+mem lite+iwarp lite+mem lite(daemon)+iwarp " +
	"lite(rpc=send)+iwarp lite(rpc=write)+mem grpc(tcp) grpc(unix) grpc(bufconn) grpc(dropin)+iwarp grpc(fused)+mem " +
	"grpc(service)+iwarp"

// What each workload leaves out of everyStack.
const (
	noCalls    = "iwarp tcp mem sched+iwarp regcache+mem model+mem"
	callsAlone = "lite(rpc=send)+iwarp lite(rpc=write)+mem grpc(tcp) grpc(unix) grpc(bufconn) grpc(dropin)+iwarp " +
		"grpc(fused)+mem grpc(service)+iwarp"
	noPair   = "tcp lite(daemon)+iwarp " + callsAlone
	noDevice = "tcp lite+iwarp lite+mem lite(daemon)+iwarp " + callsAlone
	noTier   = "iwarp tcp mem sched+iwarp regcache+mem model+mem lite(daemon)+iwarp " + callsAlone
)

// everyWork is a small run of each workload, and the stacks of everyStack that cannot do it.
var everyWork = []struct{ work, out string }{
	{"rpc --rpc oneway -s 64", noCalls + " lite(daemon)+iwarp lite(rpc=send)+iwarp lite(rpc=write)+mem"},
	{"clients --machines 2 -s 4K", "tcp lite(daemon)+iwarp grpc(tcp) grpc(unix) grpc(bufconn)"},
	{"qos -D 10ms", noTier}, // the rest takes two minutes
	{"locks --contenders 2", noTier},
	{"latency -s 64", ""},
	{"throughput -s 64", "model+mem"},
	{"hol", "model+mem lite(daemon)+iwarp"},
	{"incast -s 64", "model+mem"},
	{"connect", "model+mem"},
	{"paramserver --model bert-base --ps-arm fifo --tensor-bytes 0.01", "model+mem " + callsAlone},
	{"starvation", "model+mem " + callsAlone},
	{"kv --records 10", noCalls},
	{"tensor -s 1M", noCalls + " lite(daemon)+iwarp"},
	{"register -s 4K --arms none --offload none --pattern repeated", noDevice},
	{"allreduce -s 1K --arms none --buffers fresh --algorithm ring --offload none",
		"mem regcache+mem model+mem " + noDevice},
	{"regions --regions 2 --region-size 4K --total 1 --make 4096", noPair},
	{"softrdma", callsAlone},
	{"sharing --users 2", "tcp " + callsAlone},
	{"mixed", "model+mem " + callsAlone},
	{"think --think-time 0", noCalls + " lite+mem lite(rpc=write)+mem grpc(bufconn) grpc(fused)+mem"},
}

// The plan of a run knows which stacks cannot do a workload: each is left out with one line before anything is
// measured, and all others are measured.
func TestARunOfEveryStackLeavesOutThoseThatCannotDoTheWorkload(t *testing.T) {
	untested := workload.Names(catalogue.All())
	for i, row := range everyWork {
		args := strings.Fields(row.work)
		untested = slices.DeleteFunc(untested, func(name string) bool { return name == args[0] })
		if i > 2 && !fulltest.Asked() {
			continue
		}
		t.Run(args[0], func(t *testing.T) {
			args := append([]string{"run", "--transport", strings.ReplaceAll(everyStack, " ", ","), "--rounds", "1",
				"--no-save", "--format", "json", "--workload"}, args...)
			counts := []string{"regions", "sharing", "locks", "clients"} // these have no windows
			if !slices.Contains(counts, strings.Fields(row.work)[0]) && !slices.Contains(args, "-D") {
				args = append(args, "-D", "10ms", "--warmup", "none")
			}
			r := rdmaperf(t, args...)
			if r.code != 0 {
				t.Errorf("exit %d\n%s", r.code, r.stderr)
			}
			measured := map[string]bool{}
			for _, res := range document(t, []byte(r.stdout)).Results {
				measured[asTyped(res.Stack)] = true
			}
			out := strings.Fields(row.out)
			for _, s := range strings.Fields(everyStack) {
				if lines := strings.Count(r.stderr, "Left out: "+s+", "); slices.Contains(out, s) != (lines == 1) ||
					measured[s] == (lines == 1) {
					t.Errorf("%s: %d lines leave it out, measured %v\n%s", s, lines, measured[s], r.stderr)
				}
			}
		})
	}
	if len(untested) > 0 {
		t.Errorf("no row for %q", untested)
	}
}

var parameters = regexp.MustCompile(`\(((?:daemon|rpc=\w+|tcp|unix|bufconn|dropin|fused|service)\b)?[^)]*\)`)

// asTyped is a stack without what nobody typed.
func asTyped(stack string) string {
	return strings.ReplaceAll(parameters.ReplaceAllString(stack, "($1)"), "()", "")
}

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
