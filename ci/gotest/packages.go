package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// listed is what `go list` says of a package or of a test binary.
type listed struct {
	ImportPath, Dir, Name, ForTest               string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
	TestEmbedPatterns                            []string
	Deps                                         []string
	Module                                       *struct{ Path string }
}

// pack is a package that has tests.
type pack struct {
	Path   string // import path
	Dir    string
	Bin    string // the test binary
	Clocks bool   // its tests, or what they run, look at a clock
	Long   bool   // its tests measure, or are many: they begin first
	Parts  int    // so many processes run its tests, side by side
	Rapid  bool   // has the flags of pgregory.net/rapid

	Programs bool // its tests may start programs

	Tests []string // names of all its tests
	Wide  []string // of those that may try a property more often without the race detector
	Only  []string // patterns (-test.run) of those to run, where that is not all
}

// engine is what measures: the tests that run it take longest.
const engine = module + "/cmd/rdmaperf/internal/engine"

// list tells which packages of the tree have tests, in the order of `go list`, and
// how many have none.
func list(root string) (packs []pack, without int, err error) {
	cmd := exec.Command("go", "list", "-test", "-json=ImportPath,Dir,Name,ForTest,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Deps,Module", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("go list: %w", err)
	}
	plain, binaries := map[string]*listed{}, map[string]*listed{}
	var order []string
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		l := new(listed)
		if err := dec.Decode(l); err != nil {
			return nil, 0, fmt.Errorf("go list: %w", err)
		}
		switch {
		case l.ForTest != "": // the package again, with its tests
		case strings.HasSuffix(l.ImportPath, ".test"):
			binaries[strings.TrimSuffix(l.ImportPath, ".test")] = l
		default:
			plain[l.ImportPath] = l
			order = append(order, l.ImportPath)
		}
	}
	own := map[string]bool{} // packages of ours whose code looks at a clock
	for path, l := range plain {
		if own[path], err = clockIn(l.Dir, slices.Concat(l.GoFiles, l.CgoFiles)); err != nil {
			return nil, 0, err
		}
	}
	for _, path := range order {
		l, bin := plain[path], binaries[path]
		if bin == nil {
			without++
			continue
		}
		p := pack{Path: path, Dir: l.Dir, Long: path == engine}
		if p.Clocks, err = clockIn(l.Dir, slices.Concat(l.TestGoFiles, l.XTestGoFiles)); err != nil {
			return nil, 0, err
		}
		for _, dep := range bin.Deps {
			dep, _, _ = strings.Cut(dep, " ") // "x [y.test]" is x
			p.Clocks = p.Clocks || own[dep]
			p.Long = p.Long || dep == engine
			p.Rapid = p.Rapid || dep == "pgregory.net/rapid"
		}
		if p.Programs, err = importsIn(l.Dir, slices.Concat(l.GoFiles, l.CgoFiles, l.TestGoFiles, l.XTestGoFiles), "os/exec"); err != nil {
			return nil, 0, err
		}
		if p.Tests, p.Wide, err = testsIn(l.Dir, slices.Concat(l.TestGoFiles, l.XTestGoFiles)); err != nil {
			return nil, 0, err
		}
		p.Parts = 1
		if p.Clocks {
			p.Parts += len(p.Tests) / partOf
		}
		p.Long = p.Long || p.Parts > 1
		packs = append(packs, p)
	}
	return packs, without, nil
}

// What makes a package one with clocks: it reads the time, waits for it, has sockets,
// whose waits have deadlines, or calls the kernel by itself. Names that are not here
// are types and units. Whatever is not known to be without a clock has one: no linker and
// no guest runs beside it.
var (
	clockPackages = []string{"net", "net/http", "os/signal", "syscall", "C", "golang.org/x/sys/unix", "testing/synctest"}
	clockNames    = map[string][]string{
		"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
		"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	}
)

// partOf is how many tests of a package with clocks are too many for one process: while it
// runs, and nothing else is left to run, a CPU is idle. Arbitrary.
const partOf = 60

// testsIn names the tests of files, and those of them in files that try properties.
func testsIn(dir string, files []string) (all, wide []string, err error) {
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		rapid := slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"pgregory.net/rapid"` })
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !testName.MatchString(fn.Name.Name) || fn.Name.Name == "TestMain" {
				continue
			}
			// An example without a comment of its output is compiled only.
			if strings.HasPrefix(fn.Name.Name, "Example") && !outputIn(f, fn) {
				continue
			}
			all = append(all, fn.Name.Name)
			if rapid {
				wide = append(wide, fn.Name.Name)
			}
		}
	}
	return all, wide, nil
}

// testName is how the names of tests begin: not with a word that goes on (testing's rule).
var testName = regexp.MustCompile(`^(Test|Fuzz|Example)($|[^a-z])`)

var outputComment = regexp.MustCompile(`(?i)^//\s*(unordered )?output:`)

func outputIn(f *ast.File, fn *ast.FuncDecl) bool {
	for _, group := range f.Comments {
		if group.Pos() < fn.Body.Pos() || group.End() > fn.Body.End() {
			continue
		}
		for _, c := range group.List {
			if outputComment.MatchString(c.Text) {
				return true
			}
		}
	}
	return false
}

// importsIn tells whether any of the files imports a package.
func importsIn(dir string, files []string, path string) (bool, error) {
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ImportsOnly)
		if err != nil {
			return false, err
		}
		for _, imp := range f.Imports {
			if got, _ := strconv.Unquote(imp.Path.Value); got == path {
				return true, nil
			}
		}
	}
	return false, nil
}

func clockIn(dir string, files []string) (bool, error) {
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if looksAtClock(f) {
			return true, nil
		}
	}
	return false, nil
}

func looksAtClock(f *ast.File) bool {
	called := map[string][]string{} // what the file calls a package → names
	for _, imp := range f.Imports {
		path, _ := strconv.Unquote(imp.Path.Value)
		if slices.Contains(clockPackages, path) || strings.HasPrefix(path, "google.golang.org/grpc") {
			return true
		}
		names, ok := clockNames[path]
		if !ok {
			continue
		}
		as := path
		if imp.Name != nil {
			as = imp.Name.Name
		}
		if as == "." {
			return true
		}
		called[as] = names
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(called[x.Name], s.Sel.Name) {
				found = true
			}
		}
		return !found
	})
	return found
}
