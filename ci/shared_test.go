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
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}}
		checked, err := (&types.Config{Importer: exports}).Check(p.ImportPath, fset, files, info)
		if err != nil {
			t.Fatal(err)
		}
		if home {
			for _, name := range checked.Scope().Names() {
				fields[strings.TrimPrefix(p.ImportPath,
					module)+"."+name] = fieldsOf(checked.Scope().Lookup(name).Type())
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
