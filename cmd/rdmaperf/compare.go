package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/reports"
)

// compareFormats are the values of compare --format.
var compareFormats = []string{"text", "json", "markdown"}

func newCompareCommand() *cobra.Command {
	var limits failIf
	var format string
	var force bool
	cmd := &cobra.Command{
		Use:   "compare [flags] OLD NEW",
		Short: "Compare two result documents point by point",
		Long: `compare puts two result documents of "rdmaperf run" beside each other. Results
for the same point are taken as repeats: their medians are shown, and the
Mann-Whitney test says whether the difference could be chance. Use
"run --json FILE" to write a document. A directory stands for all documents
(*.json) in it, as repeats of one run: that is how two builds take turns.

Runs that were taken under different conditions, such as another CPU, kernel or
way of polling, are not compared unless --force is given; what differs is said.

Thresholds go by medians, whatever the test says.

Exit codes: 0 compared, 1 failed, 2 usage or not comparable, 3 a threshold was
missed.`,
		Example: `  rdmaperf compare old.json new.json
  rdmaperf compare old.json new.json --fail-if 'p99>+10%' --fail-if 'bw<-5%'
  rdmaperf compare base/ head/ --format markdown >> "$GITHUB_STEP_SUMMARY"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("want two result documents, OLD and NEW, got %d", len(args))
			}
			return nil
		},
	}
	limits.register(cmd.Flags(), `exit 3 when this holds, such as 'p99>+10%' (change), 'p99>10us' or 'bw<1GB/s' (new run); repeatable`)
	cmd.Flags().StringVar(&format, "format", "text", "of stdout: "+strings.Join(compareFormats, ", "))
	cmd.Flags().BoolVar(&force, "force", false, "compare runs that are not alike")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(compareFormats, format) {
			return usage("read --format", fmt.Errorf("%q: want one of %s", format, strings.Join(compareFormats, ", ")), "rdmaperf compare --help")
		}
		old, err := readRun(args[0])
		if err != nil {
			return err
		}
		new, err := readRun(args[1])
		if err != nil {
			return err
		}
		c, err := reports.Compare(old, new, limits.thresholds)
		if err != nil {
			return usage("compare "+args[0]+" with "+args[1], err, "two runs of the same points")
		}
		if len(c.Unlike) > 0 && !force {
			for _, d := range c.Unlike {
				fmt.Fprintf(cmd.ErrOrStderr(), "not alike: %s\n", d)
			}
			return usage("compare "+args[0]+" with "+args[1], errors.New("the runs are not alike"), "--force, if that is meant")
		}
		write := c.WriteText
		switch format {
		case "json":
			write = c.WriteJSON
		case "markdown":
			write = c.WriteMarkdown
		}
		if err := write(cmd.OutOrStdout()); err != nil {
			return err
		}
		return limits.missed(cmd.ErrOrStderr(), c.Missed)
	}
	return cmd
}

// readRun reads a document, or joins those of a directory.
func readRun(path string) (*reports.Document, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return readDocument(path)
	}
	names, err := filepath.Glob(filepath.Join(escapeGlob(path), "*.json"))
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitFailed, Operation: "read result documents", Err: err}
	}
	if len(names) == 0 {
		return nil, usage("read result documents", fmt.Errorf("%s: no *.json in it", path), "a directory that files of rdmaperf run --json are in")
	}
	var docs []*reports.Document
	for _, name := range names {
		d, err := readDocument(name)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	d, err := reports.Join(docs)
	if err != nil {
		return nil, usage("read result documents of "+path, err, "a directory that holds the repeats of one run and nothing else")
	}
	return d, nil
}

// escapeGlob makes a pattern that matches the path itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// readDocument reads a result document from a file.
func readDocument(path string) (*reports.Document, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitFailed, Operation: "read result document", Err: err}
	}
	d, err := reports.ReadDocument(bytes.NewReader(b))
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitFailed, Operation: path, Err: err, Hint: "a file of rdmaperf run --json"}
	}
	return d, nil
}
