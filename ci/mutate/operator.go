package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// operator is a place of the code at which gremlins would change an operator.
type operator struct {
	file, kind   string
	line, column int    // both from 1, the column in bytes
	code         string // the line, without blanks around it
	offset       int    // of the operator in the file
	old, new     string
}

// swaps are gremlins' changes by their names, longer operators first.
var swaps = map[string][][2]string{
	"ARITHMETIC_BASE":       {{"+", "-"}, {"-", "+"}, {"*", "/"}, {"/", "*"}, {"%", "*"}},
	"CONDITIONALS_BOUNDARY": {{"<=", "<"}, {">=", ">"}, {"<", "<="}, {">", ">="}},
	"CONDITIONALS_NEGATION": {{"==", "!="}, {"!=", "=="}, {"<=", ">"}, {">=", "<"}, {"<", ">="}, {">", "<="}},
	"INCREMENT_DECREMENT":   {{"++", "--"}, {"--", "++"}},
	"INVERT_NEGATIVES":      {{"-", "+"}},
}

// names are gremlins' words for a change: that of a minus has two, of which either may come first.
func (o operator) names() []string {
	if o.old == "-" {
		return []string{"ARITHMETIC_BASE", "INVERT_NEGATIVES"}
	}
	return []string{o.kind}
}

// find looks at the place that gremlins names. name is from the package, or from the module.
func find(root, pkg, name, kind string, line, column int) (operator, error) {
	o := operator{file: filepath.Join(pkg, name), kind: kind, line: line, column: column}
	text, err := os.ReadFile(filepath.Join(root, o.file))
	if err != nil {
		o.file = filepath.Clean(name)
		if text, err = os.ReadFile(filepath.Join(root, o.file)); err != nil {
			return o, err
		}
	}
	all := strings.SplitAfter(string(text), "\n")
	if line < 1 || line > len(all) || column < 1 || column > len(all[line-1]) {
		return o, fmt.Errorf("%s has no line %d with a column %d", o.file, line, column)
	}
	o.code = strings.TrimSpace(all[line-1])
	o.offset = len(strings.Join(all[:line-1], "")) + column - 1
	for _, s := range swaps[kind] {
		if strings.HasPrefix(string(text[o.offset:]), s[0]) {
			o.old, o.new = s[0], s[1]
			return o, nil
		}
	}
	return o, fmt.Errorf("%s:%d:%d: nothing that %s changes", o.file, line, column, kind)
}

// changed is the text of the file with the change.
func (o operator) changed(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, o.file))
	if err != nil || len(text) < o.offset+len(o.old) {
		return "", fmt.Errorf("%s was changed meanwhile: %w", o.file, err)
	}
	return string(text[:o.offset]) + o.new + string(text[o.offset+len(o.old):]), nil
}

// outside tells whether the operator is in no function.
func (o operator) outside(root string) bool {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, filepath.Join(root, o.file), nil, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	at := files.File(f.Pos()).Pos(o.offset)
	out := true
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			out = out && (n.Body == nil || at < n.Body.Pos() || at >= n.Body.End())
		case *ast.FuncLit:
			out = out && (at < n.Body.Pos() || at >= n.Body.End())
		}
		return out
	})
	return out
}
