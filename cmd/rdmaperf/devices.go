package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
)

func newDevicesCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the RDMA devices of this machine",
		Long: `List the RDMA devices with their ports, network interfaces, GIDs and limits. Where there
are none, say why and what can be done, and which transports work without a device.
MTUs and limits need kernel verbs. An empty list is an answer: the exit code is 0.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write := (*devices.Report).WriteText
			switch format {
			case "text":
			case "json":
				write = (*devices.Report).WriteJSON
			default:
				return cli.Usage("devices", fmt.Errorf("--format %q: unknown", format), "text or json")
			}
			r := devices.Collect(devices.Local(), stackspec.SoftTransports())
			r.Default = stackspec.Best()
			return write(&r, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}
