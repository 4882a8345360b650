package ci

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A deferred function that uses a named result runs on nil behind `return nil, err`. What it cleans up is kept in a
// variable of its own.
func TestNoDeferredFunctionUsesAResultThatIsNil(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range list(t) {
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
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
