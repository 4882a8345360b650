package run

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
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

func workloadHelp() string {
	var names, notes []string
	for _, w := range catalogue.All() {
		m := w.Meta()
		names = append(names, m.Name)
		if m.Note != "" {
			notes = append(notes, m.Note)
		}
	}
	return "comma list of " + strings.Join(names, ", ") + "\nwithout it: " + strings.Join(notes, "; ")
}

// Workloads is what each workload measures, a line each, for help.
func Workloads() string {
	var b strings.Builder
	b.WriteString("Workloads:\n\n")
	for _, w := range catalogue.All() {
		m := w.Meta()
		fmt.Fprintf(&b, "  %-12s %s\n", m.Name, m.Summary)
	}
	return b.String()
}

func defaultsHelp(of func(m workload.Meta) string) string {
	var parts []string
	for _, w := range catalogue.All() {
		if m := w.Meta(); m.Standard && of(m) != "" {
			parts = append(parts, m.Name+" "+of(m))
		}
	}
	return "(default " + strings.Join(parts, ", ") + ")"
}

func defaultOps(m workload.Meta) string {
	switch n := len(m.Ops); n {
	case 0:
		return ""
	case 1:
		return "of " + m.Ops[0]
	default:
		return "of " + strings.Join(m.Ops[:n-1], ", ") + " and " + m.Ops[n-1]
	}
}

func defaultSizes(m workload.Meta) string {
	var sizes []string
	for _, n := range m.Sizes {
		sizes = append(sizes, reports.FormatSize(int64(n)))
	}
	return strings.Join(sizes, ",")
}

func opNames() string {
	var names []string
	for k := transports.KindSend; k <= transports.KindCall; k++ {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

func (o *Options) common(p *engine.Plan, changed func(string) bool) (*workload.Common, error) {
	sizes, err := values.Sizes(o.sizes)
	if err != nil {
		return nil, err
	}
	for _, op := range o.ops {
		if _, known := transports.ParseKind(op); !known {
			return nil, values.Wrong("op", "unknown operation %q: want one of %s", op, opNames())
		}
	}
	for n := 2; o.all && n <= maxAll; n *= 2 {
		sizes = append(sizes, n)
	}
	return &workload.Common{Changed: changed, Plan: p, Workloads: values.Unique(o.workloads), CallsOnly: o.callsOnly,
		Pin: o.pin, Ops: values.Unique(o.ops), Sizes: sizes, All: o.all}, nil
}

// maxAll is the largest size of --all, perftest's.
const maxAll = 8 << 20

func (o *Options) points(c *workload.Common) (points []engine.Point, err error) {
	if err := c.Choose(o.work, o.workFlags); err != nil {
		return nil, err
	}
	if err := o.load.axes(c); err != nil {
		return nil, err
	}
	for _, name := range c.Workloads {
		of, err := workload.Find(o.work, name).Points(c)
		if err != nil {
			return nil, err
		}
		points = append(points, of...)
	}
	return points, nil
}

func metaOf(pt engine.Point) (m workload.Meta) {
	if w := workload.Find(catalogue.All(), pt.Workload); w != nil {
		m = w.Meta()
	}
	return m
}

// ofCalls tells points that only stacks which carry calls can run.
func ofCalls(pt engine.Point) bool { return metaOf(pt).Calls }

// addLayers adds the stacks with the parameters of layers that points ask for, which are measured at those points
// alone.
func (p *runPlan) addLayers() error {
	type asked struct{ layer, param string }
	var all []asked
	for _, pt := range p.points {
		if a := (asked{pt.Needs.Layer, pt.Needs.Param}); a.layer != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	p.added = map[string]bool{}
	for _, a := range all {
		var stacks []string
		found := false
		for _, spec := range p.stacks {
			stacks = append(stacks, spec)
			if p.added[spec] {
				continue
			}
			layers, err := stackspec.Parse(spec)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(layers, func(l stackspec.Layer) bool { return l.Name == a.layer })
			if i < 0 {
				continue
			}
			found = true
			key, _, _ := strings.Cut(a.param, "=")
			if _, given := layers[i].Param(key); given {
				continue // the user chose
			}
			layers[i] = layers[i].With(a.param)
			if more := stackspec.Format(layers); !slices.Contains(p.stacks, more) {
				p.added[more] = true
				stacks = append(stacks, more)
			}
		}
		if !found {
			return cli.Usage("read --transport",
				fmt.Errorf("none of the stacks has the layer %s, which a point asks for", a.layer),
				"--transport "+a.layer+"+"+stackspec.Embedded())
		}
		p.stacks = stacks
	}
	return nil
}

func (p *runPlan) suits(spec string, pt engine.Point) bool {
	if pt.Needs.Layer == "" {
		return !p.added[spec]
	}
	layers, err := stackspec.Parse(spec)
	return err == nil && slices.ContainsFunc(layers, func(l stackspec.Layer) bool {
		return l.Name == pt.Needs.Layer && slices.Contains(l.Params, pt.Needs.Param)
	})
}
