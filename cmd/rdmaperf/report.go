package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render"
)

var reportFormats = render.Names(render.OfReport)

type reportFlags struct {
	output  string
	conform string
	format  string
}

func newReportCommand() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report FILE…",
		Short: "Make one HTML page of results and conformance records",
		Long: `Read result documents that run wrote, records that conform wrote, or both, and
make one page of them: what they show in sentences, charts, tables, conformance,
environment and how to reproduce. The page is one file, loads nothing from
anywhere and is complete without scripts. As markdown it has the sentences and the
tables, for the summary of a pipeline.

Exit codes: 0 done, 1 the page could not be written, 2 usage or a file that is
neither.`,
		Example: `  rdmaperf report rdmaperf-results/*/result.json -o report.html
  rdmaperf report result.json conform.jsonl -o report.html
  rdmaperf report result.json conform.jsonl --format markdown -o - >> "$GITHUB_STEP_SUMMARY"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && f.conform == "" {
				return errors.New("want files of 'run --json' or 'conform --jsonl', got none")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if r := render.Find(f.format, render.OfReport); r != nil && !cmd.Flags().Changed("output") {
				f.output = cmp.Or(r.File, "-")
			}
			return cli.Computes(cmd.Context(), "make report", func() error { return f.run(cmd.OutOrStdout(), args) })
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", resultfile.PageFile,
		"file to write, by default that of the format; - is stdout, and what a format without one goes to")
	cmd.Flags().StringVar(&f.conform, "conform", "", "one more file of conformance records")
	cmd.Flags().StringVar(&f.format, "format", "html", "of the page: "+strings.Join(reportFormats, ", "))
	return cmd
}

func (f *reportFlags) run(stdout io.Writer, files []string) error {
	const operation = "make report"
	format := render.Find(f.format, render.OfReport)
	if format == nil {
		return cli.Usage(operation, fmt.Errorf("--format %q: want one of %s", f.format,
			strings.Join(reportFormats, ", ")), "rdmaperf report --help")
	}
	if f.conform != "" {
		files = append(slices.Clone(files), f.conform)
	}
	var docs []*reports.Document
	o := page.Options{Own: catalogue.Charts()}
	var seen []os.FileInfo
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			if slices.ContainsFunc(seen, func(o os.FileInfo) bool { return os.SameFile(o, info) }) {
				continue // rdmaperf-results/latest leads to another
			}
			seen = append(seen, info)
		}
		in, err := resultfile.ReadFile(name, readInput)
		if err != nil {
			return cli.Usage(operation, err, "files written by 'rdmaperf run --json FILE' or 'rdmaperf conform --jsonl FILE'")
		}
		if in.document == nil {
			o.Conformance = append(o.Conformance, in.cases...)
			continue
		}
		docs = append(docs, in.document)
		o.Names = append(o.Names, name)
	}
	if f.output == "-" {
		return format.Pages(stdout, docs, o)
	}
	var made bytes.Buffer
	err := format.Pages(&made, docs, o)
	if err == nil {
		err = reports.WriteFileAtomic(f.output, made.Bytes())
	}
	if err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: operation, Err: err}
	}
	return nil
}

type reportInput struct {
	document *reports.Document
	cases    []page.CaseResult
}

const longestRecord = 1 << 20

func readInput(r io.Reader) (reportInput, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return reportInput{}, err
	}
	var first struct {
		Schema, Verdict string
	}
	// What is not even JSON is told apart by the reader of documents, which are too long to be read twice.
	if line, _, _ := bytes.Cut(b, []byte("\n")); len(line) < longestRecord && json.Unmarshal(line, &first) == nil &&
		first.Schema == "" && first.Verdict != "" {
		cases, err := page.ReadConformance(bytes.NewReader(b))
		return reportInput{cases: cases}, err
	}
	d, err := resultfile.ReadResults(bytes.NewReader(b))
	return reportInput{document: d}, err
}
