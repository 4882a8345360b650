package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/wireorder"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The published example: what is on the wire, and which request completes first.
const (
	publishedWire        = "B G G B"
	publishedCompletions = "G B"
)

const orderTime = 30 * time.Second

func newOrderCommand() *cobra.Command {
	var transport, size string
	cmd := &cobra.Command{
		Use:   "order",
		Short: "Show in which order sched puts two requests on the wire",
		Long: `Show the published example of sRDMA on a live connection: two writes of two slices each,
first B at priority 0, then G at priority 1. Printed are the slices in the order in which
they were posted to the device below the scheduler, and the completions in theirs. The wire
is B G G B and G completes before B where the scheduler does what is published; anything
else is exit code 1. With another policy or slice the order is shown, and nothing expected.`,
		Example: `  rdmaperf order
  rdmaperf order --transport 'sched(fifo)+` + stackspec.Embedded() + `'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := values.Bytes(size)
			if err != nil || n < 2 || n > 1<<30 {
				return cli.Usage("read --size", fmt.Errorf("%s: want 2 bytes to 1 GiB", size), "--size 128K")
			}
			given := cmd.Flags().Changed("transport")
			if !given { // two slices of each, one of which is under way at a time
				slice := (n + 1) / 2
				transport = fmt.Sprintf("sched(strict,slice=%d,window=%d)+%s", slice, slice, stackspec.Embedded())
			}
			return showOrder(cmd.Context(), cmd.OutOrStdout(), transport, n, !given)
		},
	}
	cmd.Flags().StringVar(&transport, "transport", "",
		"a stack with sched outermost (default sched with a slice and a window of half a request, over "+
			stackspec.Embedded()+")")
	cmd.Flags().StringVar(&size, "size", "128K", "bytes of each of the two requests")
	return cmd
}

// showOrder prints the order on a stack; published: it has to be the published one.
func showOrder(ctx context.Context, w io.Writer, spec string, size int, published bool) (err error) {
	var tap *wireorder.Tap
	dev, err := stackspec.OpenTapped(spec, func(below rdma.Device) rdma.Device {
		tap = wireorder.NewTap(below)
		return tap
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	bounded, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	o, err := wireorder.Run(bounded, dev, tap, size)
	if err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "write two requests over " + dev.Name(),
			Err: err}
	}
	fmt.Fprintf(w, "%s\nposted     B, %d bytes at priority %d; then G, %d bytes at priority %d\n", dev.Name(), size,
		wireorder.Requests[0].Priority, size, wireorder.Requests[1].Priority)
	fmt.Fprintf(w, "wire       %s\n", o.Names())
	for _, p := range o.Wire {
		fmt.Fprintf(w, "           %s bytes %d to %d\n", p.Name, p.Off, p.Off+p.Len-1)
	}
	completions := strings.Join(o.Completions, " ")
	fmt.Fprintf(w, "completed  %s\n", completions)
	if !published {
		return nil
	}
	if o.Names() != publishedWire || completions != publishedCompletions {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "compare the order",
			Err: fmt.Errorf("wire %s, completions %s; published are %s and %s", o.Names(), completions, publishedWire,
				publishedCompletions)}
	}
	fmt.Fprintln(w, "as published")
	return nil
}
