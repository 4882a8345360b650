package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/rping"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// console collects what a command prints while it runs.
type console struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

// invoke runs one command as the command line does; the line is what the user would see of an error.
func invoke(ctx context.Context, cmd *cobra.Command, args ...string) (stdout, line string, code int) {
	var out, errs console
	err := invokeTo(ctx, cmd, &out, &errs, args...)
	if err != nil {
		line = cli.ErrorLine(err)
	}
	return out.String(), line, reports.Code(err)
}

func invokeTo(ctx context.Context, cmd *cobra.Command, out, errs *console, args ...string) error {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{}, args...)) // nil would be those of the test
	cmd.SetOut(out)
	cmd.SetErr(errs)
	return cmd.ExecuteContext(ctx)
}

var listening = regexp.MustCompile(`addr=127\.0\.0\.1:(\d+)`)

// serving runs a command as a server until the returned function or the test ends it, and returns its port.
func serving(t *testing.T, cmd *cobra.Command, out *console, args ...string) (port string, end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var errs console
	done := make(chan error, 1)
	go func() { done <- invokeTo(ctx, cmd, out, &errs, args...) }()
	end = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("%s: %v", cmd.Name(), err)
		}
	})
	for range 1000 {
		if m := listening.FindStringSubmatch(errs.String()); m != nil {
			return m[1], end
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s printed no address: %q", cmd.Name(), errs.String())
	return "", nil
}

func rpingServer(t *testing.T, out *console, args ...string) (port string, end func() error) {
	t.Helper()
	return serving(t, newRpingCommand(), out, append([]string{"-s", "-a", "127.0.0.1", "-p", "0"}, args...)...)
}

func TestRpingServerServesClientsUntilItIsInterrupted(t *testing.T) {
	for _, transport := range []string{"iwarp", "iwarp(nocrc,markers)", "iwarp(rev1)",
		"iwarp(checked,p2p,sndbuf=64K,rcvbuf=64K)"} {
		t.Run(transport, func(t *testing.T) {
			var out console
			port, end := rpingServer(t, &out)
			var clients sync.WaitGroup
			for _, size := range []string{"64", "4096", "65000"} {
				clients.Go(func() {
					stdout, line, code := invoke(context.Background(), newRpingCommand(),
						"-c", "-a", "127.0.0.1", "-p", port, "-C", "25", "-S", size, "-V", "--transport", transport)
					if code != 0 || !strings.HasPrefix(stdout, "25 pings in ") ||
						!strings.Contains(stdout, "every byte compared") {
						t.Errorf("client with -S %s: exit code %d, %q, %q", size, code, stdout, line)
					}
				})
			}
			clients.Wait()
			if err := end(); err != nil {
				t.Errorf("the interrupted server returns %v, want nil", err)
			}
			if out.String() != "" {
				t.Errorf("a quiet server printed %q", out.String())
			}
		})
	}
}

func TestRpingVerbosePrintsThePings(t *testing.T) {
	var out console
	port, end := rpingServer(t, &out, "-v", "-P")
	stdout := runs(t, "rping", "-c", "-vVC2", "-S", "30", "-a", "127.0.0.1", "-p", port, "--busy").stdout
	must(t, end())
	const want = "ping data: rdma-ping-0: ABCDEFGHIJKLMNOP\nping data: rdma-ping-1: BCDEFGHIJKLMNOPQ\n"
	if !strings.HasPrefix(stdout, want+"2 pings in ") {
		t.Errorf("the client printed %q, want %q first", stdout, want)
	}
	if got := out.String(); got != strings.ReplaceAll(want, "ping data", "server ping data") {
		t.Errorf("the server printed %q, want %q with server in front", got, want)
	}
}

func TestRpingEchoDisarmsControlCharacters(t *testing.T) {
	var out console
	f := rpingFlags{verbose: true}
	f.echo(&out, "> ")([]byte("a\x1b[2J\r\nb\x7f\xff~\x00rest"))
	if got, want := out.String(), "> a.[2J..b..~\n"; got != want {
		t.Errorf("echo = %q, want %q", got, want)
	}
}

func TestRpingEndlessClientEndsWell(t *testing.T) {
	port, _ := rpingServer(t, new(console))
	for _, c := range []struct {
		args []string
		code int
	}{{nil, reports.ExitOK}, {[]string{"-C", "100000000"}, reports.ExitFailed}} {
		var stdout, line string
		var code int
		// Once it has got somewhere: a busy machine takes long to begin.
		for after := 200 * time.Millisecond; after < 20*time.Second &&
			!strings.Contains(stdout, " pings in "); after *= 5 {
			ctx, cancel := context.WithTimeout(context.Background(), after)
			stdout, line, code = invoke(ctx, newRpingCommand(), append([]string{"-c", "-a", "127.0.0.1", "-p", port},
				c.args...)...)
			cancel()
		}
		if code != c.code || !strings.Contains(stdout, " pings in ") {
			t.Errorf("interrupted client %q: exit code %d, %q, %q, want %d and how far it came", c.args, code, stdout,
				line, c.code)
		}
	}
}

func TestRpingWithoutAServerExitsWithFive(t *testing.T) {
	ln := need(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	// A listener that never answers first, then nobody.
	for range 2 {
		fails(t, reports.ExitPeer, "127.0.0.1:"+port, "rping", "-c", "-a", "127.0.0.1", "-p", port, "--timeout", "300ms")
		ln.Close()
	}
}

func TestRpingErrorsHaveTheirExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, reports.ExitOK},
		{errors.Join(&rping.MismatchError{Ping: 3}, rdma.ErrBusy), reports.ExitCorruption},
		{&rdma.MissingError{Gaps: []string{"operation read"}}, reports.ExitNotRun},
		{&rdma.OpError{Op: "connect", Err: rdma.ErrUnreachable}, reports.ExitPeer},
		{&rping.TimeoutError{Step: "go-ahead", After: time.Second}, reports.ExitPeer},
		{&rping.MalformedError{What: "message of 3 bytes"}, reports.ExitPeer},
		{&rdma.RejectError{}, reports.ExitPeer},
		{fmt.Errorf("ping 4: %w", rping.ErrPeerGone), reports.ExitPeer},
		{&rdma.StatusError{WC: rdma.WC{Status: rdma.StatusRemAbortErr}}, reports.ExitPeer},
		{&rdma.OpError{Op: "listen", Err: rdma.ErrAddrInUse}, reports.ExitFailed},
		{context.Canceled, reports.ExitFailed},
	} {
		if code := reports.Code(rpingError(c.err)); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, code, c.code)
		}
	}
}

func TestAnRpingServerListensWhereItIsTold(t *testing.T) {
	for _, c := range []struct {
		asked, addr string
		bad         bool
	}{
		{"10.78.0.1", "10.78.0.1:7174", false},
		{"", "0.0.0.0:7174", false},
		{"0.0.0.0", "[::]:7174", false},
		{"localhost", "127.0.0.1:7174", false},
		{"10.78.0.1", "[::ffff:10.78.0.1]:7174", false},
		{"127.0.0.1", "10.78.0.1:7174", true},
		{"10.77.0.1", "10.78.0.1:7174", true},
	} {
		f := rpingFlags{addr: c.asked}
		err := f.listensThere("verbs(cm):siw0", c.addr)
		if (err != nil) != c.bad {
			t.Errorf("-a %q, listening at %s: %v", c.asked, c.addr, err)
		}
		if err != nil && (reports.Code(err) != reports.ExitUsage ||
			!strings.Contains(cli.ErrorLine(err), "not an address of verbs(cm):siw0; try -a 10.78.0.1")) {
			t.Errorf("-a %q: %s", c.asked, cli.ErrorLine(err))
		}
	}
}
