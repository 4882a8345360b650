package main

import (
	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/serve"
)

func newServeCommand() *cobra.Command { return serveCommand(new(serve.Options)) }

func serveCommand(o *serve.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be the other side of rdmaperf run HOST",
		Long: `serve waits for clients and plays the target of whatever they measure. It needs
no options of the test, survives its clients, and measures for one at a time: others wait, unless --shared. Its log has
a line for each point. It ends with SIGINT or SIGTERM, and exits with code 1 when its port is in use. SIGUSR1 makes
it log what it holds: clients, descriptors, goroutines, threads, mappings, memory.

With --target it measures nothing: it is the application of a device under test that
'rdmaperf conform --wire HOST:PORT' drives over this port.

Kernel verbs take the device that the client names where this machine has it with
an ACTIVE port, else the first device that has one. -d, -i and -x choose here.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.Run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	o.Register(cmd.Flags())
	return cmd
}
