// Package ci holds the scripts that check rdmaperf as a whole, and the tests of
// its structure.
package ci

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rdmaperf/rdmaperf/"

// allowed is the table of the design: a package (and everything below it that
// has no row of its own) → the packages of ours that it may import.
var allowed = []struct {
	pkg  string
	may  []string
	then string // why, for the failure
}{
	{"transports/rdma", nil, "the waist knows the standard library only"},
	{"transports/memdev", []string{"transports/rdma"}, "a provider knows the waist"},
	{"transports/model", []string{"transports/rdma"}, "a tier knows the waist"},
	{"transports/verbs", []string{"transports/rdma"}, "a provider knows the waist"},
	{"transports/direct", []string{"transports", "transports/rdma", "transports/internal", "regcache"}, "a transport knows its contract and the waist"},
	{"transports/lite/suite", []string{"transports/lite", "transports/conform", "transports/rdma"}, "the suite opens no device"},
	{"transports/lite", []string{"transports", "transports/rdma", "regcache"}, "the tier runs over any device"},
	{"transports/tcp", []string{"transports", "transports/rdma", "transports/stream", "transports/internal"}, "the baseline shares the sockets of the soft stacks and nothing else"},
	{"transports/stream", nil, "a byte stream knows no protocol"},
	{"transports/callstest", []string{"transports", "transports/rdma"}, "shared tests know the contracts"},
	{"transports/internal", []string{"transports", "transports/rdma"}, "shared tests know the contracts"},
	{"transports/conform", []string{"transports", "transports/rdma"}, "the suite never knows a provider"},
	{"transports", []string{"transports/rdma"}, "the workload contract"},
	{"softstack/mpa", nil, "codecs do no I/O and know the layer below"},
	{"softstack/ddp", nil, "codecs do no I/O and know the layer below"},
	{"softstack/rdmap", []string{"softstack/ddp", "softstack/mpa"}, "codecs do no I/O and know the layer below"},
	{"softstack/wiretest/victim", []string{"transports/rdma"}, "the application under test runs on any device"},
	{"softstack/wiretest", []string{"transports/rdma", "softstack/mpa", "softstack/ddp", "softstack/rdmap", "transports/conform"}, "the scripted peer is not the stack it tests"},
	{"softstack/shm", nil, "processes meet without knowing what for"},
	{"softstack/ready", []string{"transports/stream"}, "a poller knows the contract of byte streams"},
	{"softstack/lwip", []string{"softstack/shm", "softstack/ready", "transports/stream"}, "a stack knows the contract of byte streams"},
	{"softstack/iwarp", []string{"softstack/mpa", "softstack/ddp", "softstack/rdmap", "transports/stream", "transports/rdma", "internal/procs"}, "the provider joins the layers"},
	{"grpcrdma/bpev", nil, "the connection method knows neither RDMA nor gRPC"},
	{"grpcrdma/fused", nil, "calls run on any byte stream"},
	{"grpcrdma/shmqueue", nil, "a queue in shared memory knows neither RDMA nor gRPC"},
	{"grpcrdma/service", []string{"grpcrdma", "transports/rdma"}, "a service moves bytes, and opens no device"},
	{"grpcrdma/internal", nil, "the shared cases know gRPC only"},
	{"grpcrdma/rdmaenv", []string{"grpcrdma", "transports/rdma", "transports/verbs", "softstack/iwarp"}, "it opens what a variable names"},
	{"grpcrdma/example", []string{"grpcrdma/rdmaenv"}, "programs see one helper"},
	{"grpcrdma/interop", []string{"grpcrdma", "transports/conform", "transports/rdma"}, "the suite opens no device"},
	{"grpcrdma", []string{"transports/rdma", "transports", "regcache"}, "gRPC runs on any device"},
	{"sched", []string{"transports/rdma"}, "a tier knows the waist"},
	{"regcache", []string{"transports/rdma"}, "a tier knows the waist"},
	{"internal/leaktest", nil, "tests of every package look for goroutines in the same way"},
	{"internal/procs", nil, "spinning threads of a process are counted in one place"},
	{"reports", []string{"reports"}, "reports know nothing of RDMA"},
	{"cmd/rdmaperf/internal/workload/kv/ycsb", nil, "the generator reaches no store"},
	{"cmd/rdmaperf/internal/workload/kv/store", []string{"cmd/rdmaperf/internal/workload/kv/ycsb", "transports", "transports/rdma"}, "the store is served to whatever carries its calls"},
	{"cmd/rdmaperf/internal/engine/enginetest", []string{"cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/drive", "internal/leaktest", "transports", "transports/callstest", "transports/rdma", "transports/direct", "transports/memdev", "transports/tcp", "softstack/iwarp", "grpcrdma", "reports"}, "tests of the engine, loops and workloads share their stacks and know no workload"},
	{"cmd/rdmaperf/internal/engine", []string{"transports", "transports/rdma", "reports", "cmd/rdmaperf/internal/disturbance", "internal/procs"}, "the engine sees the contracts of sessions and calls, never a provider, an RPC library or a workload"},
	{"cmd/rdmaperf/internal/drive", []string{"cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/disturbance", "transports", "transports/rdma", "reports"}, "loops know no workload"},
	{"cmd/rdmaperf/internal/payload", []string{"cmd/rdmaperf/internal/engine", "transports"}, "what calls carry is the same on all of them"},
	{"cmd/rdmaperf/internal/placement", nil, "CPUs are chosen from what sysfs says alone"},
	{"cmd/rdmaperf/internal/perftest", []string{"reports"}, "perftest's words are translated without a transport"},
	{"cmd/rdmaperf/internal/values", []string{"reports"}, "values of flags name no flag"},
	{"cmd/rdmaperf/internal/room", []string{"cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/values", "transports", "reports"}, "what a workload is knows no workload"},
	{"cmd/rdmaperf/internal/arms", []string{"cmd/rdmaperf/internal/values", "transports/rdma", "regcache"}, "ways to register memory know no workload"},
	{"cmd/rdmaperf/internal/workload/allreduce/steps", nil, "algorithms are data"},
	{"cmd/rdmaperf/internal/workload/allreduce", []string{"cmd/rdmaperf/internal/arms", "cmd/rdmaperf/internal/room", "cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/values", "transports", "transports/rdma", "regcache", "reports"}, "the ranks of an all-reduce are joined by connections of the device itself"},
	{"cmd/rdmaperf/internal/curves", []string{"reports"}, "a description of results reaches no device"},
	{"cmd/rdmaperf/internal/pairs", []string{"cmd/rdmaperf/internal/engine", "transports/lite", "transports/rdma", "reports"}, "both ends of a run know no workload"},
	{"cmd/rdmaperf/internal/workload/regions", []string{"cmd/rdmaperf/internal/curves", "cmd/rdmaperf/internal/pairs", "cmd/rdmaperf/internal/room", "cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/values", "transports/lite", "transports/rdma", "reports"}, "the workload of regions compares registrations with the tier's"},
	{"cmd/rdmaperf/internal/workload/sharing", []string{"cmd/rdmaperf/internal/curves", "cmd/rdmaperf/internal/pairs", "cmd/rdmaperf/internal/room", "cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/values", "transports/lite", "transports/rdma", "reports"}, "the workload of sharing compares queue pairs with the tier's"},
	{"cmd/rdmaperf/internal/workload/locks", []string{"cmd/rdmaperf/internal/curves", "cmd/rdmaperf/internal/pairs", "cmd/rdmaperf/internal/room", "cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/values", "transports/lite", "transports/rdma", "reports"}, "locks are the tier's"},
	{"cmd/rdmaperf/internal/workload/qos", []string{"cmd/rdmaperf/internal/curves", "cmd/rdmaperf/internal/pairs", "cmd/rdmaperf/internal/room", "cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/values", "transports/lite", "transports/rdma", "reports"}, "classes are the tier's"},
	{"cmd/rdmaperf/internal/workload/think", []string{"cmd/rdmaperf/internal/curves", "cmd/rdmaperf/internal/room", "cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/values", "transports", "reports"}, "its results are curves"},
	{"cmd/rdmaperf/internal/workload/clients", []string{"cmd/rdmaperf/internal/curves", "cmd/rdmaperf/internal/pairs", "cmd/rdmaperf/internal/room", "cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/values", "transports", "transports/lite", "transports/rdma", "reports"}, "memory is compared with the tier's rings"},
	{"cmd/rdmaperf/internal/workload/register", []string{"cmd/rdmaperf/internal/arms", "cmd/rdmaperf/internal/room", "cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/values", "transports", "transports/rdma", "regcache", "reports"}, "the workload of registrations measures the cache itself"},
	{"cmd/rdmaperf/internal/workload", []string{"cmd/rdmaperf/internal/room", "cmd/rdmaperf/internal/engine", "cmd/rdmaperf/internal/drive", "cmd/rdmaperf/internal/payload", "cmd/rdmaperf/internal/values", "transports", "transports/rdma", "reports"}, "a workload knows the engine and no other part of the command"},
	{"cmd", []string{"cmd", "transports", "softstack", "sched", "regcache", "grpcrdma", "reports"}, "commands see everything"},
	{"ci/soakrun", []string{"ci", "grpcrdma", "softstack/iwarp"}, "a long run has a gRPC server and clients of its own"},
	{"ci", []string{"ci", "reports"}, "scripts read results"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
}

func list(t *testing.T, flags ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", slices.Concat([]string{"list", "-json=ImportPath,Imports,CgoFiles"}, flags, []string{"./..."})...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func below(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

func TestImportsFollowTheDesign(t *testing.T) {
	for _, p := range list(t) {
		name, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue
		}
		i := slices.IndexFunc(allowed, func(r struct {
			pkg  string
			may  []string
			then string
		}) bool {
			return below(name, r.pkg)
		})
		if i < 0 {
			t.Errorf("%s has no row in the table of imports: a new directory needs a reason", name)
			continue
		}
		rule := allowed[i]
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, module)
			if !ours {
				if imp == "testing" && !strings.HasSuffix(name, "test") {
					t.Errorf("%s imports testing", name)
				}
				continue
			}
			if below(dep, rule.pkg) || slices.ContainsFunc(rule.may, func(m string) bool {
				// "transports" alone is the contract package, not its providers,
				// except for the commands.
				return dep == m || below(dep, m) && (m != "transports" || rule.pkg == "cmd")
			}) {
				continue
			}
			t.Errorf("%s imports %s: %s", name, dep, rule.then)
		}
	}
}

// The verbs provider calls the system's libraries of verbs. softstack/lwip, with the
// tag lwip only, compiles against lwIP, a C library whose structs depend on its build
// and whose callbacks must not cross into Go for every packet.
func TestCgoLivesInVerbsAndLwIPOnly(t *testing.T) {
	for _, p := range append(list(t), list(t, "-tags", "lwip")...) {
		if len(p.CgoFiles) > 0 && p.ImportPath != module+"transports/verbs" && p.ImportPath != module+"softstack/lwip" {
			t.Errorf("%s uses cgo: %v", p.ImportPath, p.CgoFiles)
		}
	}
}

// gRPC is a large dependency: who neither serves nor measures it does not link it.
func TestGRPCStaysInItsPackage(t *testing.T) {
	for _, p := range list(t) {
		if below(p.ImportPath, module+"grpcrdma") || p.ImportPath == module+"ci/soakrun" { // serves it for hours
			continue
		}
		for _, imp := range p.Imports {
			if below(imp, "google.golang.org/grpc") {
				t.Errorf("%s imports %s", p.ImportPath, imp)
			}
		}
	}
}
