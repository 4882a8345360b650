package main

import (
	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/conformance"
)

func newConformCommand() *cobra.Command {
	var f conformance.Flags
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Check that a provider behaves as the specifications say",
		Long: `Run the conformance cases against providers, each case on fresh connections, and
print a matrix of verdicts. A case that a provider's declared capabilities do not
cover is "unsupported"; a declared capability that no case proved is a failure.

Exit codes: 0 all required cases pass, 1 a case failed, 2 wrong command line or
nothing selected, 77 a provider could not be opened.`,
		Example: `  rdmaperf conform --transport mem,iwarp
  rdmaperf conform --transport iwarp --only 'rdr/*,ord' --format jsonl
  rdmaperf conform --strict --ledger known.json --junit junit.xml --jsonl conform.jsonl
  rdmaperf conform --explain ord/write-then-read
  rdmaperf conform --wire 192.0.2.7:7174 --format jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Timed = cmd.Flags().Changed("case-timeout")
			return f.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.Register(cmd.Flags())
	return cmd
}
