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
	{"transports/verbs", []string{"transports/rdma"}, "a provider knows the waist"},
	{"transports/verbs", []string{"transports/rdma"}, "a provider knows the waist"},
	{"transports/direct", []string{"transports", "transports/rdma", "transports/internal"}, "a transport knows its contract and the waist"},
	{"transports/tcp", []string{"transports", "transports/rdma", "softstack/stream", "transports/internal"}, "the baseline shares the sockets of the soft stacks and nothing else"},
	{"transports/internal", []string{"transports", "transports/rdma"}, "shared tests know the contracts"},
	{"transports/conform", []string{"transports", "transports/rdma"}, "the suite never knows a provider"},
	{"transports", []string{"transports/rdma"}, "the workload contract"},
	{"softstack/stream", nil, "sockets know no protocol"},
	{"softstack/mpa", nil, "codecs do no I/O and know the layer below"},
	{"softstack/ddp", nil, "codecs do no I/O and know the layer below"},
	{"softstack/rdmap", []string{"softstack/ddp", "softstack/mpa"}, "codecs do no I/O and know the layer below"},
	{"softstack/wiretest", []string{"softstack/mpa", "softstack/ddp", "softstack/rdmap", "transports/conform"}, "the scripted peer is not the stack it tests"},
	{"softstack/iwarp", []string{"softstack/mpa", "softstack/ddp", "softstack/rdmap", "softstack/stream", "transports/rdma"}, "the provider joins the layers"},
	{"grpcrdma/bpev", nil, "the connection method knows neither RDMA nor gRPC"},
	{"grpcrdma/fused", nil, "calls run on any byte stream"},
	{"grpcrdma/internal", nil, "the shared cases know gRPC only"},
	{"grpcrdma/rdmaenv", []string{"grpcrdma", "transports/rdma", "transports/verbs", "softstack/iwarp"}, "it opens what a variable names"},
	{"grpcrdma/example", []string{"grpcrdma/rdmaenv"}, "programs see one helper"},
	{"grpcrdma/interop", []string{"grpcrdma", "transports/conform", "transports/rdma"}, "the suite opens no device"},
	{"grpcrdma", []string{"transports/rdma", "transports"}, "gRPC runs on any device"},
	{"sched", []string{"transports/rdma"}, "a tier knows the waist"},
	{"internal/leaktest", nil, "tests of every package look for goroutines in the same way"},
	{"reports", []string{"reports"}, "reports know nothing of RDMA"},
	{"cmd/rdmaperf/internal/bench/ycsb", nil, "the generator reaches no store"},
	{"cmd/rdmaperf/internal/bench/kv", []string{"cmd/rdmaperf/internal/bench/ycsb"}, "the store is served to whatever carries its calls"},
	// A call belongs to the goroutine that makes it, so workloads of calls drive
	// gRPC's own clients and servers, and no sessions.
	{"cmd/rdmaperf/internal/bench", []string{"transports", "transports/rdma", "reports", "grpcrdma/carrier"}, "the engine sees transports and carriers of calls, never a provider"},
	{"cmd", []string{"cmd", "transports", "softstack", "sched", "grpcrdma", "reports"}, "commands see everything"},
	{"ci", []string{"ci", "reports"}, "scripts read results"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,CgoFiles", "./...")
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

func TestCgoLivesInTheVerbsProviderOnly(t *testing.T) {
	for _, p := range list(t) {
		if len(p.CgoFiles) > 0 && p.ImportPath != module+"transports/verbs" {
			t.Errorf("%s uses cgo: %v", p.ImportPath, p.CgoFiles)
		}
	}
}

// gRPC is a large dependency: who neither serves nor measures it does not link it.
func TestGRPCStaysInItsPackage(t *testing.T) {
	for _, p := range list(t) {
		if below(p.ImportPath, module+"grpcrdma") || below(p.ImportPath, module+"cmd/rdmaperf/internal/bench") {
			continue
		}
		for _, imp := range p.Imports {
			if below(imp, "google.golang.org/grpc") {
				t.Errorf("%s imports %s", p.ImportPath, imp)
			}
		}
	}
}
