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
// Linux only. Kernel verbs, the scheduler, LITE and gRPC stacks are named in the
// table and answer with exit code 77.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainWithSignals()) }

// mainWithSignals ends the run in order on the first SIGINT or SIGTERM, and at
// once on the second.
func mainWithSignals() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // gives the signals back to their default
	return execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
