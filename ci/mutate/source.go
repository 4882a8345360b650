package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// source is a package's files, without tests, and the types of what is in them.
type source struct {
	dir   string // from the module's directory
	name  string
	fset  *token.FileSet
	files map[string]*ast.File // by path from the module's directory
	texts map[string]string
	info  types.Info
}

// load reads a package. Types of what it imports come from the compiler.
func load(ctx context.Context, root, pkg string) (*source, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles,CgoFiles,DepOnly,Name", pkg)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	s := &source{dir: filepath.Clean(pkg), fset: token.NewFileSet(), files: map[string]*ast.File{}, texts: map[string]string{}}
	exports, path := map[string]string{}, ""
	var names []string
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Export, Name string
			GoFiles, CgoFiles        []string
			DepOnly                  bool
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.DepOnly {
			continue
		}
		if path, s.name, names = p.ImportPath, p.Name, p.GoFiles; len(p.CgoFiles) > 0 {
			return nil, errors.New("it has C")
		}
	}
	var all []*ast.File
	for _, name := range names {
		name = filepath.Join(s.dir, name)
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files[name], s.texts[name] = f, string(text)
		all = append(all, f)
	}
	s.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{
		Importer: importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }),
		Sizes:    types.SizesFor("gc", runtime.GOARCH),
	}
	_, err = conf.Check(path, s.fset, all, &s.info)
	return s, err
}
