// Package ci holds the scripts that check rdmaperf as a whole, and the tests of its structure.
package ci

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rdmaperf/rdmaperf/"

// allowed says what packages may import of ours, besides what their own pattern covers. The first row with a
// pattern of theirs rules them. A pattern is a package, or with /... all below it, too.
const allowed = `
transports/rdma/...:
transports/stream/...:
transports/memdev/... transports/model/... transports/verbs/... sched/... regcache/...: transports/rdma/...
transports/lite/suite: transports/lite/... transports/conform transports/rdma
transports/lite/apps/local/localtest: transports/lite/... transports/rdma softstack/iwarp
transports/lite/...: transports transports/rdma/... regcache/... internal/procs internal/onepeer
transports/direct/... transports/tcp/...: transports transports/rdma/... transports/stream transports/internal/... regcache/... internal/onepeer
transports/conform/... transports/callstest transports/internal/...: transports transports/rdma/... internal/freemem
transports: transports/rdma/...
softstack/mpa softstack/ddp softstack/shm:
softstack/rdmap: softstack/ddp softstack/mpa
softstack/ready softstack/lwip/...: softstack/shm softstack/ready transports/stream/...
softstack/iwarp/...: softstack/mpa softstack/ddp softstack/rdmap transports/stream/... transports/rdma/... internal/procs internal/onepeer
softstack/wiretest/...: softstack/mpa softstack/ddp softstack/rdmap transports/rdma/... transports/conform
grpcrdma/bpev/...: internal/procs
grpcrdma/fused/... grpcrdma/shmqueue/... grpcrdma/internal/...: internal/onepeer
grpcrdma/interop: grpcrdma/... transports/conform transports/rdma
grpcrdma/rdmaenv: grpcrdma transports/rdma transports/verbs softstack/iwarp
grpcrdma/example/...: grpcrdma/rdmaenv grpcrdma
grpcrdma/...: transports transports/rdma/... regcache/... internal/onepeer
internal/...:
reports/...:
cmd/rdmaperf/internal/answer: reports reports/view
cmd/rdmaperf/internal/engine: transports transports/rdma/... reports/... cmd/rdmaperf/internal/disturbance internal/...
cmd/rdmaperf/internal/drive: cmd/rdmaperf/internal/engine cmd/rdmaperf/internal/disturbance transports transports/rdma/... reports/... internal/onepeer
cmd/rdmaperf/internal/workload/...: cmd/rdmaperf/internal/... transports transports/direct transports/rdma/... transports/lite/... regcache/... reports/... internal/freemem
cmd/...: transports/... softstack/... sched/... regcache/... grpcrdma/... reports/... internal/...
ci/...: reports/...
`

type pkg struct {
	ImportPath, Dir, Export    string
	Imports, GoFiles, CgoFiles []string
}

func list(t *testing.T, flags ...string) (all []pkg) {
	t.Helper()
	cmd := exec.Command("go", slices.Concat([]string{"list", "-json=ImportPath,Dir,Export,Imports,GoFiles,CgoFiles"},
		flags, []string{"./..."})...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		must(t, dec.Decode(&p))
		all = append(all, p)
	}
	return all
}

func below(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

// matches tells whether one of the patterns covers a package.
func matches(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		root, tree := strings.CutSuffix(p, "/...")
		return pkg == root || tree && below(pkg, root)
	})
}

func TestImportsFollowTheDesign(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(allowed), "\n")
	ruled := map[string]bool{}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		var of, may []string
		for _, row := range rows {
			left, right, _ := strings.Cut(row, ":")
			if of = strings.Fields(left); matches(name, of) {
				may = append(strings.Fields(right), of...)
				break
			}
		}
		if may == nil {
			t.Errorf("%s has no row in the table of imports: a new directory needs a reason", name)
		}
		for _, pattern := range of {
			ruled[pattern] = ruled[pattern] || matches(name, []string{pattern})
		}
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, module)
			switch {
			case ours && !matches(dep, may):
				t.Errorf("%s imports %s", name, dep)
			case below(dep, "cmd/rdmaperf/internal/workload") && strings.Count(dep, "/") > 3 &&
				!below(name, "cmd/rdmaperf/internal/workload") && name != "cmd/rdmaperf/internal/catalogue" &&
				name != "cmd/rdmaperf/internal/mesh":
				t.Errorf("%s imports %s: only the catalogue knows them, and the mesh, which drives some", name, dep)
			case imp == "testing" && !strings.HasSuffix(name, "test"):
				t.Errorf("%s imports testing", name)
			case below(imp, "google.golang.org/grpc") && !below(name, "grpcrdma"):
				t.Errorf("%s imports %s: who neither serves nor measures gRPC does not link it", name, imp)
			}
		}
	}
	for _, row := range rows {
		left, _, _ := strings.Cut(row, ":")
		for _, pattern := range strings.Fields(left) {
			if !ruled[pattern] {
				t.Errorf("the pattern %s rules no package: remove it", pattern)
			}
		}
	}
}

// The verbs provider calls the system's libraries of verbs, and softstack/lwip, with its tag only, a C library.
func TestCgoLivesInVerbsAndLwIPOnly(t *testing.T) {
	for _, p := range append(list(t), list(t, "-tags", "lwip")...) {
		if len(p.CgoFiles) > 0 && p.ImportPath != module+"transports/verbs" && p.ImportPath != module+"softstack/lwip" {
			t.Errorf("%s uses cgo: %v", p.ImportPath, p.CgoFiles)
		}
	}
}
