package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/reports"
)

// reportFile is the page's name inside an output directory.
const reportFile = "report.html"

// reportFormats are the values of report --format.
var reportFormats = []string{"html", "markdown"}

// reportFlags say what goes onto the page and where the page goes.
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
make one page of them: a verdict in plain words, charts, tables, conformance,
environment and how to reproduce. The page is one file, loads nothing from
anywhere and is complete without scripts. As markdown it has the verdict and the
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
			if f.format == "markdown" && !cmd.Flags().Changed("output") {
				f.output = "-"
			}
			return f.run(cmd.OutOrStdout(), args)
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", reportFile, "file to write; - is stdout, and what markdown goes to by default")
	cmd.Flags().StringVar(&f.conform, "conform", "", "one more file of conformance records")
	cmd.Flags().StringVar(&f.format, "format", "html", "of the page: "+strings.Join(reportFormats, ", "))
	return cmd
}

func (f *reportFlags) run(stdout io.Writer, files []string) error {
	const operation = "make report"
	render := reports.WriteHTML
	switch f.format {
	case "html":
	case "markdown":
		render = reports.WriteMarkdown
	default:
		return usage(operation, fmt.Errorf("--format %q: want one of %s", f.format, strings.Join(reportFormats, ", ")), "rdmaperf report --help")
	}
	if f.conform != "" {
		files = append(slices.Clone(files), f.conform)
	}
	var docs []*reports.Document
	var o reports.HTMLOptions
	for _, name := range files {
		in, err := readFile(name, readInput)
		if err != nil {
			return usage(operation, err, "files written by 'rdmaperf run --json FILE' or 'rdmaperf conform --jsonl FILE'")
		}
		if in.document == nil {
			o.Conformance = append(o.Conformance, in.cases...)
			continue
		}
		docs = append(docs, in.document)
		o.Names = append(o.Names, name)
	}
	if f.output == "-" {
		return render(stdout, docs, o)
	}
	if err := writePage(f.output, render, docs, o); err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: operation, Err: err}
	}
	return nil
}

// reportInput is a result document, or else conformance records.
type reportInput struct {
	document *reports.Document
	cases    []reports.CaseResult
}

// readInput goes by content: only a conformance record has a verdict.
func readInput(r io.Reader) (reportInput, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return reportInput{}, err
	}
	var first struct {
		Schema, Verdict string
	}
	// What is not even JSON is told apart by the reader of documents.
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&first); err == nil && first.Schema == "" && first.Verdict != "" {
		cases, err := reports.ReadConformance(bytes.NewReader(b))
		return reportInput{cases: cases}, err
	}
	d, err := reports.ReadDocument(bytes.NewReader(b))
	return reportInput{document: d}, err
}

// readFile opens one file and reads it whole; errors name the file.
func readFile[T any](name string, read func(io.Reader) (T, error)) (T, error) {
	var none T
	file, err := os.Open(name)
	if err != nil {
		return none, err
	}
	v, err := read(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// writePage renders the page in memory before it touches the file, so that only
// a failing disk leaves a part of one.
func writePage(name string, render func(io.Writer, []*reports.Document, reports.HTMLOptions) error, docs []*reports.Document, o reports.HTMLOptions) error {
	var page bytes.Buffer
	if err := render(&page, docs, o); err != nil {
		return err
	}
	return os.WriteFile(name, page.Bytes(), 0o644)
}

// writeReportBeside puts the page of one run next to its document.
func writeReportBeside(dir string, doc *reports.Document) error {
	return writePage(filepath.Join(dir, reportFile), reports.WriteHTML, []*reports.Document{doc}, reports.HTMLOptions{})
}
