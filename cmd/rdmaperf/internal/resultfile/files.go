// Package resultfile reads result documents from files and directories, and saves them as baselines.
package resultfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Read reads a document or a baseline, or joins the documents of a directory.
func Read(path string) (*reports.Document, error) {
	if isBaseline(path) {
		b, err := NewBaseline(path)
		if err != nil {
			return nil, cli.Usage("read baseline", err, "")
		}
		return b.read()
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return ReadDocument(path)
	}
	names, err := filepath.Glob(filepath.Join(escapeGlob(path), "*.json"))
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitFailed, Operation: "read result documents", Err: err}
	}
	if len(names) == 0 {
		return nil, cli.Usage("read result documents", fmt.Errorf("%s: no *.json in it", path),
			"a directory that files of rdmaperf run --json are in")
	}
	return joinFiles("read result documents of "+path, names)
}

func joinFiles(operation string, names []string) (*reports.Document, error) {
	var docs []*reports.Document
	for _, name := range names {
		d, err := ReadDocument(name)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	d, err := reports.Join(docs)
	if err != nil {
		return nil, cli.Usage(operation, err, "documents of one build on one machine, and nothing else")
	}
	return d, nil
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// ReadResults reads a document of results of any workload, and makes its answer anew.
func ReadResults(r io.Reader) (*reports.Document, error) {
	d, err := reports.ReadDocument(r, catalogue.Results())
	if err == nil {
		d.Answer = answer.Of(d)
	}
	return d, err
}

// ReadDocument reads a result document from a file.
func ReadDocument(path string) (*reports.Document, error) {
	d, err := ReadFile(path, ReadResults)
	if err != nil {
		return nil, cli.Usage("read result document", err, "a file of rdmaperf run --json")
	}
	return d, nil
}

// PageFile is the page's name inside an output directory.
const PageFile = "report.html"

// maxInput bounds a file that is read whole. Arbitrary: 10,000 results with histograms have some 100 MiB.
const maxInput = 512 << 20

// ReadFile opens one regular file and reads it whole, up to maxInput; errors name the file.
func ReadFile[T any](name string, read func(io.Reader) (T, error)) (T, error) {
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
	v := none
	text, err := values.Text(io.LimitReader(file, maxInput)) // it may grow meanwhile
	if err == nil {
		err = beginsJSON(text)
	}
	if err == nil {
		v, err = read(text)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// beginsJSON refuses a text that cannot be JSON by its first byte, before all of it is read.
func beginsJSON(r *bufio.Reader) error {
	for at := 1; ; at++ {
		b, err := r.ReadByte()
		switch {
		case err == io.EOF:
			return nil // whoever reads it says that it is empty
		case err != nil:
			return err
		case bytes.IndexByte([]byte(" \t\r\n"), b) >= 0:
		case b == '{' || b == '[' || b == '"' || b == '-' || b >= '0' && b <= '9' || b == 't' || b == 'f' || b == 'n':
			return r.UnreadByte()
		default:
			return fmt.Errorf("no JSON at byte %d", at)
		}
	}
}

// DocumentFile is the document's name inside an output directory.
const DocumentFile = "result.json"

// MakeDir makes a directory where it is not there; its parents only if deep, for paths of rdmaperf's own choice.
func MakeDir(dir string, deep bool) error {
	if deep {
		return os.MkdirAll(dir, 0o755)
	}
	err := os.Mkdir(dir, 0o755)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.MkdirAll(dir, 0o755) // knows a directory from a file of that name
}

// TryFile finds out whether the file could be written, and leaves it as it is.
func TryFile(path string) error {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case err == nil: // also a pipe or a device, which nothing is written to before there is a result
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) {
			return nil // a pipe that nobody reads yet (fifo(7))
		}
		if err != nil {
			return err
		}
		return f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".rdmaperf-*")
	if err != nil {
		var of *fs.PathError
		if errors.As(err, &of) { // the name that was given, and not that of a trial
			err = &fs.PathError{Op: "create", Path: path, Err: of.Err}
		}
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
