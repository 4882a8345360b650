// Command rdmaperf measures RDMA paths and checks that they behave as the specifications say.
// Results go to stdout; logs and errors go to stderr, an error as one line: "rdmaperf: operation: object: cause; try
// …".
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
	"github.com/rdmaperf/rdmaperf/reports"
)

// sameWish is how close two signals count as one. Arbitrary: below what a hand can do.
const sameWish = 150 * time.Millisecond

func main() { os.Exit(mainWithSignals()) }

// mainWithSignals ends the run in order on the first signal, and at once on the second. Restoring the default would not
// do: a shell starts background jobs with SIGINT ignored.
func mainWithSignals() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var got atomic.Pointer[os.Signal] // the first
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup(1) means to go on
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	// A closed stdout is an error of the write then, and no death before the files are written (package os/signal).
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	go func() { // ends with the process
		first := <-signals
		got.Store(&first)
		cancel()
		// timeout(1) signals the process and then its group: that is one wish.
		for since := time.Now(); time.Since(since) < sameWish; {
			<-signals
		}
		fmt.Fprintln(os.Stderr, "rdmaperf: interrupted twice: nothing more is written")
		os.Exit(signalled(reports.ExitInterrupted, &got)) // the server child is killed with its parent
	}()
	args := os.Args[1:]
	if t, ok := perftest.Find(filepath.Base(os.Args[0])); ok { // by the name of a link
		args = append([]string{perftestName, t.Name}, args...)
	}
	return signalled(guarded(ctx, args), &got)
}

func guarded(ctx context.Context, args []string) (code int) {
	defer func() {
		if e := recover(); e != nil {
			err := cli.Internal(e)
			fmt.Fprintln(os.Stderr, cli.ErrorLine(err))
			code = reports.Code(err)
		}
	}()
	return execute(ctx, args, os.Stdout, os.Stderr)
}

// signalled is the exit code of a run that a signal ended, as shells have it.
func signalled(code int, got *atomic.Pointer[os.Signal]) int {
	if first := got.Load(); code == reports.ExitInterrupted && first != nil {
		if n, ok := (*first).(syscall.Signal); ok {
			return 128 + int(n)
		}
	}
	return code
}
