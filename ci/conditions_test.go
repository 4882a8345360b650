package ci

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A workload, a layer of a stack and a format are rooms: what tells one from the others
// is a method or a field of its row, and no condition on its name elsewhere. Nor does
// anybody ask of which workload a result is by looking for its own member.

const workloads = "cmd/rdmaperf/internal/workload"

// names are those on which nobody depends outside the room.
type names struct{ workloads, members, stacks, formats []string }

// excepted are files that may ask for a name, and why. One that does not ask any more fails.
var excepted = map[string]string{
	"cmd/rdmaperf/conform.go: format text":  "a report of conformance has two forms of its own",
	"cmd/rdmaperf/conform.go: format jsonl": "likewise",
	"cmd/rdmaperf/devices.go: format text":  "a list of devices has two forms of its own",
	"cmd/rdmaperf/devices.go: format json":  "likewise",
}

func TestNobodyAsksForANameOutsideItsRoom(t *testing.T) {
	n := readNames(t)
	used := map[string]bool{}
	for path, file := range sources(t) {
		if strings.HasPrefix(path, "ci/") { // scripts read results, and name what they measure
			continue
		}
		for _, c := range n.conditions(path, file) {
			if key := path + ": " + c.what; excepted[key] != "" {
				used[key] = true
				continue
			}
			t.Errorf("%s: %s: a row's method or field, or the room itself, should say so", fileSet.Position(c.at), c.what)
		}
	}
	for key := range excepted {
		if !used[key] {
			t.Errorf("the exception %q is of nothing", key)
		}
	}
}

func TestConditionsAreFound(t *testing.T) {
	n := names{workloads: []string{"hol", "kv"}, members: []string{"HOL", "KV"}, stacks: []string{"iwarp"}, formats: []string{"csv"}}
	for src, want := range map[string]string{
		`if r.Workload == "hol" {}`:                       "workload hol",
		`if "kv" != p.Workload {}`:                        "workload kv",
		`if w.Name == hol.Name {}`:                        "workload hol",
		`if name == WorkloadKV {}`:                        "workload WorkloadKV",
		`switch r.Workload { case "a", "kv": }`:           "workload kv",
		`switch { case r.Workload == "kv": }`:             "workload kv",
		`if strings.HasPrefix(r.Workload, "ho") {}`:       "workload ho",
		`if slices.Contains([]string{"kv"}, workload) {}`: "workload kv",
		`if r.HOL != nil {}`:                              "member HOL",
		`if nil == res.KV {}`:                             "member KV",
		`d, ok := r.Detail.(*hol.HOL)`:                    "member Detail",
		`if l.name == "iwarp" {}`:                         "stack iwarp",
		`switch l.name { case "iwarp": }`:                 "stack iwarp",
		`if strings.HasPrefix(stack, "iwarp") {}`:         "stack iwarp",
		`if l.name != iwarpName {}`:                       "stack iwarpName",
		`if o.format == "csv" {}`:                         "format csv",
		`switch format { case "csv": }`:                   "format csv",
		`if a.Workload == b.Workload {}`:                  "",
		`if r.Workload == "" {}`:                          "",
		`if r.Latency != nil {}`:                          "",
		`if op == "hol" {}`:                               "",
		`x := map[string]int{"kv": 1}; _ = x`:             "",
		`if l.name == "" {}`:                              "",
	} {
		f, err := parser.ParseFile(fileSet, "x.go", "package p; func f() {"+src+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, c := range n.conditions("cmd/rdmaperf/x.go", f) {
			got = c.what
		}
		if got != want {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}

// The table alone knows the rooms.
func TestRoomsAreImportedByTheirTable(t *testing.T) {
	for path, file := range sources(t) {
		for _, i := range file.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			if room, is := strings.CutPrefix(p, module+workloads+"/"); is && !strings.HasPrefix(path, workloads+"/") {
				t.Errorf("%s imports the room %s", path, room)
			}
		}
	}
}

// What only one room knows stands in its options (engine.Options), and neither in what all
// workloads share nor on the control channel.
func TestNoMemberOfTheEngineIsOfOneRoom(t *testing.T) {
	files := sources(t)
	shared := map[string][]string{}
	for path, f := range files {
		if strings.HasPrefix(path, "cmd/rdmaperf/internal/engine/") {
			for member, of := range membersOf(f, "Plan", "Point", "Shape", "Outcome") {
				shared[member] = append(shared[member], of)
			}
		}
	}
	if len(shared) < 20 {
		t.Fatalf("only %d members of Plan, Point and Shape were found", len(shared))
	}
	// The engine's own: a room that dials the server by itself has to show the token, and one
	// that compares in parts asks whether all is to be compared.
	own := []string{"Token", "VerifyAll"}
	for member, rooms := range usersOf(files, shared) {
		if len(rooms) == 1 && rooms[0] != "drive" && !slices.Contains(own, member) {
			t.Errorf("engine.%s.%s is used by the room %s alone: it belongs into its options", strings.Join(shared[member], "."), member, rooms[0])
		}
	}
}

func TestMembersOfOneRoomAreFound(t *testing.T) {
	parse := func(src string) *ast.File {
		f, err := parser.ParseFile(fileSet, "x.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	shared := map[string][]string{}
	for m, of := range membersOf(parse("package engine; type Plan struct { A, B, C, D, E, f int }; type Other struct { G int }"), "Plan") {
		shared[m] = append(shared[m], of)
	}
	got := fmt.Sprint(usersOf(map[string]*ast.File{
		workloads + "/x/x.go":              parse("package x; func f() { _ = p.A + m.C.Plan.B + p.f + w.E; _ = engine.Plan{D: 1} }"),
		workloads + "/y/y.go":              parse("package y; func f() { _ = plan.A; _ = other.Plan{C: 1} }"),
		"cmd/rdmaperf/internal/drive/l.go": parse("package drive; func f() { _ = sh.A }"),
		"cmd/rdmaperf/run.go":              parse("package main; func f() { p.B = 1 }"),
	}, shared))
	if want := "map[A:[drive x y] B:[x] D:[x]]"; got != want {
		t.Errorf("users %s, want %s", got, want)
	}
}

// membersOf are the exported fields of the structs with these names.
func membersOf(f *ast.File, names ...string) map[string]string {
	members := map[string]string{}
	ast.Inspect(f, func(x ast.Node) bool {
		spec, ok := x.(*ast.TypeSpec)
		if !ok || !slices.Contains(names, spec.Name.Name) {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() {
						members[name.Name] = spec.Name.Name
					}
				}
			}
		}
		return true
	})
	return members
}

// holder is how a plan, a point, a shape or an outcome is called where it is used.
var holder = regexp.MustCompile(`(?i)^(p|plan|full|pt|point|sh|shape|o|out|outcome)$`)

// usersOf says which rooms use which members, and whether a loop does.
func usersOf(files map[string]*ast.File, members map[string][]string) map[string][]string {
	users := map[string][]string{}
	for path, f := range files {
		rest, inRooms := strings.CutPrefix(path, workloads+"/")
		room, _, inRoom := strings.Cut(rest, "/")
		switch {
		case strings.HasPrefix(path, "cmd/rdmaperf/internal/drive/"):
			room = "drive"
		case !inRooms || !inRoom:
			continue
		}
		use := func(member string) {
			if members[member] != nil && !slices.Contains(users[member], room) {
				users[member] = append(users[member], room)
				slices.Sort(users[member])
			}
		}
		ast.Inspect(f, func(x ast.Node) bool {
			switch x := x.(type) {
			case *ast.SelectorExpr:
				if holder.MatchString(lastName(x.X)) {
					use(x.Sel.Name)
				}
			case *ast.CompositeLit:
				if of, ok := x.Type.(*ast.SelectorExpr); ok && lastName(of.X) == "engine" {
					for _, e := range x.Elts {
						if kv, ok := e.(*ast.KeyValueExpr); ok {
							use(lastName(kv.Key))
						}
					}
				}
			}
			return true
		})
	}
	return users
}

var fileSet = token.NewFileSet()

// sources are the project's Go files but tests, by their paths.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	all := map[string]*ast.File{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "example"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(fileSet, path, nil, parser.SkipObjectResolution)
		if err == nil {
			all[filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))] = f
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// readNames reads them where they are declared.
func readNames(t *testing.T) names {
	t.Helper()
	var n names
	dirs, err := os.ReadDir("../" + workloads)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if d.IsDir() {
			n.workloads = append(n.workloads, d.Name())
		}
	}
	files := sources(t)
	for path, f := range files {
		if strings.HasPrefix(path, "reports/kinds/") || strings.HasPrefix(path, workloads+"/") {
			ast.Inspect(f, func(x ast.Node) bool { // OneMember[T]
				if i, ok := x.(*ast.IndexExpr); ok && lastName(i.X) == "OneMember" {
					n.members = append(n.members, lastName(i.Index))
				}
				return true
			})
		}
	}
	n.members = append(n.members, "KV", "ParamServer", "Bidirectional") // of kinds with members of several names
	n.stacks = rowNames(files["cmd/rdmaperf/stacks.go"], "name")
	n.formats = append(rowNames(files["reports/render/render.go"], "Name"), "json", "jsonl")
	for what, list := range map[string][]string{"workloads": n.workloads, "members": n.members, "stacks": n.stacks, "formats": n.formats} {
		if len(list) < 5 {
			t.Fatalf("%s: only %q were found where they are declared", what, list)
		}
	}
	return n
}

// rowNames are the values of a key in the composite literals of a file.
func rowNames(f *ast.File, key string) (list []string) {
	ast.Inspect(f, func(x ast.Node) bool {
		if kv, ok := x.(*ast.KeyValueExpr); ok && lastName(kv.Key) == key {
			list = append(list, strings.TrimSuffix(word(kv.Value), "Name"))
		}
		return true
	})
	return list
}

// condition is one place that asks for a name.
type condition struct {
	at   token.Pos
	what string
}

func (n *names) conditions(path string, f *ast.File) (found []condition) {
	atHome := strings.HasPrefix(path, workloads+"/") || strings.HasPrefix(path, "reports/kinds/")
	add := func(at token.Pos, subject, value ast.Expr) {
		what := n.asks(path, subject, value)
		if what != "" && !(atHome && !strings.HasPrefix(what, "format")) {
			found = append(found, condition{at, what})
		}
	}
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.BinaryExpr:
			if x.Op == token.EQL || x.Op == token.NEQ {
				add(x.Pos(), x.X, x.Y)
				add(x.Pos(), x.Y, x.X)
			}
		case *ast.SwitchStmt:
			if x.Tag == nil {
				break
			}
			for _, s := range x.Body.List {
				for _, v := range s.(*ast.CaseClause).List {
					add(v.Pos(), x.Tag, v)
				}
			}
		case *ast.CallExpr:
			switch fun := lastName(x.Fun); {
			case len(x.Args) == 2 && (fun == "HasPrefix" || fun == "HasSuffix" || fun == "EqualFold" || fun == "CutPrefix"):
				add(x.Pos(), x.Args[0], x.Args[1])
			case len(x.Args) == 2 && fun == "Contains":
				if list, ok := x.Args[0].(*ast.CompositeLit); ok {
					for _, v := range list.Elts {
						add(v.Pos(), x.Args[1], v)
					}
				}
			}
		case *ast.TypeAssertExpr:
			if !atHome && lastName(x.X) == "Detail" && x.Type != nil && !strings.HasPrefix(path, "reports/members.go") {
				found = append(found, condition{x.Pos(), "member Detail"})
			}
		}
		return true
	})
	return found
}

var (
	ofWorkload = regexp.MustCompile(`(?i)^(work|workload|workloads)$`)
	ofStack    = regexp.MustCompile(`(?i)^(name|stack|spec|transport|layer|bottom|top)$`)
	ofFormat   = regexp.MustCompile(`(?i)^format$`)
	constant   = regexp.MustCompile(`^Workload[A-Z]`)
)

// asks says for which name a comparison of subject with value asks; "" for none.
func (n *names) asks(path string, subject, value ast.Expr) string {
	of, is := lastName(subject), word(value)
	literal, _ := value.(*ast.BasicLit)
	switch sel, _ := value.(*ast.SelectorExpr); {
	case is == "nil" && slices.Contains(n.members, of):
		if _, selected := subject.(*ast.SelectorExpr); selected {
			return "member " + of
		}
	case constant.MatchString(lastName(value)):
		return "workload " + lastName(value)
	case sel != nil && sel.Sel.Name == "Name" && slices.Contains(n.workloads, lastName(sel.X)):
		return "workload " + lastName(sel.X)
	case literal != nil && is != "" && ofWorkload.MatchString(of):
		return "workload " + is
	case literal != nil && ofFormat.MatchString(of) && slices.Contains(n.formats, is):
		return "format " + is
	case strings.HasPrefix(path, "cmd/rdmaperf/") && ofStack.MatchString(of):
		name := is
		if literal == nil {
			name = strings.TrimSuffix(is, "Name")
		}
		base := filepath.Base(path)
		if slices.Contains(n.stacks, name) && (literal != nil || name != is) && !strings.Contains(base, name) {
			return "stack " + is
		}
	}
	return ""
}

// lastName is the last identifier of an expression: Workload of r.Workload.
func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.ParenExpr:
		return lastName(x.X)
	case *ast.StarExpr:
		return lastName(x.X)
	}
	return ""
}

// word is the text of a literal, or an identifier.
func word(x ast.Expr) string {
	if l, ok := x.(*ast.BasicLit); ok && l.Kind == token.STRING {
		s, err := strconv.Unquote(l.Value)
		if err != nil {
			panic(fmt.Sprintf("literal %s: %v", l.Value, err))
		}
		return s
	}
	return lastName(x)
}
