// Package liteapps is the lite command: applications of LITE, each compared with a single machine, and its daemon.
package liteapps

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/lines"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/local"
	"github.com/rdmaperf/rdmaperf/transports/lite/apps/pagerank"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type liteOptions struct {
	transport string
	nodes     int
}

func NewCommand() *cobra.Command {
	var o liteOptions
	cmd := &cobra.Command{
		Use:   "lite",
		Short: "Applications of LITE, the indirection tier, and its daemon",
		Long: `Run an application on nodes that share named memory through LITE, compare its answer
with that of a single machine, and say how many of its lines use the tier. The nodes
live in this process and meet over a transport: the rates are those of this machine,
on which all nodes share the processors.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.transport, "transport", stackspec.Embedded(), "stack of an RDMA provider that the nodes meet over")
	cli.Ranged(f, &o.nodes, "nodes", 4, 1, lite.MaxNodes, "nodes")
	cmd.AddCommand(newLiteLog(&o), newLiteWordCount(&o), newLitePageRank(&o), newLiteDSM(&o), newLiteDaemon(&o))
	return cmd
}

type liteApp struct {
	name    string
	source  fs.FS
	input   string // what it worked on
	took    time.Duration
	rate    string
	details []string
	same    bool // as the answer of a single machine
	alone   time.Duration
}

func (a *liteApp) print(w io.Writer, o *liteOptions, stack string) error {
	all, tier, err := lines.Count(a.source)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s on %d nodes over %s [in one process]\n", a.name, o.nodes, stack)
	fmt.Fprintf(w, "  input      %s\n", a.input)
	fmt.Fprintf(w, "  time       %s, %s\n", a.took.Round(10*time.Microsecond), a.rate)
	for _, d := range a.details {
		fmt.Fprintf(w, "  %s\n", d)
	}
	verdict := "the same"
	if !a.same {
		verdict = "DIFFERENT"
	}
	fmt.Fprintf(w, "  check      %s as on a single machine, which took %s\n", verdict, a.alone.Round(10*time.Microsecond))
	fmt.Fprintf(w, "  lines      %d of code, %d of them use LITE\n", all, tier)
	if !a.same {
		return &reports.ExitError{Code: reports.ExitCorruption, Operation: "lite " + a.name,
			Err: fmt.Errorf("the answer is not that of a single machine")}
	}
	return nil
}

// liteTimeout bounds each wait of an application: a barrier waits for the slowest node.
const liteTimeout = 2 * time.Minute

func (o *liteOptions) run(cmd *cobra.Command, a *liteApp, work func(nodes []*lite.Node, ids []int) error) error {
	stack, err := o.withNodes(cmd.Context(), work)
	if err != nil {
		return err
	}
	return a.print(cmd.OutOrStdout(), o, stack)
}

func (o *liteOptions) withNodes(ctx context.Context, f func(nodes []*lite.Node, ids []int) error) (stack string,
	err error) {
	at, err := stackspec.Survey(o.transport)
	if err != nil {
		return "", err
	}
	var s stackspec.Set
	cfg := lite.Config{Arena: liteArena, Timeout: liteTimeout, DeadAfter: 10 * time.Second}
	c, err := local.Open(ctx, o.nodes, cfg, func(int) (rdma.Device, string, error) {
		dev, err := s.OpenDevice(at.Spec)
		return dev, at.Listen, err
	})
	if err != nil {
		return "", err
	}
	defer func() { err = cmp.Or(err, c.Close()) }()
	// An interrupt ends the nodes, and with them every wait.
	unhook := context.AfterFunc(ctx, func() {
		for _, n := range c.Nodes {
			n.Close()
		}
	})
	defer unhook()
	ids := make([]int, o.nodes)
	for i := range ids {
		ids[i] = c.Nodes[i].ID()
	}
	return c.Nodes[0].Name(), f(c.Nodes, ids)
}

// liteArena is what each node registers. Arbitrary: it holds every default input.
const liteArena = 128 << 20

func perSecond(n int, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 1e-9) }

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
