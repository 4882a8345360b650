package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/perftest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// documentTables write the generated parts of the documents, by the name in their
// markers, from the tables that the program itself runs by.
var documentTables = map[string]func(t *testing.T) string{
	"workloads":        workloadSections,
	"commands":         commandHelp,
	"exit-codes":       exitCodeTable,
	"formats":          formatTable,
	"stacks":           stackTableText,
	"parameters":       parameterTable,
	"capabilities":     capabilityTable,
	"perftest-options": perftestTable,
	"fused":            fusedTable,
	"common-figures":   commonFigureTable,
	"workload-figures": workloadFigureTable,
}

// commonFigureTable has the figures that any result may have; of distributions, their names alone.
func commonFigureTable(*testing.T) string {
	return "Distributions: the latency, `corrected` for coordinated omission, and `service`, of an open loop without " +
		"the wait for a late start.\n\n" +
		figureRows(slices.DeleteFunc(reports.CommonDefs(), reports.FigureDef.OfDistribution))
}

func figureRows(defs []reports.FigureDef) string {
	var b strings.Builder
	b.WriteString("| figure | what it is | quantity | better |\n|---|---|---|---|\n")
	for _, d := range defs {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, cell(d.Help), d.Quantity, d.Better)
	}
	return b.String()
}

// workloadFigureTable has the dimensions and figures of each workload's own.
func workloadFigureTable(*testing.T) string {
	var b strings.Builder
	for _, w := range catalogue.Results() {
		if len(w.Dims)+len(w.Latencies)+len(w.Figures) == 0 {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", w.Name, w.Intro)
		for _, l := range []struct {
			what string
			of   []reports.DimDef
		}{{"dimension", w.Dims}, {"distribution", w.Latencies}} {
			if len(l.of) == 0 {
				continue
			}
			fmt.Fprintf(&b, "| %s | what it is | unit |\n|---|---|---|\n", l.what)
			for _, d := range l.of {
				unit := d.Unit
				if l.what == "distribution" {
					unit = "ns"
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Name, cell(d.Help), unit)
			}
			b.WriteString("\n")
		}
		if len(w.Figures) > 0 {
			b.WriteString(figureRows(w.Figures) + "\n")
		}
		if len(w.Shown) > 0 {
			fmt.Fprintf(&b, "Shown in tables, comparisons and charts: `%s`.\n\n", strings.Join(w.Shown, "`, `"))
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// fusedTable is what the fused form of gRPC lacks, with the reasons.
func fusedTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| not with `grpc(fused)` | why |\n|---|---|\n")
	for _, what := range slices.Sorted(maps.Keys(fused.Unsupported)) {
		fmt.Fprintf(&b, "| %s | %s |\n", cell(what), cell(fused.Unsupported[what]))
	}
	return b.String()
}

// cell is text for a column of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// workloadSections are what each workload measures, with examples, its own flags and its text.
func workloadSections(t *testing.T) string {
	var b strings.Builder
	all := catalogue.All()
	set := newRunCommand().Flags()
	flags := workload.Register(all, pflag.NewFlagSet("run", pflag.ContinueOnError))
	b.WriteString("| `--workload` | what it measures |\n|---|---|\n")
	for _, w := range all {
		m := w.Meta()
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", m.Name, m.Name, cell(m.Summary))
	}
	for i, w := range all {
		m := w.Meta()
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", m.Name, sentence(m.Summary))
		for line := range strings.Lines(m.Examples) {
			fmt.Fprintf(&b, "    %s\n", strings.TrimSuffix(line, "\n"))
		}
		if own := append(flags[i], m.Takes...); len(own) > 0 {
			b.WriteString("\n| flag | meaning | default |\n|---|---|---|\n")
			for _, n := range own {
				f := set.Lookup(n)
				fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", n, cell(strings.TrimPrefix(strings.ReplaceAll(f.Usage, "\n", "; "),
					m.Name+": ")), cell(strings.Trim(f.DefValue, "[]")))
			}
		}
		text, err := os.ReadFile(filepath.Join("internal", "workload", m.Name, "text.md"))
		if err == nil {
			fmt.Fprintf(&b, "\n%s\n", strings.Trim(string(text), "\n"))
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	return b.String()
}

// sentence is a summary as a sentence of its own.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// commandHelp is the help of every command that help lists; of run, that of all flags.
func commandHelp(t *testing.T) string {
	var b strings.Builder
	var write func(c *cobra.Command)
	write = func(c *cobra.Command) {
		if !c.IsAvailableCommand() || c.Name() == "completion" || c.Name() == "stacks" {
			return
		}
		words := append(strings.Fields(c.CommandPath())[1:], "--help")
		if c.Name() == "run" {
			words = append(words, "all")
		}
		fmt.Fprintf(&b, "## %s\n\n```text\n%s```\n\n", c.CommandPath(), helpText(t, words...))
		for _, sub := range c.Commands() {
			write(sub)
		}
	}
	for _, c := range newRootCommand().Commands() {
		write(c)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// exitCodeTable is what each exit code means.
func exitCodeTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| exit code | meaning | in a pipeline |\n|---|---|---|\n")
	for _, m := range reports.ExitMeanings {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", m.Code, cell(m.Means), cell(m.Do))
	}
	return b.String()
}

// formatTable says where each format can be had.
func formatTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| format | what it is | `--format` of | file of `-o` |\n|---|---|---|---|\n")
	for _, f := range render.All() {
		var of []string
		for _, c := range []struct {
			name string
			can  func(f *render.Format) bool
		}{{"run", render.OfRun}, {"report", render.OfReport}, {"compare", render.OfComparison}} {
			if c.can(&f) {
				of = append(of, "`"+c.name+"`")
			}
		}
		file := ""
		if f.File != "" {
			file = codeList(f.File)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, cell(f.Summary), strings.Join(of, ", "), file)
	}
	return b.String()
}

func stackTableText(*testing.T) string {
	var b strings.Builder
	b.WriteString("| `--transport` | what it is |\n|---|---|\n")
	for i := range stackspec.Table {
		e := &stackspec.Table[i]
		fmt.Fprintf(&b, "| %s | %s |\n", codeList(e.Label()), cell(e.Summary))
	}
	return b.String()
}

// codeList sets the words of a comma list as code.
func codeList(list string) string {
	var words []string
	for _, w := range stackspec.Split(list, ',') {
		words = append(words, "`"+strings.TrimSpace(w)+"`")
	}
	return strings.Join(words, ", ")
}

// parameterTable is what the layers declare.
func parameterTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| layer | parameter | what it does | default |\n|---|---|---|---|\n")
	for i := range stackspec.Table {
		e := &stackspec.Table[i]
		for _, d := range e.Docs() {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", e.Name, cell(d.Shown()), cell(d.Help), cell(d.Def))
		}
	}
	return b.String()
}

// perftestTable shows every option of perftest, what becomes of it, and what run says.
func perftestTable(*testing.T) string {
	var b strings.Builder
	letters, all, by, of := 0, 0, map[string]int{}, map[string]int{}
	for _, d := range perftest.Describe() {
		if d.Own {
			continue
		}
		all++
		of[d.Verdict]++
		if d.Letter != "" {
			letters++
			by[d.Verdict]++
		}
	}
	fmt.Fprintf(&b, "Of %d options %d are the same, %d differ and %d are refused; of the %d with a letter %d, %d and %d.\n\n",
		all, of[perftest.Same], of[perftest.Differs], of[perftest.Refused], letters, by[perftest.Same],
		by[perftest.Differs], by[perftest.Refused])
	b.WriteString("| perftest | what it does there | `rdmaperf perftest` | how it differs, or what to do instead | " +
		"`rdmaperf run` |\n|---|---|---|---|---|\n")
	root := newRootCommand()
	run, _, _ := root.Find([]string{"run"}) // a command of the table
	for _, d := range perftest.Describe() {
		name, key := "`--"+d.Long+"`", d.Long
		if d.Letter != "" {
			name, key = "`-"+d.Letter+"`, "+name, d.Letter
		}
		says := perftest.Advice(key)
		same := run.Flags().Lookup(key) != nil
		if d.Letter != "" {
			same = run.Flags().ShorthandLookup(d.Letter) != nil
		}
		switch {
		// help, a word about the handshake, rdmaperf's own
		case d.Letter == "h" || d.Letter == "z" || d.Long == "transport":
			says = ""
		case d.Letter == "o":
			says = "`-o` is a directory; " + perftest.Advice("outs")
		case same:
			says = "the same"
		}
		if says == d.Why {
			says = "" // it says that already
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, cell(d.What), d.Verdict, cell(d.Why), cell(says))
	}
	return b.String()
}

// capabilityTable is what the providers themselves declare.
func capabilityTable(t *testing.T) string {
	t.Helper()
	names := []string{"iwarp", "mem"}
	var caps []rdma.Caps
	for _, name := range names {
		dev := need(new(stackspec.Set).OpenDevice(name))(t)
		caps = append(caps, dev.Caps())
		must(t, dev.Close())
	}
	var b strings.Builder
	row := func(what string, cell func(c *rdma.Caps) string) {
		fmt.Fprintf(&b, "| %s |", what)
		for i := range caps {
			fmt.Fprintf(&b, " %s |", cell(&caps[i]))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "| capability | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	yes := func(ok bool) string {
		if ok {
			return "yes"
		}
		return "–"
	}
	for o := rdma.Opcode(0); int(o) < rdma.NumOpcodes; o++ {
		row(o.String(), func(c *rdma.Caps) string { return yes(c.Ops.Has(o)) })
	}
	for f := rdma.Features(1); f.String() != ""; f <<= 1 {
		row(strings.ReplaceAll(f.String(), "_", " "), func(c *rdma.Caps) string { return yes(c.Features.Has(f)) })
	}
	row("a completion means", func(c *rdma.Caps) string { return c.Completion.String() })
	row("longest message", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxMsg) })
	row("queue depth", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxQPWR) })
	row("reads outstanding (IRD, ORD)", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxRDAtom) })
	row("scatter/gather elements, of a read", func(c *rdma.Caps) string {
		return fmt.Sprintf("%d, %d", c.MaxSGE, c.MaxReadSGE)
	})
	row("inline bytes", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxInline) })
	row("private data bytes", func(c *rdma.Caps) string { return fmt.Sprint(c.MaxPrivate) })
	return b.String()
}
