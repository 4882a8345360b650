package run

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

// FlagGroups holds every flag of run once. What most runs need stands first, so
// that a newcomer may stop reading early; the workloads' flags follow in the order of
// the catalogue.
func FlagGroups() []cli.FlagGroup {
	groups := []cli.FlagGroup{
		{Title: "What to measure", Flags: []string{"transport", "workload", "op", "size", "all", "scenario"}},
		{Title: "How long", Flags: []string{"duration", "iters", "warmup", "rounds", "interval", "run-infinitely"}},
		{Title: "Load", Flags: []string{"qp", "qp-sweep", "threads", "tx-depth", "rx-depth", "bidirectional",
			"app-work", "impair", "inline_size", "cq-mod", "post_list", "polling", "loop", "nice",
			"rate", "rate-sweep", "arrivals", "neighbours", "pin", "awake", "verify", "seed"}},
		{Title: "Peer and device", Flags: []string{"port", "ib-dev", "ib-port", "gid-index", "rdma_cm", "connection",
			"mtu", "qp-timeout", "retry_count", "sl", "tos", "token-file", "tls", "tls-ca", "tls-cert", "tls-key",
			"tls-server-name", "no-wait", "timeout", "CPU-freq"}},
		{Title: "Output", Flags: []string{"output", "export", "json", "force", "no-save", "save", "format",
			"details", "report_gbits", "counters", "raw", "raw-limit", "cpu-profile", "fail-if", "expect",
			"metrics-listen", "metrics-push", "metrics-textfile", "quiet", "verbose", "help"}},
	}
	all := catalogue.All()
	for i, flags := range workload.Register(all, pflag.NewFlagSet("run", pflag.ContinueOnError)) {
		title := all[i].Meta().Group
		if last := &groups[len(groups)-1]; title != "" && last.Title == title {
			last.Flags = append(last.Flags, flags...)
		} else if title != "" {
			groups = append(groups, cli.FlagGroup{Title: title, Flags: flags})
		}
	}
	return groups
}
