package main

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
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

func newDoctorCommand() *cobra.Command {
	var peer string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this host or pod lacks for RDMA, and what mends it",
		Long: `Say what kernel verbs would miss here: devices and their files, ACTIVE ports, GIDs,
locked memory, the CPU governor. Each comes with the command that mends it on a host,
and with the line of a pod's manifest. Below are the GIDs of each port with the one
that a connection takes and why.

Exit codes: 0 nothing is lacking, 1 something is, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var at netip.Addr
			if peer != "" {
				var err error
				if at, err = netip.ParseAddr(peer); err != nil {
					return cli.Usage("read --peer", err, "--peer 192.0.2.7")
				}
			}
			h, e := devices.Local(), reports.Collect()
			r := devices.Collect(h, nil)
			lacks := h.Lacks(&r, &e)
			if err := devices.WriteDoctor(cmd.OutOrStdout(), &r, lacks, at); err != nil {
				return err
			}
			if len(lacks) > 0 {
				return &reports.ExitError{Code: reports.ExitFailed, Operation: "doctor",
					Err: errors.New(fmt.Sprint(len(lacks), " lacking"))}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&peer, "peer", "", "address of the peer that the GID is for (default any of IPv4)")
	return cmd
}
