package liteapps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/pagerank"
)

// goSources lists the sources of Go's standard library on this machine without tests, and their folder.
func goSources(ctx context.Context) (root string, files []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	root = os.Getenv("GOROOT")
	if root == "" {
		out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return "", nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "find the sources of Go",
				Err: fmt.Errorf("no input was named, and go env GOROOT fails: %w", err), Hint: "naming files"}
		}
		root = string(bytes.TrimSpace(out))
	}
	root = filepath.Join(root, "src")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "vendor" || path == filepath.Join(root, "cmd")):
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = errors.New("no Go files")
	}
	if err != nil {
		return "", nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "find the sources of Go in " + root,
			Err: err, Hint: "naming files"}
	}
	return root, files, nil
}

func importGraph(ctx context.Context) (*pagerank.Graph, string, error) {
	root, files, err := goSources(ctx)
	if err != nil {
		return nil, "", err
	}
	var b pagerank.Builder
	seen := map[[2]string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return nil, "", fmt.Errorf("read imports: %w", err)
		}
		from, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return nil, "", err
		}
		for _, i := range f.Imports {
			to, err := strconv.Unquote(i.Path.Value)
			if edge := [2]string{from, to}; err == nil && !seen[edge] {
				seen[edge] = true
				b.Add(from, to)
			}
		}
	}
	return b.Graph(), "imports of Go's standard library", nil
}

func edgeList(name string) (*pagerank.Graph, string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, "", cli.Usage("read edges", err, "a file of edges, two names a line")
	}
	defer f.Close()
	g, err := pagerank.Read(f)
	if err != nil {
		return nil, "", cli.Usage("read edges of "+name, err, "a file of edges, two names a line")
	}
	return g, name, nil
}
