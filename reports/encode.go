package reports

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MarshalJSON fills in the schema's name, and empty lists instead of null.
func (d Document) MarshalJSON() ([]byte, error) {
	type plain Document // without this method
	p := plain(d)
	p.Schema = cmp.Or(p.Schema, SchemaID)
	if p.Command == nil {
		p.Command = []string{}
	}
	if p.Results == nil {
		p.Results = []Result{}
	}
	return json.Marshal(p)
}

// MarshalJSON puts the members of the detail and Others among those of the result.
func (r Result) MarshalJSON() ([]byte, error) {
	type plain Result
	m, err := membersOf(r.Detail, r.Workload)
	if err != nil {
		return nil, err
	}
	r.Others = append(m, r.Others...)
	return inline(plain(r), "others", r.Others)
}

// UnmarshalJSON keeps all members that it does not know for the kind.
func (r *Result) UnmarshalJSON(b []byte) (err error) {
	type plain Result
	r.Others, err = outline(b, (*plain)(r))
	return err
}

func (w *Workload) read(r *Result) error {
	if names := w.members(r.Workload); r.Others.has(names) {
		d := w.Detail()
		if err := r.Others.into(d, r.Workload); err != nil {
			return err
		}
		r.Detail, r.Others = d, r.Others.except(func(o Member) bool { return slices.Contains(names, o.Name) })
	}
	w.Apply(r)
	return nil
}

// WriteJSON writes the document, indented. It writes nothing when a value has no JSON form, such as NaN.
func (d *Document) WriteJSON(w io.Writer) error {
	b, err := d.encode()
	if err != nil {
		return err
	}
	return WriteAll(w, "result document", b)
}

// WriteAll writes a whole text; what names it in an error.
func WriteAll(w io.Writer, what string, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// WriteFile writes the document to a file by [WriteFileAtomic].
func (d *Document) WriteFile(path string) error {
	b, err := d.encode()
	if err != nil {
		return err
	}
	if err := WriteFileAtomic(path, b); err != nil {
		return fmt.Errorf("write result document %s: %w", path, err)
	}
	return nil
}

func (d *Document) encode() ([]byte, error) {
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode result document: %w", err)
	}
	return append(b, '\n'), nil
}

// WriteFileAtomic writes a file so that a reader sees the old content or the new one. What exists and is no regular
// file, such as a pipe, a symbolic link or /dev/stdout, is written through.
func WriteFileAtomic(path string, b []byte) (err error) {
	switch info, statErr := os.Lstat(path); {
	case statErr == nil && !info.Mode().IsRegular():
		return os.WriteFile(path, b, 0o644)
	case statErr != nil && !errors.Is(statErr, fs.ErrNotExist):
		return statErr
	}
	// Same directory, because a rename is atomic only inside one file system.
	tmp, err := os.CreateTemp(filepath.Dir(path), ".rdmaperf-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Chmod(0o644) // CreateTemp's 0600 is for secrets; this is a report
	}
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	return err
}

// PlainJSON says of an error of encoding/json what a reader of the file should know.
func PlainJSON(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && strings.Contains(err.Error(), "unexpected end"),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("it is empty or ends in the middle")
	case errors.As(err, &syntax) && strings.Contains(err.Error(), "after top-level value"):
		return fmt.Errorf("more behind the document, at byte %d", syntax.Offset)
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s is no %s at byte %d", kind.Field, kind.Type, kind.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("it is no object, but: %s", kind.Value)
	}
	return err
}

// ReadDocument reads one document and nothing after it. Another name of the schema is an error; unknown fields are
// ignored. Results of workloads that are not known keep what all results have.
func ReadDocument(r io.Reader, known Workloads) (*Document, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read result document: %w", err)
	}
	d := new(Document)
	err = json.Unmarshal(b, d)
	head := struct{ Schema string }{d.Schema}
	if err != nil { // the name first: a field of another type is no wonder in another version
		if e := json.Unmarshal(b, &head); e != nil {
			return nil, fmt.Errorf("read result document: %w", PlainJSON(e))
		}
	}
	if head.Schema != SchemaID {
		return nil, fmt.Errorf("read result document: schema is %q, want %q", head.Schema, SchemaID)
	}
	if err != nil {
		return nil, fmt.Errorf("read result document: %w", PlainJSON(err))
	}
	for i, r := range Pointers(d.Results) {
		err := known.Of(r.Workload).read(r)
		if err == nil && r.Workload == "" {
			err = errors.New("it has no workload")
		}
		if err != nil {
			return nil, fmt.Errorf("read result document: result %d: %w", i, err)
		}
	}
	return d, nil
}
