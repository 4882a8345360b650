// Package lines counts how much of an application's source uses LITE: lines that name the package, or call a method
// with the name of one that the tier has. Types are not looked up, so that the count is never too low.
package lines

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strings"
)

// calls are the methods by which an application uses the tier.
var calls = strings.Fields(
	"Client Malloc Map Unmap FreeRegion Grant Move Size Read Write FetchAdd CmpSwap TestSet Memset Memmove " +
		"Post Poll Barrier BarrierOf NewLock OpenLock Lock Unlock Serve Recv TryRecv Reply ReplyError Release " +
		"Call Start Finish Send Await Alloc Free Offset")

// Count returns the lines of code, without comments, blank lines and imports, and those of them that use the tier.
func Count(src fs.FS) (all, tier int, err error) {
	names, err := fs.Glob(src, "*.go")
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(src, name)
		if err != nil {
			return 0, 0, err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, text, 0)
		if err != nil {
			return 0, 0, fmt.Errorf("count lines: %w", err)
		}
		code, uses := map[int]bool{}, map[int]bool{}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if n == nil {
					return true
				}
				code[set.Position(n.Pos()).Line], code[set.Position(n.End()-1).Line] = true, true
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "lite" {
						uses[set.Position(n.Pos()).Line] = true
					}
				}
				if c, ok := n.(*ast.CallExpr); ok {
					if s, ok := c.Fun.(*ast.SelectorExpr); ok && slices.Contains(calls, s.Sel.Name) {
						uses[set.Position(s.Sel.Pos()).Line] = true
					}
				}
				return true
			})
		}
		all, tier = all+len(code), tier+len(uses)
	}
	return all, tier, nil
}
