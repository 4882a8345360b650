package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// A schema is a package with all its changes at once, each asleep until it is asked for by its
// number (R. Untch, J. Offutt, M. J. Harrold, "Mutation analysis using mutant schemata", ISSTA
// 1993). It is compiled once, not once for each change.
//
// Operands are evaluated once and in their order: an operation becomes a call with both of
// them. Texts keep their lines, so that what fails or does not build is found where it stands.
type schema struct {
	texts  map[string]string // by path from the module's directory
	number map[operator]int  // from 1; what has none cannot be said so
	dead   map[operator]bool // they would not compile: there is no difference of texts
	size   int               // numbers are below
}

// binaries are the operations that become calls, by the function's name in helper. Those with
// two changes have the number of the second, the negation, behind that of the first.
var binaries = map[token.Token]string{
	token.ADD: "schemaAdd", token.SUB: "schemaSub", token.MUL: "schemaMul", token.QUO: "schemaQuo", token.REM: "schemaRem",
	token.LSS: "schemaLess", token.LEQ: "schemaAtMost", token.GTR: "schemaMore", token.GEQ: "schemaAtLeast",
}

// newSchema puts the changes into the package's files. Lines in without are left as they are.
func newSchema(src *source, all []operator, without map[string]bool) *schema {
	s := &schema{map[string]string{}, map[operator]int{}, map[operator]bool{}, 1}
	for file, parsed := range src.files {
		w := &writer{src: src, text: src.texts[file], at: map[ast.Node]int{}, parents: parents(parsed)}
		w.base = src.fset.File(parsed.Pos()).Pos(0)
		for node := range w.parents {
			offset, ok := w.operatorOf(node)
			line := func(p token.Pos) string { return fmt.Sprintf("%s:%d", filepath.Base(file), src.fset.Position(p).Line) }
			if offset < 0 || without[line(node.Pos())] || without[line(w.base+token.Pos(offset))] {
				continue
			}
			for _, o := range all {
				if o.file != file || o.offset != offset {
					continue
				}
				if s.dead[o] = w.joins(node); s.dead[o] || !ok {
					continue
				}
				if w.at[node] == 0 {
					w.at[node] = s.size
					s.size += 2
				}
				s.number[o] = w.at[node]
				if b, ok := node.(*ast.BinaryExpr); ok && o.kind == "CONDITIONALS_NEGATION" && b.Op != token.EQL && b.Op != token.NEQ {
					s.number[o]++
				}
			}
		}
		if len(w.at) > 0 {
			s.texts[file] = w.render(parsed, w.base, w.base+token.Pos(len(w.text)))
		}
	}
	return s
}

// writer renders one file.
type writer struct {
	src     *source
	text    string
	base    token.Pos
	at      map[ast.Node]int // numbers
	parents map[ast.Node]ast.Node
}

// operatorOf is where an operation that can be changed at run time has its operator. Constants
// cannot: types, lengths and labels are made of them.
func (w *writer) operatorOf(n ast.Node) (offset int, ok bool) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		_, call := binaries[n.Op]
		return int(n.OpPos - w.base), w.src.info.Types[n].Value == nil && (call || n.Op == token.EQL || n.Op == token.NEQ)
	case *ast.UnaryExpr:
		return int(n.OpPos - w.base), n.Op == token.SUB && w.src.info.Types[n].Value == nil
	case *ast.IncDecStmt:
		return int(n.TokPos - w.base), true
	}
	return -1, false
}

// joins tells two texts put together from a sum.
func (w *writer) joins(n ast.Node) bool {
	e, ok := n.(*ast.BinaryExpr)
	if !ok || e.Op != token.ADD {
		return false
	}
	b, ok := w.src.info.Types[e].Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

// render is the text of from to to, in which what has numbers is replaced. It begins below n.
func (w *writer) render(n ast.Node, from, to token.Pos) string {
	var b strings.Builder
	ast.Inspect(n, func(c ast.Node) bool {
		number := w.at[c]
		if c == nil || c == n || number == 0 || c.Pos() < from || c.End() > to {
			return true
		}
		b.WriteString(w.piece(from, c.Pos()))
		b.WriteString(w.changed(c, number))
		from = c.End()
		return false
	})
	return b.String() + w.piece(from, to)
}

func (w *writer) piece(from, to token.Pos) string { return w.text[from-w.base : to-w.base] }

// changed is a node with its changes.
func (w *writer) changed(n ast.Node, number int) string {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			return fmt.Sprintf("((%s) != schemaOn(%d))", w.render(n, n.Pos(), n.End()), number)
		}
		x, y := w.operand(n.X), w.operand(n.Y)
		gap := w.piece(n.X.End(), n.OpPos) + "," + w.piece(n.OpPos+token.Pos(len(n.Op.String())), n.Y.Pos())
		call := fmt.Sprintf("%s%s(%d, %s%s%s)", binaries[n.Op], w.instance(n.X), number, x, gap, y)
		if t, ok := w.src.info.Types[n].Type.(*types.Named); ok && t.Underlying() == types.Typ[types.Bool] {
			call = "(" + call + " == true)" // of no type, as the comparison was
		}
		return call
	case *ast.UnaryExpr:
		return fmt.Sprintf("schemaNeg%s(%d, %s)", w.instance(n.X), number, w.operand(n.X))
	case *ast.IncDecStmt:
		x := w.operand(n.X)
		switch w.parents[n].(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause, *ast.LabeledStmt:
			other := map[token.Token]token.Token{token.INC: token.DEC, token.DEC: token.INC}[n.Tok]
			return fmt.Sprintf("if schemaOn(%d) { %s%s } else { %s%s }", number, x, other, x, n.Tok)
		}
		return fmt.Sprintf("schema%s(%d, &%s)", map[token.Token]string{token.INC: "Inc", token.DEC: "Dec"}[n.Tok], number, x)
	}
	panic("no change of this node")
}

// operand is the text of an operand, which may have a number itself.
func (w *writer) operand(x ast.Expr) string {
	if number := w.at[x]; number > 0 {
		return w.changed(x, number)
	}
	return w.render(x, x.Pos(), x.End())
}

// instance names the type of a call where that has a name everywhere; constants and shifts of
// them take it from there. Elsewhere the compiler finds it.
func (w *writer) instance(x ast.Expr) string {
	if b, ok := types.Default(w.src.info.Types[x].Type).(*types.Basic); ok {
		return "[" + b.Name() + "]"
	}
	return ""
}

// parents gives each node of a file the one above it.
func parents(f *ast.File) map[ast.Node]ast.Node {
	up := map[ast.Node]ast.Node{}
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			up[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		return true
	})
	return up
}
