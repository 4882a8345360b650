// Command rdmaperf measures RDMA paths and checks that they behave as the
// specifications say, with the same workloads on every kind of transport.
//
// The command tree is in root.go, the explicit table of transports in stacks.go.
// Measuring itself is package internal/bench; results are package reports.
// Results go to stdout; logs and errors go to stderr, an error as one line:
// "rdmaperf: operation: object: cause; try …".
//
// # Ownership
//
// The process owns one server child when no host is given (loopback.go), and ends
// it before it ends itself.
//
// # Limitations
//
// Linux only. LITE stacks are named in the table and answer with exit code 77.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// sameWish is how close two signals count as one. Arbitrary: below what a hand can do.
const sameWish = 150 * time.Millisecond

func main() { os.Exit(mainWithSignals()) }

// mainWithSignals ends the run in order on the first SIGINT or SIGTERM, and at
// once on the second. Restoring the default for the second would not do: a shell
// starts background jobs with SIGINT ignored, and that would come back.
func mainWithSignals() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() { // ends with the process
		<-signals
		cancel()
		// timeout(1) signals the process and then its group: that is one wish.
		for first := time.Now(); time.Since(first) < sameWish; {
			<-signals
		}
		fmt.Fprintln(os.Stderr, "rdmaperf: interrupted twice: nothing more is written")
		os.Exit(reports.ExitFailed) // the server child is killed with its parent
	}()
	return execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
