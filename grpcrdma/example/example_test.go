package example

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

func lines(t *testing.T, path ...string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append(path, "main.go")...))
	rpctest.Must(t, err)
	return strings.Split(string(b), "\n")
}

// without is the lines of a that b does not have, each as often as it is missing.
func without(a, b []string) []string {
	rest := slices.Clone(b)
	var out []string
	for _, l := range a {
		if i := slices.Index(rest, l); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else {
			out = append(out, l)
		}
	}
	return out
}

// The programs over RDMA are those over TCP but for the import and the place where the connection comes from.
func TestDifferenceIsTwoLines(t *testing.T) {
	for program, gone := range map[string]int{"server": 2, "client": 0} {
		tcp, rdma := lines(t, "helloworld", program), lines(t, "helloworld", "rdma", program)
		if removed, added := without(tcp, rdma), without(rdma, tcp); len(removed) != gone || len(added) != 2 {
			t.Errorf("%s: removed %q, added %q", program, removed, added)
		}
	}
}

func build(t *testing.T, at string) (server, client string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir, "./"+at+"/server",
		"./"+at+"/client").CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", at, err, out)
	}
	return filepath.Join(dir, "server"), filepath.Join(dir, "client")
}

func serve(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.Command(program, "-addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "GRPC_RDMA=iwarp")
	said, err := cmd.StderrPipe()
	rpctest.Must(t, err)
	rpctest.Must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	_, addr, ok := strings.Cut(strings.TrimSpace(line), "serving at ")
	if !ok {
		t.Fatalf("the server says %q, %v", line, err)
	}
	return addr
}

func TestProgramsRun(t *testing.T) {
	tcpServer, tcpClient := build(t, "helloworld")
	rdmaServer, rdmaClient := build(t, "helloworld/rdma")
	for name, run := range map[string]struct{ server, client, network, log string }{
		"tcp":      {tcpServer, tcpClient, "tcp", ""},
		"rdma":     {rdmaServer, rdmaClient, "rdma", ""},
		"fallback": {tcpServer, rdmaClient, "tcp", "falling back to tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, run.client, "-addr", serve(t, run.server))
			cmd.Env = append(os.Environ(), "GRPC_RDMA=iwarp")
			var out, log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &log
			if err := cmd.Run(); err != nil {
				t.Fatalf("client: %v\n%s", err, log.String())
			}
			want := "Hello, world (by " + run.network + ")\n"
			if out.String() != want || !strings.Contains(log.String(), run.log) || run.log == "" && log.Len() > 0 {
				t.Errorf("client says\n%s\nwant\n%s\nlog %q", out.String(), want, log.String())
			}
		})
	}
}
