package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/reports"
)

// reportFile is the page's name inside an output directory.
const reportFile = "report.html"

// reportFlags say what goes onto the page and where the page goes.
type reportFlags struct {
	output  string
	conform string
}

func newReportCommand() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report FILE…",
		Short: "Make one HTML page of result documents",
		Long: `Read result documents that run wrote and make one HTML page of them: a verdict in
plain words, charts, tables, conformance, environment and how to reproduce. The
page is one file, loads nothing from anywhere and is complete without scripts.

Exit codes: 0 done, 1 the page could not be written, 2 usage or a file that is
not a result document.`,
		Example: `  rdmaperf report rdmaperf-results/*/result.json -o report.html
  rdmaperf report result.json --conform conform.jsonl -o report.html`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.OutOrStdout(), args)
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", reportFile, "file to write; - is stdout")
	cmd.Flags().StringVar(&f.conform, "conform", "", "records of 'conform --format jsonl' to show as a matrix")
	return cmd
}

func (f *reportFlags) run(stdout io.Writer, files []string) error {
	const operation = "make report"
	var docs []*reports.Document
	for _, name := range files {
		d, err := readFile(name, reports.ReadDocument)
		if err != nil {
			return usage(operation, err, "files written by 'rdmaperf run --json FILE'")
		}
		docs = append(docs, d)
	}
	o := reports.HTMLOptions{Names: files}
	if f.conform != "" {
		var err error
		if o.Conformance, err = readFile(f.conform, reports.ReadConformance); err != nil {
			return usage(operation, err, "a file written by 'rdmaperf conform --format jsonl'")
		}
	}
	if f.output == "-" {
		return reports.WriteHTML(stdout, docs, o)
	}
	if err := writeReport(f.output, docs, o); err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: operation, Err: err}
	}
	return nil
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

// writeReport renders the page in memory before it touches the file, so that only
// a failing disk leaves a part of one.
func writeReport(name string, docs []*reports.Document, o reports.HTMLOptions) error {
	var page bytes.Buffer
	if err := reports.WriteHTML(&page, docs, o); err != nil {
		return err
	}
	return os.WriteFile(name, page.Bytes(), 0o644)
}

// writeReportBeside puts the page of one run next to its document.
func writeReportBeside(dir string, doc *reports.Document) error {
	return writeReport(filepath.Join(dir, reportFile), []*reports.Document{doc}, reports.HTMLOptions{})
}
