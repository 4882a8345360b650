// Package reporttest lets the tests of any package hold a result document
// against the schema. It is for tests only: the command never links it.
//
// Limitations: it checks the form of a document, not whether its figures agree
// with each other.
package reporttest

import (
	"bytes"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Validate fails t when document is not one JSON value that follows the
// project's result schema. It does not stop the test.
func Validate(t testing.TB, document []byte) {
	t.Helper()
	if err := check(document); err != nil {
		t.Errorf("result document breaks the schema: %v\n%s", err, document)
	}
}

var schema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	const name = "results.schema.json"
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(reports.Schema()))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat() // date-time is an annotation only, unless asked for
	if err := c.AddResource(name, raw); err != nil {
		return nil, err
	}
	return c.Compile(name)
})

func check(document []byte) error {
	s, err := schema()
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return s.Validate(v)
}
