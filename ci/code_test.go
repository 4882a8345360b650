package ci

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A deferred function that uses a named result runs on nil behind `return nil, err`. What it cleans up is kept in a
// variable of its own.
func TestNoDeferredFunctionUsesAResultThatIsNil(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range list(t) {
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			f := need(parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0))(t)
			for _, at := range nilResults(f) {
				t.Errorf("%v: %s is nil here where a deferred function uses it", fset.Position(at.Pos()), at.Name)
			}
		}
	}
}

// nilResults are the results that a deferred function of their function uses, and that a return behind it makes nil.
func nilResults(f *ast.File) (found []*ast.Ident) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				found = append(found, nilResultsOf(n.Type, n.Body)...)
			}
		case *ast.FuncLit:
			found = append(found, nilResultsOf(n.Type, n.Body)...)
		}
		return true
	})
	return found
}

func nilResultsOf(fn *ast.FuncType, body *ast.BlockStmt) (found []*ast.Ident) {
	if fn.Results == nil {
		return nil
	}
	var results []string
	for _, r := range fn.Results.List {
		for _, name := range r.Names {
			results = append(results, name.Name)
		}
	}
	used := map[string]bool{} // by deferred functions so far
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // its returns are its own
		case *ast.DeferStmt:
			if lit, ok := n.Call.Fun.(*ast.FuncLit); ok {
				for _, r := range results {
					used[r] = used[r] || usesUnasked(lit.Body, r)
				}
			}
			return false
		case *ast.ReturnStmt:
			for i, e := range n.Results {
				if id, ok := e.(*ast.Ident); ok && id.Name == "nil" && len(n.Results) == len(results) && used[results[i]] {
					found = append(found, &ast.Ident{NamePos: id.NamePos, Name: results[i]})
				}
			}
		}
		return true
	})
	return found
}

// usesUnasked tells whether a body selects something of a variable that it does not compare with nil.
func usesUnasked(body *ast.BlockStmt, name string) bool {
	is := func(e ast.Expr, name string) bool {
		id, ok := e.(*ast.Ident)
		return ok && id.Name == name
	}
	uses, asks := false, false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			uses = uses || is(n.X, name)
		case *ast.BinaryExpr:
			asks = asks || is(n.X, name) && is(n.Y, "nil")
		}
		return true
	})
	return uses && !asks
}

func TestResultsThatAreNilAreFound(t *testing.T) {
	for body, want := range map[string]int{
		`p = New(); defer func() { if err != nil { p.Close() } }(); if bad() { return nil, err }; return p, nil`:       1,
		`p = New(); defer func() { if err != nil { log(p.Close()) } }(); for { return nil, err }`:                      1,
		`p = New(); defer func() { if p != nil { p.Close() } }(); return nil, err`:                                     0,
		`q := New(); defer func() { q.Close() }(); return nil, err`:                                                    0,
		`if bad() { return nil, err }; p = New(); defer func() { p.Close() }(); return p, nil`:                         0,
		`p = New(); defer func() { p.Close() }(); f(func() (*T, error) { return nil, err }); return p, errors.New("")`: 0,
	} {
		src := "package x\nfunc f() (p *T, err error) { " + strings.ReplaceAll(body, "; ", "\n") + " }"
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", src, 0)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if got := nilResults(f); len(got) != want {
			t.Errorf("%s: %d found, want %d", body, len(got), want)
		}
	}
}

// shared are the structs that many packages fill in, with the fields that fewer than three of those set.
// Such a field is a special case in a struct of all: no new one may come, and one that went leaves its list.
var shared = map[string]string{
	"cmd/rdmaperf/internal/workload.Meta": "",
	"reports.Workload":                    "",
}

const fewest = 3

func TestFieldsOfSharedStructsAreSetByThree(t *testing.T) {
	fields, sets := settersOf(t)
	for name, excused := range shared {
		if fields[name] == nil {
			t.Errorf("there is no struct %s: remove its row", name)
			continue
		}
		var few []string
		for _, f := range fields[name] {
			if sets[name+"."+f] < fewest {
				few = append(few, f)
			}
		}
		was := strings.Fields(excused)
		for _, f := range few {
			if !slices.Contains(was, f) {
				t.Errorf("%s.%s is set in %d places: what fewer than %d need is no field of a shared struct",
					name, f, sets[name+"."+f], fewest)
			}
		}
		for _, f := range was {
			if !slices.Contains(few, f) {
				t.Errorf("%s.%s is gone, or set in %d places: remove it from the row", name, f, fewest)
			}
		}
	}
}

// settersOf are the exported fields of each shared struct, and how many places outside of tests set each.
func settersOf(t *testing.T) (fields map[string][]string, sets map[string]int) {
	t.Helper()
	packages := list(t, "-export", "-deps")
	fset := token.NewFileSet()
	exports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		i := slices.IndexFunc(packages, func(p pkg) bool { return p.ImportPath == path })
		return os.Open(packages[i].Export)
	})
	var homes []string
	for name := range shared {
		homes = append(homes, module+name[:strings.LastIndex(name, ".")])
	}
	fields, sets = map[string][]string{}, map[string]int{}
	for _, p := range packages {
		home := slices.Contains(homes, p.ImportPath)
		if !home && !slices.ContainsFunc(p.Imports, func(i string) bool { return slices.Contains(homes, i) }) {
			continue
		}
		var files []*ast.File
		for _, file := range p.GoFiles {
			f := need(parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution))(t)
			files = append(files, f)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}}
		checked := need((&types.Config{Importer: exports}).Check(p.ImportPath, fset, files, info))(t)
		if home {
			for _, name := range checked.Scope().Names() {
				fields[strings.TrimPrefix(p.ImportPath, module)+"."+name] = fieldsOf(checked.Scope().Lookup(name).Type())
			}
		}
		for _, f := range files {
			countSets(f, info, sets)
		}
	}
	return fields, sets
}

func fieldsOf(x types.Type) (names []string) {
	if s, ok := x.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Exported() {
				names = append(names, f.Name())
			}
		}
	}
	return names
}

// countSets counts the literals that set a field of a struct, and the assignments that do.
func countSets(f *ast.File, info *types.Info, sets map[string]int) {
	count := func(of types.Type, field string) {
		if of != nil {
			sets[strings.TrimPrefix(strings.TrimLeft(of.String(), "*"), module)+"."+field]++
		}
	}
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.CompositeLit:
			for _, e := range x.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					if key, ok := kv.Key.(*ast.Ident); ok {
						count(info.TypeOf(x), key.Name)
					}
				}
			}
		case *ast.AssignStmt:
			for _, to := range x.Lhs {
				if s, ok := to.(*ast.SelectorExpr); ok && info.Selections[s] != nil {
					count(info.Selections[s].Recv(), s.Sel.Name)
				}
			}
		}
		return true
	})
}
