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
	"workloads":        workloadTable,
	"workload-flags":   workloadFlagTable,
	"workload-texts":   workloadTexts,
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

// workloadTable has two workloads a row, so that README.md, whose length is bounded, takes
// a new one.
func workloadTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| `--workload` | what it measures | `--workload` | what it measures |\n|---|---|---|---|\n")
	all := catalogue.All()
	for i, w := range all {
		m, by := w.Meta(), ""
		if m.Standard {
			by = " (by itself)"
		}
		fmt.Fprintf(&b, "| `%s` | %s%s ", m.Name, cell(m.Summary), by)
		switch {
		case i%2 == 1:
			b.WriteString("|\n")
		case i == len(all)-1:
			b.WriteString("| | |\n")
		}
	}
	return b.String()
}

func workloadFlagTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| `--workload` | what it measures | by itself | its own options |\n|---|---|---|---|\n")
	all := catalogue.All()
	flags := workload.Register(all, pflag.NewFlagSet("run", pflag.ContinueOnError))
	for i, w := range all {
		m, by := w.Meta(), ""
		switch {
		case m.Standard:
			by = "yes"
		case w == workload.ForCalls(all):
			by = "with stacks of calls"
		}
		var own []string
		for _, n := range flags[i] {
			if m.Group != "" { // else the flags are listed in groups of the load
				own = append(own, "`--"+n+"`")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, cell(m.Summary), by, strings.Join(own, " "))
	}
	return b.String()
}

// workloadTexts are the sections that workloads have beside their code.
func workloadTexts(t *testing.T) string {
	var b strings.Builder
	for _, w := range catalogue.All() {
		m := w.Meta()
		text, err := os.ReadFile(filepath.Join("internal", "workload", m.Name, "text.md"))
		if err == nil {
			fmt.Fprintf(&b, "## %s\n\n%s\n\n", m.Group, strings.Trim(string(text), "\n"))
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
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
	letters, by := 0, map[string]int{}
	for _, d := range perftest.Describe() {
		if d.Letter != "" {
			letters++
			by[d.Verdict]++
		}
	}
	fmt.Fprintf(&b, "Of the %d letters %d are done, %d accepted and %d refused.\n\n", letters, by["done"],
		by["accepted"], by["refused"])
	b.WriteString("| perftest | `rdmaperf perftest` | | `rdmaperf run` |\n|---|---|---|---|\n")
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
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, d.Verdict, cell(d.Why), cell(says))
	}
	return b.String()
}

// capabilityTable is what the providers themselves declare.
func capabilityTable(t *testing.T) string {
	t.Helper()
	names := []string{"iwarp", "mem"}
	var caps []rdma.Caps
	for _, name := range names {
		dev, err := new(stackspec.Set).OpenDevice(name)
		if err != nil {
			t.Fatal(err)
		}
		caps = append(caps, dev.Caps())
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
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
