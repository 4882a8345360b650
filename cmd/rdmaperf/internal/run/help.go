package run

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

// questions are the flags that most runs need.
var questions = []cli.FlagGroup{
	{Title: "What to measure", Flags: []string{"transport", "workload", "op", "size", "all", "qp", "tx-depth",
		"bidirectional", "rate", "polling"}},
	{Title: "How long", Flags: []string{"duration", "iters", "rounds"}},
	{Title: "Against whom", Flags: []string{"port", "ib-dev", "ib-port", "gid-index", "rdma_cm"}},
	{Title: "Output", Flags: []string{"output", "json", "format", "report_gbits", "save", "fail-if", "scenario",
		"help"}},
}

const moreHelp = `
More:
  rdmaperf run --help WORKLOAD   what it measures, its flags, examples
  rdmaperf run --help all        every flag
  rdmaperf help stacks           stacks and their parameters
  rdmaperf serve --help          the other side, on another host
`

// Help writes the help of run: the flags of most runs, or of topics, which are workloads and "all".
func Help(c *cobra.Command, topics []string) {
	w := c.OutOrStdout()
	for _, t := range topics {
		if t == "all" {
			fmt.Fprintf(w, "%s\n\n", cli.Fill(c.Long, cli.Columns(os.Stdout)))
			c.SetOut(w)
			c.Usage() // an error of the terminal is no error of the help
			return
		}
	}
	found := false
	for _, t := range topics {
		found = helpOf(w, c.Flags(), t) || found
	}
	if found {
		return
	}
	first, _, _ := strings.Cut(c.Long, "\n\n")
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", cli.Fill(first, cli.Columns(os.Stdout)), c.UseLine(),
		c.Example)
	cli.WriteFlags(w, c.Flags(), questions, true)
	io.WriteString(w, moreHelp)
}

func helpOf(w io.Writer, f *pflag.FlagSet, name string) bool {
	all := catalogue.All()
	of := workload.Register(all, pflag.NewFlagSet("run", pflag.ContinueOnError))
	for i, one := range all {
		m := one.Meta()
		if m.Name != name {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n\nExamples:\n", m.Name, m.Summary)
		for line := range strings.Lines(m.Examples) {
			fmt.Fprintf(w, "  %s\n", strings.TrimSuffix(line, "\n"))
		}
		cli.WriteFlags(w, cli.Only(f, append(of[i], m.Takes...)), nil, false)
		common := "\nAll other flags: rdmaperf run --help all\n"
		if m.Ops != nil || m.Sizes != nil {
			common = fmt.Sprintf("\nWithout --op and --size: %s.%s",
				strings.Trim(strings.Join(m.Ops, ",")+"; "+defaultSizes(m), "; "), common)
		}
		io.WriteString(w, common)
		return true
	}
	return false
}

func topics(c *cobra.Command) []string {
	words := c.Flags().Args()
	if c.Flags().Changed("workload") {
		named, _ := c.Flags().GetStringSlice("workload") // the flag exists
		words = append(words, named...)
	}
	return words
}

// SetHelp makes Help the help of c, for the words on its command line, or behind "rdmaperf help run".
func SetHelp(c *cobra.Command) {
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c.Flags().Parsed() {
			args = topics(c)
		}
		Help(c, args)
	})
}

// FlagGroups holds every flag of run once, the workloads' in the order of the catalogue.
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
