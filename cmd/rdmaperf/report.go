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
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render"
)

// reportFile is the page's name inside an output directory.
const reportFile = "report.html"

// reportFormats are the values of report --format.
var reportFormats = render.Names(render.OfReport)

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
			if r := render.Find(f.format, render.OfReport); r != nil && !cmd.Flags().Changed("output") {
				f.output = cmp.Or(r.File, "-")
			}
			return f.run(cmd.OutOrStdout(), args)
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", reportFile, "file to write, by default that of the format; - is stdout, and what a format without one goes to")
	cmd.Flags().StringVar(&f.conform, "conform", "", "one more file of conformance records")
	cmd.Flags().StringVar(&f.format, "format", "html", "of the page: "+strings.Join(reportFormats, ", "))
	return cmd
}

func (f *reportFlags) run(stdout io.Writer, files []string) error {
	const operation = "make report"
	format := render.Find(f.format, render.OfReport)
	if format == nil {
		return usage(operation, fmt.Errorf("--format %q: want one of %s", f.format, strings.Join(reportFormats, ", ")), "rdmaperf report --help")
	}
	if f.conform != "" {
		files = append(slices.Clone(files), f.conform)
	}
	var docs []*reports.Document
	o := render.Options{}
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
		return format.Pages(stdout, docs, o)
	}
	// In memory first, so that only a failing disk leaves a part of a page.
	var made bytes.Buffer
	err := format.Pages(&made, docs, o)
	if err == nil {
		err = os.WriteFile(f.output, made.Bytes(), 0o644)
	}
	if err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: operation, Err: err}
	}
	return nil
}

// reportInput is a result document, or else conformance records.
type reportInput struct {
	document *reports.Document
	cases    []page.CaseResult
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
		cases, err := page.ReadConformance(bytes.NewReader(b))
		return reportInput{cases: cases}, err
	}
	d, err := reports.ReadDocument(bytes.NewReader(b), workload.Kinds())
	return reportInput{document: d}, err
}

// maxInput bounds a file that is read whole. Arbitrary: a document of 10,000 results with
// their histograms has some 100 MiB.
const maxInput = 512 << 20

// readFile opens one regular file and reads it whole, up to maxInput; errors name the
// file.
func readFile[T any](name string, read func(io.Reader) (T, error)) (T, error) {
	var none T
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // else a FIFO waits for its writer (fifo(7))
	if err != nil {
		return none, err
	}
	info, err := file.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("not a regular file")
	case err == nil && info.Size() > maxInput:
		err = fmt.Errorf("%d bytes, more than %d MiB", info.Size(), maxInput>>20)
	}
	if err != nil {
		return none, errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
	}
	v, err := read(io.LimitReader(file, maxInput)) // it may grow meanwhile
	if err = errors.Join(err, file.Close()); err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}
